/** What the watch needs of an element. */
export type Placed = Pick<Element, 'getBoundingClientRect'>

export interface MoveWatchOptions {
  /** How long nothing may have moved. */
  readonly stillMs: number
  readonly nowMs?: () => number
  readonly nextFrame?: (work: () => void) => void
}

/** Watches where elements are on the screen, so that a click counts only where the page has stood still. */
export interface MoveWatch {
  /** Whether no watched element has appeared or moved for `stillMs`, as of the last frame. */
  readonly isStill: boolean
  /** Looks at once, and returns whether everything has been still until now. Call it before an action. */
  check(): boolean
  watch(element: Placed): () => void
  /** Calls the listener whenever `isStill` changes. */
  subscribe(listener: () => void): () => void
}

/**
 * Returns a watch that compares positions in every frame.
 *
 * Positions are those in the window, so everything that moves a button under the pointer counts: a card that
 * arrives or goes, a resize, a font that loads, a scroll, and a page that got shorter below.
 */
export function createMoveWatch({
  stillMs,
  nowMs = () => performance.now(),
  nextFrame = (work) => void requestAnimationFrame(work),
}: MoveWatchOptions): MoveWatch {
  const places = new Map<Placed, string>()
  const listeners = new Set<() => void>()
  let movedAtMs = -Infinity
  let isStill = true
  let isLooping = false

  return {
    get isStill() {
      return isStill
    },
    check() {
      look()
      return isStill
    },
    watch(element) {
      places.set(element, placeOf(element))
      movedAtMs = nowMs()
      set(false)
      if (!isLooping) {
        isLooping = true
        nextFrame(loop)
      }
      return () => places.delete(element)
    },
    subscribe(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }

  function loop(): void {
    isLooping = places.size > 0
    if (!isLooping) return
    look()
    nextFrame(loop)
  }

  function look(): void {
    for (const [element, before] of places) {
      const now = placeOf(element)
      if (now === before) continue
      places.set(element, now)
      movedAtMs = nowMs()
    }
    set(nowMs() - movedAtMs >= stillMs)
  }

  function set(still: boolean): void {
    if (still === isStill) return
    isStill = still
    for (const listener of listeners) listener()
  }
}

/** To a whole pixel: less cannot bring another button under the pointer. */
function placeOf(element: Placed): string {
  const { left, top, width, height } = element.getBoundingClientRect()
  return [left, top, width, height].map(Math.round).join(' ')
}
