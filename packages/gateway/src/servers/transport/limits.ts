/** The limits on the data that an upstream sends. A larger answer is an error, and a flood ends the connection. */
export const LIMITS = {
  /** One message: a line on stdio, a body or an event over HTTP. */
  messageBytes: 16 * 1024 * 1024,
  /** A longer line on stdio is skipped, so that only its call fails. The connection ends if it does not end by then. */
  skippedBytes: 256 * 1024 * 1024,
  skippedMs: 60_000,
  itemChars: 256 * 1024,
  /** Items in one list of a server, over all pages. */
  items: 10_000,
  /** Resource templates of a server. Each resource of it is compared with each of them. */
  templates: 500,
  listPages: 1_000,
  listBytes: 64 * 1024 * 1024,
  /** Successive lines on stdout that are not JSON-RPC. A banner is shorter. */
  strayLines: 100,
  /** Unrequested bytes in any `floodWindowMs`. */
  floodBytes: 64 * 1024 * 1024,
  floodWindowMs: 10_000,
  /** Instructions of a server for models. Longer ones are cut. */
  instructionsChars: 64 * 1024,
  /** Unanswered requests of a server to its clients. */
  openAsks: 100,
  /** Resources of one server whose changes are subscribed to. */
  watchedResources: 10_000,
  /** Unread input of a child that has stopped reading. */
  unreadInputBytes: 32 * 1024 * 1024,
} as const

/** Counts unrequested bytes, in windows of `LIMITS.floodWindowMs`. */
export interface FloodGuard {
  /** Counts bytes. Returns `true` when a window holds more than `LIMITS.floodBytes`. */
  add(bytes: number): boolean
  /** Subtracts the bytes of an answer, which was requested. */
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

/** The time in which a client may answer an `input_required`: its sealed state is open for so long. */
export const ROUND_MS = 10 * 60_000
