import type { Clock, CounterStore, LimitAnswer, LimitUse } from '../ports.ts'
import {
  addUse,
  countUses,
  createWindow,
  dropPassed,
  passesAtMs,
  removeUse,
  resetMsOf,
  type SlidingWindow,
} from './sliding-window.ts'

export interface MemoryCounters extends CounterStore {
  /** How many keys are held now. */
  readonly size: number
}

export interface MemoryCountersOptions {
  readonly clock: Pick<Clock, 'monotonicMs'>
  /** More keys than this at one time and a use of a new key is refused. Default 100,000. */
  readonly maxKeys?: number
}

/**
 * Gives counters that live in this process.
 *
 * A use costs the same however full its window is, and a key whose windows have passed is
 * forgotten. When there is no room for a new key its use is refused, never let through uncounted.
 */
export function memoryCounters({ clock, maxKeys = 100_000 }: MemoryCountersOptions): MemoryCounters {
  const windows = new Map<string, SlidingWindow>()
  let sweep = windows.entries()
  let nowMs = Number.NEGATIVE_INFINITY
  /** Until then no key can be forgotten, so that being full costs nothing. */
  let fullUntilMs = Number.NEGATIVE_INFINITY

  /** Limits hold only while time does not go back. */
  function readClock(): number {
    nowMs = Math.max(nowMs, clock.monotonicMs())
    return nowMs
  }

  function forgetIfPassed(key: string, window: SlidingWindow): void {
    dropPassed(window, nowMs)
    if (window.count === 0) windows.delete(key)
  }

  /** Two keys are looked at for each that comes, so passed ones go as fast as new ones come. */
  function sweepSome(): void {
    for (let i = 0; i < 2; i++) {
      let next = sweep.next()
      if (next.done) {
        sweep = windows.entries()
        next = sweep.next()
        if (next.done) return
      }
      forgetIfPassed(...next.value)
    }
  }

  function hasRoomFor(count: number): boolean {
    if (windows.size + count <= maxKeys) return true
    if (nowMs < fullUntilMs) return false
    for (const [key, window] of windows) forgetIfPassed(key, window)
    const hasRoom = windows.size + count <= maxKeys
    if (!hasRoom) {
      fullUntilMs = Number.POSITIVE_INFINITY
      for (const window of windows.values()) fullUntilMs = Math.min(fullUntilMs, passesAtMs(window))
    }
    return hasRoom
  }

  function check(uses: readonly LimitUse[]): LimitAnswer {
    const now = readClock()
    let remaining = Number.POSITIVE_INFINITY
    let newKeys = 0
    for (let i = 0; i < uses.length; i++) {
      const use = uses[i] as LimitUse
      const window = windows.get(use.key)
      const earlier = i === 0 ? 0 : usesOfKeyBefore(uses, i)
      const held = window ? countUses(window, now, use.windowMs) : 0
      // A window that is empty by now is forgotten by the sweep, so it needs room as a new one does.
      if (earlier === 0 && !window?.count && !hasRoomFor(++newKeys))
        return {
          allowed: false,
          refused: i,
          remaining: 0,
          resetMs: Math.min(fullUntilMs - now, use.windowMs),
          atMs: now,
        }
      const left = use.max - held - earlier - 1
      if (left < 0)
        return { allowed: false, refused: i, remaining: 0, resetMs: resetMsOf(window, now, use, earlier), atMs: now }
      remaining = Math.min(remaining, left)
    }
    return { allowed: true, refused: -1, remaining, resetMs: 0, atMs: now }
  }

  function add(use: LimitUse): void {
    let window = windows.get(use.key)
    if (!window) {
      sweepSome()
      window = createWindow()
      windows.set(use.key, window)
    }
    addUse(window, nowMs, use.windowMs)
  }

  return {
    get size() {
      return windows.size
    },
    peek: check,
    take(uses) {
      const answer = check(uses)
      if (answer.allowed) for (const use of uses) add(use)
      return answer
    },
    giveBack(uses, taken) {
      if (taken?.allowed === false) return
      for (const { key } of uses) {
        const window = windows.get(key)
        if (!window) continue
        removeUse(window, taken?.atMs)
        if (window.count > 0) continue
        windows.delete(key)
        fullUntilMs = Number.NEGATIVE_INFINITY
      }
    },
  }
}

function usesOfKeyBefore(uses: readonly LimitUse[], end: number): number {
  let count = 0
  for (let i = 0; i < end; i++) if (uses[i]?.key === uses[end]?.key) count++
  return count
}
