import type { AvailabilitySource, GroupState } from '@toolgate/core/groups'
import { createEmitter } from '@toolgate/values'
import type { Clock } from '@toolgate/core/stores'

/** The change of one group since its last report. */
export interface WatchedGroupChange {
  readonly name: string
  /** The former state. Absent if it was unknown. */
  readonly before: GroupState | undefined
  readonly now: GroupState | undefined
}

interface GroupWatchDeps {
  /** The groups to watch, which may change. */
  names(): readonly string[]
  readonly availability: AvailabilitySource
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly onFault: (error: unknown) => void
}

export interface GroupWatch {
  /** Watches the groups that `names` currently returns. A new group is reported as a change. */
  renew(): void
  /** Calls the listener with changes. Simultaneous changes are one call. */
  subscribe(listener: (changes: readonly WatchedGroupChange[]) => void): () => void
  /** How often each group's availability has changed since the start. */
  readonly counts: ReadonlyMap<string, number>
  close(): void
}

/** The shortest time between two reports about one group. */
const INTERVAL_MS = 1000
/** Changes within this time are reported together. */
const TOGETHER_MS = 10

/**
 * Watches the states of groups. A change is reported within 10 ms, unless the group had a report in the last second. Then
 * its state is reported at the end of that second, if it still differs.
 */
export function createGroupWatch({ names, availability, clock, onFault }: GroupWatchDeps): GroupWatch {
  const watched = new Map<string, { state: GroupState | undefined; reportedAtMs: number }>()
  const counts = new Map<string, number>()
  renew()
  const listeners = createEmitter<[changes: readonly WatchedGroupChange[]]>(onFault)
  let timer: NodeJS.Timeout | undefined
  let dueAtMs = Infinity
  const unsubscribe = availability.subscribe(() => wake(TOGETHER_MS))

  return {
    renew() {
      renew()
      wake(TOGETHER_MS)
    },
    counts,
    subscribe: listeners.subscribe,
    close() {
      unsubscribe()
      clearTimeout(timer)
      listeners.clear()
    },
  }

  function renew(): void {
    const now = new Set(names())
    for (const name of watched.keys()) if (!now.has(name)) [watched, counts].forEach((one) => one.delete(name))
    for (const name of now) {
      if (watched.has(name)) continue
      watched.set(name, { state: availability.get(name), reportedAtMs: -Infinity })
      counts.set(name, 0)
    }
  }

  /** Sets the one timer of all groups to the earliest due time. */
  function wake(inMs: number): void {
    const atMs = clock.monotonicMs() + inMs
    if (timer !== undefined && atMs >= dueAtMs) return
    clearTimeout(timer)
    dueAtMs = atMs
    timer = setTimeout(report, inMs).unref()
  }

  function report(): void {
    timer = undefined
    const now = clock.monotonicMs()
    const changes: WatchedGroupChange[] = []
    let waitMs = Infinity
    for (const [name, one] of watched) {
      const state = availability.get(name)
      if (isSame(state, one.state)) continue
      const leftMs = one.reportedAtMs + INTERVAL_MS - now
      if (leftMs > 0) {
        waitMs = Math.min(waitMs, leftMs)
        continue
      }
      changes.push({ name, before: one.state, now: state })
      if (one.state?.available !== state?.available) counts.set(name, (counts.get(name) ?? 0) + 1)
      one.state = state
      one.reportedAtMs = now
    }
    if (waitMs < Infinity) wake(Math.ceil(waitMs))
    if (changes.length > 0) listeners.emit(changes)
  }
}

function isSame(a: GroupState | undefined, b: GroupState | undefined): boolean {
  if (a === b) return true
  return (
    a?.available === b?.available &&
    a?.reason === b?.reason &&
    a?.detail === b?.detail &&
    a?.suggestion === b?.suggestion &&
    a?.since === b?.since
  )
}
