import type { Clock, GroupState } from '../ports/ports.ts'
import { backgroundTimeout } from '@toolgate/values'

/** A group's state when it was last emitted, and its state now. */
export interface GroupChange {
  readonly group: string
  readonly before: GroupState
  readonly state: GroupState
}

interface GroupChanges {
  /** Emits the changes of these groups, now or as soon as the limits allow. */
  add(groups: readonly string[]): void
  close(): void
}

/** The least milliseconds between two changes of one group. */
const GROUP_GAP_MS = 1000
/** Milliseconds for which changes of several groups are collected after an emission. */
const GAP_MS = 20

/**
 * Limits how often changes are emitted: the first change of a group at once, then its latest state at most once a second. A
 * group that returns to the last emitted state has not changed.
 */
export function createChanges(
  clock: Clock,
  states: () => ReadonlyMap<string, GroupState>,
  emit: (changes: readonly GroupChange[]) => void,
): GroupChanges {
  const emitted = new Map<string, { state: GroupState; atMs: number }>()
  for (const [name, state] of states()) emitted.set(name, { state, atMs: Number.NEGATIVE_INFINITY })
  const waiting = new Set<string>()
  let lastMs = Number.NEGATIVE_INFINITY
  let timer: NodeJS.Timeout | undefined
  let timerMs = Number.POSITIVE_INFINITY
  let isClosed = false

  const dueAtMs = (name: string): number => Math.max((emitted.get(name)?.atMs ?? 0) + GROUP_GAP_MS, lastMs + GAP_MS)

  const takeDue = (nowMs: number): readonly GroupChange[] =>
    [...waiting].flatMap((name) => {
      if (dueAtMs(name) > nowMs) return []
      waiting.delete(name)
      const before = emitted.get(name)?.state
      const state = states().get(name)
      if (!state || before === state) return []
      emitted.set(name, { state, atMs: nowMs })
      if (!before) return []
      return [Object.freeze({ group: name, before, state })]
    })

  const emitDue = (nowMs: number) => {
    const changes = takeDue(nowMs)
    if (changes.length > 0) lastMs = nowMs
    timerMs = Number.POSITIVE_INFINITY
    for (const name of waiting) wakeAt(dueAtMs(name), nowMs)
    if (changes.length > 0) emit(changes)
  }

  const wakeAt = (dueMs: number, nowMs: number) => {
    if (dueMs >= timerMs) return
    timerMs = dueMs
    clearTimeout(timer)
    // A timer may fire a little early, so it emits the changes due at its planned time.
    timer = backgroundTimeout(() => emitDue(Math.max(dueMs, clock.monotonicMs())), Math.max(0, dueMs - nowMs))
  }

  return {
    add(groups) {
      if (isClosed) return
      const nowMs = clock.monotonicMs()
      for (const name of emitted.keys()) if (!states().has(name)) emitted.delete(name)
      if (groups.length === 0) return
      for (const name of groups) waiting.add(name)
      const dueMs = Math.min(...groups.map(dueAtMs))
      if (dueMs <= nowMs) emitDue(nowMs)
      else wakeAt(dueMs, nowMs)
    },
    close() {
      isClosed = true
      clearTimeout(timer)
    },
  }
}
