import { sha256Hex } from '@toolgate/values'

/** Item lists longer than this are split into pages. */
export const PAGE_SIZE = 1000

export interface Page {
  readonly start: number
  readonly end: number
  readonly nextCursor: string | undefined
}

/**
 * Returns the page of a list that a cursor asks for; `undefined` for a cursor of another list or an unknown cursor.
 *
 * A cursor is bound to its list: if the list has changed, the client starts again and misses no item.
 */
export function pageOf(
  { items, key }: { readonly items: readonly unknown[]; readonly key: string },
  cursor: unknown,
): Page | undefined {
  let start = 0
  if (cursor !== undefined) {
    start = typeof cursor === 'string' ? Number.parseInt(cursor, 10) : 0
    if (!(start > 0 && start % PAGE_SIZE === 0 && start < items.length)) return undefined
    if (cursor !== toCursor(key, start)) return undefined
  }
  const end = Math.min(start + PAGE_SIZE, items.length)
  return { start, end, nextCursor: end < items.length ? toCursor(key, end) : undefined }
}

function toCursor(key: string, start: number): string {
  return `${start}.${sha256Hex(`${start} ${key}`).slice(0, 22)}`
}
