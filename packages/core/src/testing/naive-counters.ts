import type { Clock, LimitAnswer, LimitUse } from '../ports/ports.ts'
import type { SyncCounterStore } from '../memory/counters.ts'

interface Held {
  readonly times: number[]
  /** The longest window that was asked for: older uses are dropped. */
  longestMs: number
}

export interface NaiveCountersOptions {
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly maxKeys?: number
}

/** Gives counters as one would write them first: a list of times for each key, gone through at each question. */
export function naiveCounters({ clock, maxKeys = Number.POSITIVE_INFINITY }: NaiveCountersOptions): SyncCounterStore {
  const held = new Map<string, Held>()
  let nowMs = Number.NEGATIVE_INFINITY

  function dropPassed(): void {
    nowMs = Math.max(nowMs, clock.monotonicMs())
    for (const [key, { times, longestMs }] of held) {
      const live = times.filter((time) => time + longestMs > nowMs)
      if (live.length === 0) held.delete(key)
      else held.set(key, { times: live, longestMs })
    }
  }

  function check(uses: readonly LimitUse[]): LimitAnswer {
    dropPassed()
    const newKeys = new Set<string>()
    let remaining = Number.POSITIVE_INFINITY
    for (const [i, { key, max, windowMs }] of uses.entries()) {
      const times = held.get(key)?.times ?? []
      if (times.length === 0) newKeys.add(key)
      if (held.size + newKeys.size > maxKeys) return refusal(i, Number.NaN)
      const earlier = uses.slice(0, i).filter((other) => other.key === key).length
      const left = max - times.filter((time) => time + windowMs > nowMs).length - earlier - 1
      if (left < 0) return refusal(i, resetMsOf(times, max - earlier, windowMs))
      remaining = Math.min(remaining, left)
    }
    return { allowed: true, refused: -1, remaining, resetMs: 0, atMs: nowMs }
  }

  function refusal(refused: number, resetMs: number): LimitAnswer {
    return { allowed: false, refused, remaining: 0, resetMs, atMs: nowMs }
  }

  /** The earliest of the times at which a use leaves the window that leaves few enough behind. */
  function resetMsOf(times: readonly number[], room: number, windowMs: number): number {
    const edges = times.map((time) => time + windowMs)
    const enough = edges.filter((edge) => times.filter((time) => time + windowMs > edge).length < room)
    return room > 0 && enough.length > 0 ? Math.min(...enough) - nowMs : windowMs
  }

  return {
    peek: check,
    take(uses) {
      const answer = check(uses)
      if (!answer.allowed) return answer
      for (const { key, windowMs } of uses) {
        const { times, longestMs } = held.get(key) ?? { times: [], longestMs: 0 }
        held.set(key, { times: [...times, nowMs], longestMs: Math.max(longestMs, windowMs) })
      }
      return answer
    },
    giveBack(uses, taken) {
      if (taken?.allowed === false) return
      for (const { key } of uses) {
        const times = held.get(key)?.times ?? []
        const place = taken?.atMs === undefined ? times.length - 1 : times.lastIndexOf(taken.atMs)
        if (place >= 0) times.splice(place, 1)
        if (times.length === 0) held.delete(key)
      }
    },
  }
}
