import { setImmediate } from 'node:timers/promises'
import { isObject } from '@toolgate/core/internal'
import type { McpResult } from '@toolgate/mcp'

/** A text of this length takes some milliseconds to parse or to write. */
const LARGE_CHARS = 256 * 1024

/** Whether work on a text should be split over several turns of the event loop. */
export function isLarge({ length }: { readonly length: number }): boolean {
  return length > LARGE_CHARS
}

/** Resolves in the next turn of the event loop, after pending requests and timers. */
export async function nextTurn(): Promise<void> {
  await setImmediate()
}

const marked = new WeakSet<object>()

/** Records that the text of a result was large. */
export function markLarge(result: object): void {
  marked.add(result)
}

/** Whether capping, writing and sending a result should each get its own turn of the event loop. */
export function isLargeResult(result: McpResult): boolean {
  return marked.has(result) || (Array.isArray(result.content) && result.content.some(isLargeBlock))
}

function isLargeBlock(block: unknown): boolean {
  if (!isObject(block)) return false
  const { text, data } = block
  return (typeof text === 'string' && isLarge(text)) || (typeof data === 'string' && isLarge(data))
}
