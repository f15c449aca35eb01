import type { AvailabilitySource, GroupState } from '@toolgate/core/groups'
import { createEmitter } from '@toolgate/core/internal'
import type { Clock } from '@toolgate/core/stores'

/** How one group changed since its last report. */
export interface GroupChange {
  readonly name: string
  /** Absent where nothing was known of it yet. */
  readonly before: GroupState | undefined
  readonly now: GroupState | undefined
}

export interface GroupWatchDeps {
  readonly names: readonly string[]
  readonly availability: AvailabilitySource
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly onFault: (error: unknown) => void
}

export interface GroupWatch {
  /** The listener gets the changes, several at once where they come together. */
  subscribe(listener: (changes: readonly GroupChange[]) => void): () => void
  /** How often each group has changed so, since the start. */
  readonly counts: ReadonlyMap<string, number>
  close(): void
}

/** A dependency that comes and goes is reported no more often. */
const QUIET_MS = 1000
/** Changes that come together are reported together. */
const TOGETHER_MS = 10

interface Watched {
  state: GroupState | undefined
  reportedAtMs: number
}

/**
 * Watches the states of groups. A first change is reported within 10 ms. Then a group is left alone for a second, after
 * which its state is reported if it has changed by then.
 */
export function createGroupWatch({ names, availability, clock, onFault }: GroupWatchDeps): GroupWatch {
  const watched = new Map<string, Watched>(
    names.map((name) => [name, { state: availability.get(name), reportedAtMs: -Infinity }]),
  )
  const counts = new Map(names.map((name) => [name, 0]))
  const listeners = createEmitter<[changes: readonly GroupChange[]]>(onFault)
  let timer: NodeJS.Timeout | undefined
  let dueAtMs = Infinity
  const unsubscribe = availability.subscribe(() => wake(TOGETHER_MS))

  return {
    counts,
    subscribe: listeners.subscribe,
    close() {
      unsubscribe()
      clearTimeout(timer)
      listeners.clear()
    },
  }

  /** One timer for all groups, at the time of the first that is due. */
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
    const changes: GroupChange[] = []
    let waitMs = Infinity
    for (const [name, one] of watched) {
      const state = availability.get(name)
      if (isSame(state, one.state)) continue
      const leftMs = one.reportedAtMs + QUIET_MS - now
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
