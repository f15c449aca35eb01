import type { Clock, LimitAnswer, LimitUse } from '@toolgate/core/stores'
import type { SyncCounterStore } from '../../core/src/memory/counters.ts'

interface Use {
  readonly atMs: number
  readonly cost: number
}

interface Held {
  readonly used: readonly Use[]
  /** The longest window that was used. Older uses are dropped. */
  longestMs: number
}

export interface NaiveCountersOptions {
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly maxKeys?: number
}

/** Returns counters in their simplest form: a list of uses for each key, which each question reads whole. */
export function naiveCounters({ clock, maxKeys = Number.POSITIVE_INFINITY }: NaiveCountersOptions): SyncCounterStore {
  const held = new Map<string, Held>()
  const settled = new Set<LimitAnswer>()
  let nowMs = Number.NEGATIVE_INFINITY

  function dropPassed(): void {
    nowMs = Math.max(nowMs, clock.monotonicMs())
    for (const [key, { used, longestMs }] of held) {
      const live = used.filter(({ atMs }) => atMs + longestMs > nowMs)
      if (live.length === 0) held.delete(key)
      else held.set(key, { used: live, longestMs })
    }
  }

  function check(uses: readonly LimitUse[]): LimitAnswer {
    dropPassed()
    const newKeys = new Set<string>()
    let remaining = Number.POSITIVE_INFINITY
    for (const [i, { key, max, windowMs, cost = 1 }] of uses.entries()) {
      const used = held.get(key)?.used ?? []
      if (used.length === 0) newKeys.add(key)
      if (held.size + newKeys.size > maxKeys) return refusal(i, 0, Number.NaN)
      const earlier = sum(uses.slice(0, i).filter((other) => other.key === key))
      const room = max - sum(used.filter(({ atMs }) => atMs + windowMs > nowMs)) - earlier
      if (room < cost) return refusal(i, Math.max(room, 0), resetMsOf(used, max - earlier - cost, windowMs))
      remaining = Math.min(remaining, room - cost)
    }
    return { allowed: true, refused: -1, remaining, resetMs: 0, atMs: nowMs }
  }

  function refusal(refused: number, remaining: number, resetMs: number): LimitAnswer {
    return { allowed: false, refused, remaining, resetMs, atMs: nowMs }
  }

  /** Returns the earliest time at which a use leaves its window and at most `most` remain. */
  function resetMsOf(used: readonly Use[], most: number, windowMs: number): number {
    const edges = used.map(({ atMs }) => atMs + windowMs)
    const enough = edges.filter((edge) => sum(used.filter(({ atMs }) => atMs + windowMs > edge)) <= most)
    return enough.length > 0 ? Math.min(...enough) - nowMs : windowMs
  }

  /** Replaces the latest use of a key at a time, or its latest use. */
  function replace(key: string, atMs: number | undefined, cost: number, by: readonly Use[]): void {
    const { used = [], longestMs = 0 } = held.get(key) ?? {}
    const isIt = (use: Use): boolean => atMs === undefined || (use.atMs === atMs && use.cost === cost)
    const place = used.findLastIndex(isIt)
    if (place === -1) return
    const left = used.toSpliced(place, 1, ...by)
    if (left.length === 0) held.delete(key)
    else held.set(key, { used: left, longestMs })
  }

  return {
    peek: check,
    take(uses) {
      const answer = check(uses)
      if (!answer.allowed) return answer
      for (const { key, windowMs, cost = 1 } of uses) {
        if (cost === 0) continue
        const { used, longestMs } = held.get(key) ?? { used: [], longestMs: 0 }
        held.set(key, { used: [...used, { atMs: nowMs, cost }], longestMs: Math.max(longestMs, windowMs) })
      }
      return answer
    },
    giveBack(uses, taken) {
      if (taken?.allowed === false) return
      for (const { key, cost = 1 } of uses) if (cost > 0) replace(key, taken?.atMs, cost, [])
    },
    settle(uses, taken, costs) {
      if (!taken.allowed || settled.has(taken)) return
      settled.add(taken)
      for (const [i, { key, cost = 1 }] of uses.entries())
        if (taken.atMs !== undefined) replace(key, taken.atMs, cost, [{ atMs: taken.atMs, cost: costs[i] ?? cost }])
    },
  }
}

function sum(uses: readonly { readonly cost?: number | undefined }[]): number {
  return uses.reduce((total, { cost = 1 }) => total + cost, 0)
}
