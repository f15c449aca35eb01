import type { Clock, GroupState } from '../ports.ts'

/** One group is another than it was when it was last told of. */
export interface GroupChange {
  readonly group: string
  readonly before: GroupState
  readonly state: GroupState
}

export interface TellingDeps {
  readonly clock: Clock
  readonly states: ReadonlyMap<string, GroupState>
  readonly tell: (changes: readonly GroupChange[]) => void
}

export interface Telling {
  /** Tells of these groups, at once or as soon as it may. */
  changed(groups: readonly string[]): void
  close(): void
}

/** How often one group may be told of. */
const GROUP_GAP_MS = 1000
/** How long the changes of several groups are gathered after some were told. */
const GAP_MS = 20

/**
 * Tells of changes without flooding anybody: of one group the first at once, and then what it has come to, at most
 * once a second. What went back to what was told last is no change.
 */
export function createTelling({ clock, states, tell }: TellingDeps): Telling {
  const told = new Map<string, { state: GroupState; atMs: number }>()
  for (const [name, state] of states) told.set(name, { state, atMs: Number.NEGATIVE_INFINITY })
  const waiting = new Set<string>()
  let lastMs = Number.NEGATIVE_INFINITY
  let timer: NodeJS.Timeout | undefined
  let timerMs = Number.POSITIVE_INFINITY
  let isClosed = false

  const dueAtMs = (name: string): number => Math.max((told.get(name)?.atMs ?? 0) + GROUP_GAP_MS, lastMs + GAP_MS)

  const takeDue = (nowMs: number): readonly GroupChange[] =>
    [...waiting].flatMap((name) => {
      if (dueAtMs(name) > nowMs) return []
      waiting.delete(name)
      const before = told.get(name)?.state
      const state = states.get(name)
      if (!before || !state || before === state) return []
      told.set(name, { state, atMs: nowMs })
      return [Object.freeze({ group: name, before, state })]
    })

  const tellDue = (nowMs: number) => {
    const changes = takeDue(nowMs)
    if (changes.length > 0) lastMs = nowMs
    timerMs = Number.POSITIVE_INFINITY
    for (const name of waiting) wakeAt(dueAtMs(name), nowMs)
    if (changes.length > 0) tell(changes)
  }

  const wakeAt = (dueMs: number, nowMs: number) => {
    if (dueMs >= timerMs) return
    timerMs = dueMs
    clearTimeout(timer)
    // A timer may fire a little early: it tells of what is due when it was to fire.
    timer = setTimeout(() => tellDue(Math.max(dueMs, clock.monotonicMs())), Math.max(0, dueMs - nowMs)).unref()
  }

  return {
    changed(groups) {
      if (isClosed) return
      const nowMs = clock.monotonicMs()
      for (const name of groups) waiting.add(name)
      const dueMs = Math.min(...groups.map(dueAtMs))
      if (dueMs <= nowMs) tellDue(nowMs)
      else wakeAt(dueMs, nowMs)
    },
    close() {
      isClosed = true
      clearTimeout(timer)
    },
  }
}
