import { ToolgateError } from '../errors.ts'
import { checkShape, shapeOf } from '../util/shape.ts'
import type { Tool } from './tool.ts'

export interface PageRequest {
  /** 1 to 1,000; default 100. */
  readonly limit?: number | undefined
  /** `nextCursor` of the page before. Without it, the first page. */
  readonly cursor?: string | undefined
}

export interface Page {
  /** In the order of their ids. */
  readonly tools: readonly Tool[]
  /** Absent on the last page. */
  readonly nextCursor: string | undefined
}

export interface NamespacePage {
  /** In the order of their names; tools without a namespace come first. */
  readonly namespaces: readonly NamespaceEntry[]
  /** Absent on the last page. */
  readonly nextCursor: string | undefined
}

export interface NamespaceEntry {
  readonly namespace: string | undefined
  /** How many tools it has. */
  readonly size: number
}

/** What can be given in pages: entries in an order, and the hash of them all. */
export interface Pageable<T> {
  readonly entries: readonly T[]
  hash(): string
}

interface Slice<T> {
  readonly entries: readonly T[]
  readonly nextCursor: string | undefined
}

const REQUEST = shapeOf<PageRequest>({ limit: true, cursor: true })
const MAX_LIMIT = 1000
const DEFAULT_LIMIT = 100

/**
 * Returns one page of a list.
 *
 * A cursor holds a part of the set's hash and a position, so that it needs no memory, is the same in
 * every process, and is refused for any other set: no tool is skipped or listed twice without a word.
 *
 * @throws {ToolgateError} `query_invalid` for the limit, `cursor_invalid`, `cursor_stale`
 */
export function pageOf<T>(list: Pageable<T>, request: PageRequest): Slice<T> {
  checkShape('page', request, REQUEST)
  const { limit = DEFAULT_LIMIT, cursor } = request
  if (!Number.isInteger(limit) || limit < 1 || limit > MAX_LIMIT)
    throw new ToolgateError('query_invalid', `limit must be a whole number of 1 to ${MAX_LIMIT}, not ${limit}.`)
  const start = cursor === undefined ? 0 : readCursor(list, cursor)
  const end = start + limit
  return {
    entries: Object.freeze(list.entries.slice(start, end)),
    nextCursor: end < list.entries.length ? writeCursor(list, end) : undefined,
  }
}

const HASH_LENGTH = 24
const CURSOR = /^([0-9a-f]{24})\.([1-9]\d{0,8})$/
const MAX_CURSOR_LENGTH = 64

function writeCursor(list: Pick<Pageable<unknown>, 'hash'>, at: number): string {
  return Buffer.from(`${list.hash().slice(0, HASH_LENGTH)}.${at}`).toString('base64url')
}

function readCursor(list: Pageable<unknown>, cursor: unknown): number {
  const text =
    typeof cursor === 'string' && cursor.length <= MAX_CURSOR_LENGTH
      ? Buffer.from(cursor, 'base64url').toString('latin1')
      : ''
  const [, hash, position] = CURSOR.exec(text) ?? []
  if (hash === undefined) throw new ToolgateError('cursor_invalid', 'The cursor is not one that a page gave.')
  if (hash !== list.hash().slice(0, HASH_LENGTH))
    throw new ToolgateError('cursor_stale', 'The cursor is of a list that has changed; begin with the first page.')
  const at = Number(position)
  if (at >= list.entries.length || writeCursor(list, at) !== cursor)
    throw new ToolgateError('cursor_invalid', 'The cursor is not one that a page gave.')
  return at
}
