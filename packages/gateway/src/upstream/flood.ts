import { LIMITS } from './limits.ts'

/** Counts bytes in windows of `LIMITS.floodWindowMs`. Gives `true` when one holds more than `LIMITS.floodBytes`. */
export function createFloodGuard(nowMs: () => number): (bytes: number) => boolean {
  let windowStartMs = nowMs()
  let windowBytes = 0
  return (bytes) => {
    const now = nowMs()
    if (now - windowStartMs >= LIMITS.floodWindowMs) {
      windowStartMs = now
      windowBytes = 0
    }
    windowBytes += bytes
    return windowBytes > LIMITS.floodBytes
  }
}

/** `more than 64 MiB in 10 s`, for reasons. */
export const FLOOD: string = `more than ${LIMITS.floodBytes / 1024 / 1024} MiB in ${LIMITS.floodWindowMs / 1000} s`
