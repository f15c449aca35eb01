import { setImmediate } from 'node:timers/promises'
import { isObject } from '@toolgate/core/internal'
import type { McpResult } from '@toolgate/mcp'

/** Characters of text that take some milliseconds to parse or to write. */
const LARGE_CHARS = 256 * 1024

/** Whether work on a text should be split over several turns of the event loop. */
export function isLarge({ length }: { readonly length: number }): boolean {
  return length > LARGE_CHARS
}

/** Resolves in the next turn of the event loop: requests and timers that are due come first. */
export async function nextTurn(): Promise<void> {
  await setImmediate()
}

const marked = new WeakSet<object>()

/** Remembers that the text of a result was large, whatever part of it is. */
export function markLarge(result: object): void {
  marked.add(result)
}

/** Whether a result takes milliseconds to cap, to write and to send, so that each is done in a turn of its own. */
export function isLargeResult(result: McpResult): boolean {
  return marked.has(result) || (Array.isArray(result.content) && result.content.some(isLargeBlock))
}

function isLargeBlock(block: unknown): boolean {
  if (!isObject(block)) return false
  const { text, data } = block
  return (typeof text === 'string' && isLarge(text)) || (typeof data === 'string' && isLarge(data))
}
