/** What an upstream may send. Beyond it the answer is an error, and a flood ends the connection. */
export const LIMITS = {
  /** One message: a line on stdio, a body or an event over HTTP. */
  messageBytes: 16 * 1024 * 1024,
  /** What one message may hold besides. Of a list of tools, what is beyond is only what one tool brings. */
  message: { depth: 64, values: 200_000, keys: 50_000 },
  /** One tool, which is compiled, hashed, compared, searched and listed again and again. */
  tool: { depth: 60, values: 10_000, keys: 5_000 },
  toolChars: 256 * 1024,
  /** Tools of one server, over all pages. */
  tools: 10_000,
  listPages: 1_000,
  listBytes: 64 * 1024 * 1024,
  /** Lines in a row on stdout that are no JSON-RPC; servers that print a banner stay below. */
  strayLines: 100,
  /** Bytes that nobody asked for, in any `floodWindowMs`. */
  floodBytes: 64 * 1024 * 1024,
  floodWindowMs: 10_000,
  /** Unread input of a child that has stopped reading. */
  unreadInputBytes: 32 * 1024 * 1024,
} as const

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
