import type { McpResult } from '@toolgate/core/internal'
import { isLarge } from './next-turn.ts'

const marked = new WeakSet<object>()

/** Remembers that a result came as a large text, whatever of it is large. */
export function markLarge(result: object): void {
  marked.add(result)
}

/** Whether a result takes milliseconds to cap, to write and to send, so that each is done in a turn of its own. */
export function isLargeResult(result: McpResult): boolean {
  return marked.has(result) || (Array.isArray(result.content) && result.content.some(isLargeBlock))
}

function isLargeBlock(block: unknown): boolean {
  if (typeof block !== 'object' || block === null) return false
  const { text, data } = block as { readonly text?: unknown; readonly data?: unknown }
  return (typeof text === 'string' && isLarge(text)) || (typeof data === 'string' && isLarge(data))
}
