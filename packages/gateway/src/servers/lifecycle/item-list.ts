import {
  describeExcess,
  isObject,
  JSON_BOUNDS,
  JsonFault,
  type JsonObject,
  measureJson,
  readJson,
  toJsonText,
} from '@toolgate/values/json'
import { RPC_CODES, withoutNulls } from '@toolgate/mcp'
import { findMembers } from '../../util/json-text.ts'
import { nextTurn } from '../../util/next-turn.ts'
import type { Connection, Era } from '../transport/connection.ts'
import { ITEM_KINDS, type ServerItemKind, type ItemOf, type ServerListName } from './item-kinds.ts'
import { clip, JsonText } from '../transport/json-rpc.ts'
import { LIMITS } from '../transport/limits.ts'
import { completeResult } from '../transport/protocol.ts'
import { type RejectedItem, UpstreamError } from '../../model/upstream.ts'

export interface ServerItemList<Item> {
  /** The items in the server's order, without duplicates. */
  readonly items: readonly Item[]
  /** The items by name, URI or URI template. */
  readonly byKey: ReadonlyMap<string, Item>
  readonly rejected: readonly RejectedItem[]
  /** How long the list stays fresh, according to the server. */
  readonly ttlMs: number | undefined
  /** Equal lists have equal text. */
  readonly text: string
  /** Equal items have equal texts. */
  readonly texts: ReadonlyMap<Item, string>
}

export const EMPTY_LIST: ServerItemList<never> = {
  items: [],
  byKey: new Map<string, never>(),
  rejected: [],
  ttlMs: undefined,
  text: '[]',
  texts: new Map<never, string>(),
}

export interface FetchOptions {
  readonly timeoutMs: number
  readonly signal: AbortSignal
}

/**
 * Reads all pages of a server's list, a slice of items in each turn of the event loop. Invalid items are rejected with
 * a reason and do not affect the others.
 *
 * @throws {UpstreamError} for a list that never ends, is too large or is not a list
 */
export async function fetchList<Name extends ServerListName>(
  connection: Connection,
  name: Name,
  options: FetchOptions,
): Promise<ServerItemList<ItemOf<Name>>> {
  const kind = ITEM_KINDS[name]
  if (!isObject(connection.capabilities[kind.offer])) return EMPTY_LIST
  const deadlineMs = performance.now() + options.timeoutMs
  const cursors = new Set<string>()
  const sieve = new Sieve<ItemOf<Name>>(kind, connection.era)
  let ttlMs: number | undefined
  for (let cursor: string | undefined; ; cursors.add(cursor)) {
    const timeoutMs = Math.max(1, deadlineMs - performance.now())
    const page = await fetchPage(connection, kind, cursor, { ...options, timeoutMs })
    if (!page) return EMPTY_LIST
    checkSize(kind, sieve.count + page.items.length, sieve.chars, cursors.size)
    for (const slice of slicesOf(page.items, (item) => (item instanceof JsonText ? item.text.length : 0))) {
      for (const item of slice) sieve.add(item)
      await nextTurn()
    }
    if (page.ttlMs !== undefined) ttlMs = Math.min(ttlMs ?? page.ttlMs, page.ttlMs)
    checkSize(kind, sieve.count, sieve.chars, cursors.size)
    if (page.nextCursor === undefined) break
    if (cursors.has(page.nextCursor))
      throw new UpstreamError('upstream_protocol', `lists its ${kind.many} in a circle: a cursor came twice`)
    cursor = page.nextCursor
  }
  return sieve.toList(ttlMs)
}

/** Returns `undefined` if the server does not know the method. A server with resources may lack templates. */
async function fetchPage(
  connection: Connection,
  { method, field }: ServerItemKind,
  cursor: string | undefined,
  options: FetchOptions,
): Promise<
  | { readonly items: readonly unknown[]; readonly nextCursor: string | undefined; readonly ttlMs: number | undefined }
  | undefined
> {
  let page: JsonObject
  try {
    page = await connection.request(method, cursor === undefined ? {} : { cursor }, options)
  } catch (error) {
    const isUnknown = error instanceof UpstreamError && error.rpc?.code === RPC_CODES.methodNotFound
    if (isUnknown && method !== ITEM_KINDS.tools.method) return undefined
    throw error
  }
  const { [field]: items, nextCursor, ttlMs } = completeResult(connection.era, page)
  if (!Array.isArray(items)) throw new UpstreamError('upstream_protocol', `answered ${method} without a list`)
  return {
    items,
    nextCursor: typeof nextCursor === 'string' && nextCursor !== '' ? nextCursor : undefined,
    ttlMs: typeof ttlMs === 'number' && ttlMs >= 0 ? ttlMs : undefined,
  }
}

function checkSize({ many, one }: ServerItemKind, items: number, bytes: number, pages: number): void {
  const most = one === 'template' ? LIMITS.templates : LIMITS.items
  const beyond =
    items > most
      ? `more than ${most} ${many}`
      : bytes > LIMITS.listBytes
        ? `${many} of more than ${LIMITS.listBytes / 1024 / 1024} MiB`
        : pages >= LIMITS.listPages
          ? `more than ${LIMITS.listPages} pages of ${many}`
          : undefined
  if (beyond !== undefined) throw new UpstreamError('upstream_too_large', `lists ${beyond}`)
}

/** Separates valid items from invalid ones, which get a reason. */
class Sieve<Item> {
  readonly #kind: ServerItemKind
  readonly #era: Era
  readonly #items = new Map<string, Item>()
  readonly #rejected: RejectedItem[] = []
  readonly #listed: string[] = []
  readonly #texts = new Map<Item, string>()
  #chars = 0

  constructor(kind: ServerItemKind, era: Era) {
    this.#kind = kind
    this.#era = era
  }

  get count(): number {
    return this.#listed.length
  }

  get chars(): number {
    return this.#chars
  }

  add(listed: unknown): void {
    const { key, one, field } = this.#kind
    const text = listed instanceof JsonText ? listed.text : toJsonText(listed)
    this.#listed.push(text)
    this.#chars += text.length
    const { item, problem } = readItem(listed, text, this.#kind, this.#era)
    const id = item?.[key]
    if (typeof id !== 'string' || this.#items.has(id)) {
      const reason = problem ?? 'is listed twice; the first counts'
      this.#rejected.push({ kind: one, name: keyIn(text, key) ?? `${field}[${this.count - 1}]`, reason })
      return
    }
    this.#items.set(id, item as Item)
    this.#texts.set(item as Item, text)
  }

  toList(ttlMs: number | undefined): ServerItemList<Item> {
    return {
      items: [...this.#items.values()],
      byKey: this.#items,
      rejected: this.#rejected,
      ttlMs,
      text: `[${this.#listed.join()}]`,
      texts: this.#texts,
    }
  }
}

type ReadItem =
  | { readonly item: JsonObject; readonly problem?: undefined }
  | { readonly item?: undefined; readonly problem: string }

function readItem(listed: unknown, text: string, kind: ServerItemKind, era: Era): ReadItem {
  if (text.length > LIMITS.itemChars) return { problem: `is larger than ${LIMITS.itemChars} characters` }
  const { value: item, problem: fault } = readWhole(listed, text)
  if (fault !== undefined) return { problem: fault }
  if (!isObject(item)) return { problem: 'is not an object' }
  const mended = text.includes('null') ? withoutNulls(item) : item
  const problem = kind.problemOf(mended, era)
  return problem === undefined ? { item: mended } : { problem }
}

/** Checks an item that was parsed with its message against the bounds of a single item. */
function readWhole(listed: unknown, text: string): { readonly value?: unknown; readonly problem?: string } {
  try {
    if (listed instanceof JsonText) return { value: readJson(text, { bounds: JSON_BOUNDS.item, integers: 'exact' }) }
    const { excess } = measureJson(text, JSON_BOUNDS.item)
    return excess ? { problem: describeExcess(excess) } : { value: listed }
  } catch (error) {
    if (!(error instanceof JsonFault)) throw error
    return { problem: error.problem }
  }
}

/** Returns the key of an item without parsing it, as it may be too large. */
function keyIn(text: string, key: ServerItemKind['key']): string | undefined {
  const span = findMembers(text, [key]).get(key)
  if (!span) return undefined
  const written = text.slice(span.start, span.end).trim()
  // The longest escape of one character has six characters.
  const cut = written.slice(0, MAX_SHOWN_KEY * 6)
  try {
    const value: unknown = cut === written ? readJson(cut) : cut.slice(1)
    return typeof value === 'string' && value !== '' ? clip(value, MAX_SHOWN_KEY) : undefined
  } catch {
    return undefined
  }
}

const MAX_SHOWN_KEY = 128

/** The maximum number of items to parse, compare or announce in one turn of the event loop. */
const SLICE_ITEMS = 200
const SLICE_CHARS = 512 * 1024

/** Splits items into slices, each short enough for one turn of the event loop. */
export function* slicesOf<Item>(items: readonly Item[], charsOf: (item: Item) => number): Generator<readonly Item[]> {
  let slice: Item[] = []
  let chars = 0
  for (const item of items) {
    slice.push(item)
    chars += charsOf(item)
    if (slice.length < SLICE_ITEMS && chars < SLICE_CHARS) continue
    yield slice
    slice = []
    chars = 0
  }
  if (slice.length > 0) yield slice
}
