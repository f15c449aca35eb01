import { LIMITS } from './limits.ts'

/** Counts bytes that nobody asked for, in windows of `LIMITS.floodWindowMs`. */
export interface FloodGuard {
  /** Counts bytes. Returns `true` when a window holds more than `LIMITS.floodBytes`. */
  add(bytes: number): boolean
  /** Takes back the bytes of an answer, which somebody asked for. */
  takeBack(bytes: number): void
}

export function createFloodGuard(nowMs: () => number): FloodGuard {
  let windowStartMs = nowMs()
  let windowBytes = 0
  return {
    add(bytes) {
      const now = nowMs()
      if (now - windowStartMs >= LIMITS.floodWindowMs) {
        windowStartMs = now
        windowBytes = 0
      }
      windowBytes += bytes
      return windowBytes > LIMITS.floodBytes
    },
    takeBack(bytes) {
      windowBytes = Math.max(0, windowBytes - bytes)
    },
  }
}

/** `more than 64 MiB in 10 s`, for reasons. */
export const FLOOD: string = `more than ${LIMITS.floodBytes / 1024 / 1024} MiB in ${LIMITS.floodWindowMs / 1000} s`
