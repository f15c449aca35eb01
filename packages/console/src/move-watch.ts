import { createStore } from './store.ts'

/** The part of an element that the watch uses. */
type Placed = Pick<Element, 'getBoundingClientRect'>

interface MoveWatchOptions {
  /** How long elements must not have moved, in milliseconds. */
  readonly stillMs: number
  readonly nowMs?: () => number
  readonly nextFrame?: (work: () => void) => void
}

/** Watches the positions of elements on the screen, so that a click counts only if they have not just moved. */
export interface MoveWatch {
  /** Whether no watched element has appeared or moved for `stillMs`, as of the last frame. */
  readonly current: boolean
  /** Compares the positions now, and returns whether nothing has moved. Call it before an action. */
  check(): boolean
  watch(element: Placed): () => void
  /** Calls the listener when `current` changes. */
  subscribe(listener: () => void): () => void
}

/**
 * Returns a watch that compares positions in every frame.
 *
 * Positions are relative to the window, so each cause of a move counts: an added or removed card, a resize, a loading
 * font, a scroll, or a shorter page.
 */
export function createMoveWatch({
  stillMs,
  nowMs = () => performance.now(),
  nextFrame = (work) => void requestAnimationFrame(work),
}: MoveWatchOptions): MoveWatch {
  const places = new Map<Placed, string>()
  const store = createStore(true)
  let movedAtMs = -Infinity
  let isLooping = false

  return {
    get current() {
      return store.current
    },
    check() {
      look()
      return store.current
    },
    watch(element) {
      places.set(element, placeOf(element))
      movedAtMs = nowMs()
      store.set(false)
      if (!isLooping) {
        isLooping = true
        nextFrame(loop)
      }
      return () => places.delete(element)
    },
    subscribe: store.subscribe,
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
    store.set(nowMs() - movedAtMs >= stillMs)
  }
}

/** Returns the position in whole pixels. A smaller move cannot put another button under the pointer. */
function placeOf(element: Placed): string {
  const { left, top, width, height } = element.getBoundingClientRect()
  return [left, top, width, height].map(Math.round).join(' ')
}
