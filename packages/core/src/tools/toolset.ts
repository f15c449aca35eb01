import {
  checkShape,
  ConfigError,
  nearestNames,
  sha256Hex,
  shapeOf,
  ToolgateError,
  UnknownToolError,
} from '@toolgate/values'
import { definitionHash } from './definition-hash.ts'
import { keeps, type ToolFilter } from './filters.ts'
import { compareToolIds } from './tool-id.ts'
import { isTool, type Tool } from './tool.ts'

/** An immutable collection of tools, ordered by id. Filtering and editing return a new one. */
export interface Toolset extends Iterable<Tool> {
  readonly size: number
  readonly tools: readonly Tool[]
  readonly ids: readonly string[]
  has(id: string): boolean
  get(id: string): Tool | undefined
  /** Returns the position in `tools`, or -1. */
  indexOf(id: string): number
  filter(keep: ToolFilter): Toolset
  /** Returns a set with more tools. @throws {ToolgateError} `tool_duplicate`, naming the id that is already in the set */
  add(...tools: readonly Tool[]): Toolset
  /** Returns a set with tools replaced by id. @throws {UnknownToolError} naming the id */
  replace(...tools: readonly Tool[]): Toolset
  /** Returns a set without some tools. @throws {UnknownToolError} naming the id */
  remove(...ids: readonly string[]): Toolset
  /**
   * Returns one page, and the cursor of the next. Equal sets have equal cursors, in any process.
   *
   * @throws {ToolgateError} `cursor_invalid`; `cursor_stale` for a cursor of a set with other tools
   */
  page(request?: PageRequest): ListPage
  /**
   * Returns one page of the namespaces, each with the number of its tools.
   *
   * @throws {ToolgateError} like `page`
   */
  namespaces(request?: PageRequest): NamespacePage
  /** Returns the SHA-256 over the definitions, 64 hex digits. Equal sets have equal hashes. */
  hash(): string
}

/** Creates a set of tools. @throws {ToolgateError} `tool_duplicate`, naming the id that two tools have */
export function createToolset(tools: Iterable<Tool>): Toolset {
  return fromSorted([...tools].toSorted((a, b) => compareToolIds(a.id, b.id)))
}

function fromSorted(tools: readonly Tool[]): Toolset {
  const sorted = Object.freeze(tools)
  const indexes = new Map<string, number>()
  for (const [index, { id }] of sorted.entries()) {
    if (indexes.has(id)) throw duplicate(id)
    indexes.set(id, index)
  }
  const ids = Object.freeze(sorted.map((tool) => tool.id))
  let hash: string | undefined
  const set: Toolset = {
    size: sorted.length,
    tools: sorted,
    ids,
    has: (id) => indexes.has(id),
    get: (id) => sorted[indexes.get(id) ?? -1],
    indexOf: (id) => indexes.get(id) ?? -1,
    filter: (keep) => fromSorted(sorted.filter((tool) => keeps(keep, tool))),
    add: (...more) => addTo(set, more),
    replace: (...others) => replaceIn(set, others),
    remove: (...gone) => removeFrom(set, gone),
    page: (request = {}) => pageOfTools(set, request),
    namespaces: (request = {}) => pageOfNamespaces(set, request),
    hash: () => (hash ??= sha256Hex(sorted.map(definitionHash).join('\n'))),
    [Symbol.iterator]: () => sorted[Symbol.iterator](),
  }
  return Object.freeze(set)
}

function pageOfTools(set: Toolset, request: PageRequest): ListPage {
  const { entries, nextCursor } = pageOf({ entries: set.tools, hash: set.hash }, request)
  return Object.freeze({ tools: entries, nextCursor })
}

function pageOfNamespaces(set: Toolset, request: PageRequest): NamespacePage {
  const sizes = new Map<string | undefined, number>()
  for (const { namespace } of set.tools) sizes.set(namespace, (sizes.get(namespace) ?? 0) + 1)
  const all = [...sizes]
    .map(([namespace, size]): NamespaceEntry => Object.freeze({ namespace, size }))
    .toSorted((a, b) => compareToolIds(a.namespace ?? '', b.namespace ?? ''))
  // A cursor of tools is not valid for namespaces.
  const hash = () => sha256Hex(`namespaces ${set.hash()}`)
  const { entries, nextCursor } = pageOf({ entries: all, hash }, request)
  return Object.freeze({ namespaces: entries, nextCursor })
}

function addTo(set: Toolset, more: readonly Tool[]): Toolset {
  const added = checkTools('add', more)
  const present = added.find(({ id }) => set.has(id))
  if (present) throw duplicate(present.id)
  return createToolset([...set.tools, ...added])
}

function replaceIn(set: Toolset, others: readonly Tool[]): Toolset {
  const byId = createToolset(checkTools('replace', others))
  checkPresent(set, byId.ids)
  return fromSorted(set.tools.map((tool) => byId.get(tool.id) ?? tool))
}

function removeFrom(set: Toolset, gone: readonly string[]): Toolset {
  checkPresent(set, gone)
  const ids = new Set(gone)
  return fromSorted(set.tools.filter(({ id }) => !ids.has(id)))
}

function checkPresent(set: Toolset, ids: readonly string[]): void {
  const unknown = ids.filter((id) => !set.has(id))
  if (unknown.length > 0) throw unknownTools(unknown, set.ids)
}

function checkTools(path: string, tools: readonly unknown[]): readonly Tool[] {
  return tools.map((tool, i) => checkTool(`${path}[${i}]`, tool))
}

/**
 * Checks that `defineTool` made a value. Any other object could change after the decision.
 *
 * @throws {ConfigError} `tool_invalid`, with the path
 */
export function checkTool(path: string, tool: unknown): Tool {
  if (isTool(tool)) return tool
  throw new ConfigError(path, `must be a tool that defineTool made, not ${describe(tool)}`, { code: 'tool_invalid' })
}

function describe(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'a list'
  return typeof value === 'object' ? 'a plain object' : typeof value
}

function duplicate(id: string): ToolgateError {
  return new ToolgateError('tool_duplicate', `Two tools have the id "${id}".`)
}

const MAX_HINTS = 3
/** The most unknown names that one error lists. */
const MAX_UNKNOWN = 20

/** Returns the error for unknown names, each with the nearest known names. */
export function unknownTools(unknown: readonly string[], known: readonly string[]): UnknownToolError {
  const [first = '', ...rest] = new Set(unknown)
  return new UnknownToolError(
    first,
    nearestNames(first, known, MAX_HINTS),
    rest.slice(0, MAX_UNKNOWN - 1).map((tool) => ({ tool, nearest: nearestNames(tool, known, MAX_HINTS) })),
  )
}

interface PageRequest {
  /** 1 to 1,000; default 100. */
  readonly limit?: number | undefined
  /** The `nextCursor` of the previous page. Without it, the first page is returned. */
  readonly cursor?: string | undefined
}

interface ListPage {
  /** Sorted by id. */
  readonly tools: readonly Tool[]
  /** Absent on the last page. */
  readonly nextCursor: string | undefined
}

interface NamespacePage {
  /** Sorted by name; tools without a namespace come first. */
  readonly namespaces: readonly NamespaceEntry[]
  /** Absent on the last page. */
  readonly nextCursor: string | undefined
}

interface NamespaceEntry {
  readonly namespace: string | undefined
  /** The number of tools in the namespace. */
  readonly size: number
}

/** A list that is returned in pages. `hash` covers all entries in their order. */
interface Pageable<T> {
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
 * A cursor holds a position and part of the set's hash. It needs no memory, is the same in every process, and is rejected
 * for any other set, so that no tool is silently skipped or repeated.
 *
 * @throws {ToolgateError} `query_invalid` for the limit, `cursor_invalid`, `cursor_stale`
 */
function pageOf<T>(list: Pageable<T>, request: PageRequest): Slice<T> {
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
  if (hash === undefined) throw new ToolgateError('cursor_invalid', 'The cursor is invalid.')
  if (hash !== list.hash().slice(0, HASH_LENGTH))
    throw new ToolgateError(
      'cursor_stale',
      'The list has changed since this cursor was made; start with the first page.',
    )
  const at = Number(position)
  if (at >= list.entries.length || writeCursor(list, at) !== cursor)
    throw new ToolgateError('cursor_invalid', 'The cursor is invalid.')
  return at
}
