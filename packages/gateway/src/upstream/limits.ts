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
