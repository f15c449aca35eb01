import type { LimitUse } from '../ports.ts'

/** The times of one key's uses in a ring, which doubles when it is full. */
export interface SlidingWindow {
  /** As many places as a power of two. */
  times: number[]
  /** The place of the oldest use. */
  head: number
  count: number
  /** The longest window that was asked for: older uses are dropped. */
  longestMs: number
}

export function createWindow(): SlidingWindow {
  return { times: [0, 0, 0, 0], head: 0, count: 0, longestMs: 0 }
}

/** Counts the uses that are still in a window of `windowMs`. A use at `t` leaves it exactly at `t + windowMs`. */
export function countUses(window: SlidingWindow, nowMs: number, windowMs: number): number {
  dropPassed(window, nowMs)
  return windowMs >= window.longestMs ? window.count : window.count - countPassed(window, nowMs, windowMs)
}

export function dropPassed(window: SlidingWindow, nowMs: number): void {
  while (window.count > 0 && useAt(window, 0) + window.longestMs <= nowMs) {
    window.head = (window.head + 1) & (window.times.length - 1)
    window.count--
  }
}

export function addUse(window: SlidingWindow, atMs: number, windowMs: number): void {
  if (window.count === window.times.length) grow(window)
  if (windowMs > window.longestMs) window.longestMs = windowMs
  window.times[(window.head + window.count) & (window.times.length - 1)] = atMs
  window.count++
}

/** Removes one use of that time, if it is still held; without a time, the newest. */
export function removeUse(window: SlidingWindow, atMs: number | undefined): void {
  if (window.count === 0) return
  let place = window.count - 1
  if (atMs !== undefined) {
    while (place >= 0 && useAt(window, place) !== atMs) place--
    if (place < 0) return
  }
  const mask = window.times.length - 1
  for (let i = place; i < window.count - 1; i++) window.times[(window.head + i) & mask] = useAt(window, i + 1)
  window.count--
}

/** When the newest use leaves the longest window. */
export function passesAtMs(window: SlidingWindow): number {
  return useAt(window, window.count - 1) + window.longestMs
}

/** Milliseconds until one more use is within the limit, beside `earlier` uses of the same take. */
export function resetMsOf(window: SlidingWindow | undefined, nowMs: number, use: LimitUse, earlier: number): number {
  // All but `max - earlier - 1` of the uses have to leave, so this is the last one that must.
  const place = (window?.count ?? 0) - (use.max - earlier)
  if (!window || place < 0 || place >= window.count) return use.windowMs
  return useAt(window, place) + use.windowMs - nowMs
}

function useAt(window: SlidingWindow, place: number): number {
  return window.times[(window.head + place) & (window.times.length - 1)] as number
}

/** Counts, by halving, the uses that are in the longest window but no longer in this one. */
function countPassed(window: SlidingWindow, nowMs: number, windowMs: number): number {
  let low = 0
  let high = window.count
  while (low < high) {
    const middle = (low + high) >>> 1
    if (useAt(window, middle) + windowMs <= nowMs) low = middle + 1
    else high = middle
  }
  return low
}

function grow(window: SlidingWindow): void {
  const { times, head, count } = window
  window.times = Array.from({ length: count * 2 }, (_, i) => (i < count ? (times[(head + i) % count] as number) : 0))
  window.head = 0
}
