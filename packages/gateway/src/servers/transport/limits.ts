/** The limits on data from a server. A larger answer is an error, and a flood ends the connection. */
export const LIMITS = {
  /** The size of one message: a line on stdio, a body or an event over HTTP. */
  messageBytes: 16 * 1024 * 1024,
  /**
   * A longer line on stdio is skipped, so that only its call fails. If it does not end within this size, the connection
   * ends.
   */
  skippedBytes: 256 * 1024 * 1024,
  skippedMs: 60_000,
  itemChars: 256 * 1024,
  /** The items in one list of a server, over all pages. */
  items: 10_000,
  /** The resource templates of a server. Each of its resources is compared with each of them. */
  templates: 500,
  listPages: 1_000,
  listBytes: 64 * 1024 * 1024,
  /** Successive lines on stdout that are not JSON-RPC. A banner is shorter. */
  strayLines: 100,
  /** The unrequested bytes in any `floodWindowMs`. */
  floodBytes: 64 * 1024 * 1024,
  floodWindowMs: 10_000,
  /** The characters of a server's instructions. Longer ones are cut. */
  instructionsChars: 64 * 1024,
  /** The unanswered requests of a server to its clients. */
  openAsks: 100,
  /** The resources of one server with a subscription to changes. */
  watchedResources: 10_000,
  /** The unread input of a child that has stopped reading. */
  unreadInputBytes: 32 * 1024 * 1024,
} as const

/** Counts unrequested bytes, in windows of `LIMITS.floodWindowMs`. */
export interface FloodGuard {
  /** Counts bytes. Returns `true` if the window contains more than `LIMITS.floodBytes`. */
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

/** A text for reasons: `more than 64 MiB in 10 s`. */
export const FLOOD: string = `more than ${LIMITS.floodBytes / 1024 / 1024} MiB in ${LIMITS.floodWindowMs / 1000} s`

/** How long a client may take to answer an `input_required`: its sealed state stays open this long. */
export const ROUND_MS = 10 * 60_000
