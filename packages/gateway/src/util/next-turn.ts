import { setImmediate } from 'node:timers/promises'
import type { AuditQuery, AuditReader, AuditRecord } from '@toolgate/core/audit'
import { isObject } from '@toolgate/values/json'
import type { McpResult } from '@toolgate/mcp'

/** A text of this length takes a few milliseconds to parse or serialize. */
const LARGE_CHARS = 256 * 1024

/** Whether work on a text should be split over several turns of the event loop. */
export function isLarge({ length }: { readonly length: number }): boolean {
  return length > LARGE_CHARS
}

/** Resolves in the next turn of the event loop, after pending requests and timers. */
export async function nextTurn(): Promise<void> {
  await setImmediate()
}

/**
 * Returns a function to call after each piece of work. After every `size` calls it resolves in the next turn, and
 * otherwise at once.
 */
export function turnEach(size: number): () => Promise<void> | undefined {
  let done = 0
  return () => (++done % size === 0 ? nextTurn() : undefined)
}

/** The number of audit records in a page. */
export const RECORDS_A_PAGE = 1000

/**
 * Yields the newest records of a query page by page, each page in a separate turn of the event loop. `await` alone
 * yields no turn if the store answers at once.
 */
export async function* recordPages(
  audit: AuditReader,
  query: AuditQuery,
  maxPages: number,
): AsyncGenerator<readonly AuditRecord[]> {
  let { beforeSeq } = query
  for (let page = 0; page < maxPages; page++) {
    const records = await audit.query({
      ...query,
      limit: RECORDS_A_PAGE,
      ...(beforeSeq !== undefined && { beforeSeq }),
    })
    await nextTurn()
    yield records
    if (records.length < RECORDS_A_PAGE) return
    beforeSeq = records.at(-1)?.seq
  }
}

const marked = new WeakSet<object>()

/** Marks a result whose text was large. */
export function markLarge(result: object): void {
  marked.add(result)
}

/** Whether to cap, serialize and send a result in separate turns of the event loop. */
export function isLargeResult(result: McpResult): boolean {
  return marked.has(result) || (Array.isArray(result.content) && result.content.some(isLargeBlock))
}

function isLargeBlock(block: unknown): boolean {
  if (!isObject(block)) return false
  const { text, data } = block
  return (typeof text === 'string' && isLarge(text)) || (typeof data === 'string' && isLarge(data))
}
