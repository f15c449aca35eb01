import type { Visible } from '../decide/decide.ts'
import { checkShape, cut, shapeOf, ToolgateError } from '@toolgate/values'
import { bitsWhere, membersOf, withoutBit } from '../tools/bits.ts'
import { indexOfRequestTool } from '../tools/own-tool.ts'
import { ITEM_KINDS, type ItemKind } from '../tools/tool-id.ts'
import { type JsonSchema, titleOf, type Tool } from '../tools/tool.ts'
import { toolIndexOf } from './index-tools.ts'
import type { CheckedSearcher, SearchAbout } from './searcher.ts'
import { parseQuery, rank, type SearchedPart } from './rank.ts'

/** How much a search shows of each tool. */
export const SEARCH_DETAILS = ['names', 'descriptions', 'schemas'] as const
export type SearchDetail = (typeof SEARCH_DETAILS)[number]

export interface SearchOptions {
  /** 1 to 100; default 10. */
  readonly limit?: number | undefined
  /** Default `descriptions`: no schemas. */
  readonly detail?: SearchDetail | undefined
  /** Characters of each description, 1 to 100,000; a longer one ends in `…`. Default 400. */
  readonly maxDescription?: number | undefined
}

/** The options of `view.search`. */
export interface ItemSearchOptions extends SearchOptions {
  /** The kinds of items to find; default tools only. Resources that no server lists are not found. */
  readonly kinds?: readonly ItemKind[] | undefined
}

/** A found tool, resource, template or prompt. Fields that it does not have are absent. */
export interface SearchHit {
  readonly id: string
  readonly kind: ItemKind
  /** Above 0, three decimals. Comparable only within one result. */
  readonly score: number
  readonly title?: string
  /** For the host, never for a model. */
  readonly tags: readonly string[]
  /** At most `maxDescription` characters. */
  readonly description?: string
  readonly inputSchema?: JsonSchema
  readonly outputSchema?: JsonSchema
}

/** The items that a search of several kinds reads. Items are read only if a search names their kind. */
interface Searchable {
  visibleToday(): Visible
  /** Returns the visible resources, templates and prompts. */
  visibleItemsToday(): Visible
}

const OPTIONS = shapeOf<SearchOptions>({ limit: true, detail: true, maxDescription: true })
const ITEM_OPTIONS = shapeOf<ItemSearchOptions>({ limit: true, detail: true, maxDescription: true, kinds: true })
const TOOLS: readonly ItemKind[] = ['tool']

export const MAX_LIMIT = 100
export const DEFAULT_LIMIT = 10
const MAX_DESCRIPTION = 100_000
const DEFAULT_DESCRIPTION = 400

/**
 * Returns the visible tools that match a query, best first; tools with equal scores are sorted by id. A query without words
 * finds none. Nothing is indexed before the first query.
 *
 * @throws {ToolgateError} `query_invalid` for a query that is not a string, and for an invalid option
 */
export function searchTools(visible: Visible, query: string, options: SearchOptions = {}): readonly SearchHit[] {
  checkShape('search', options, OPTIONS)
  return searchParts([[visible, TOOLS]], query, checkSearch(query, options))
}

/** Who searches. */
type Seeker = Pick<SearchAbout, 'caller' | 'signal'>

/**
 * Returns the tools that a searcher orders, best first, with a score by their place. Only tools that are visible after its
 * answer are returned. If it fails or returns none of these, the search by words answers.
 *
 * @throws {ToolgateError} `query_invalid` for a query that is not a string, and for an invalid option
 */
export async function searchToolsBy(
  searcher: CheckedSearcher,
  visible: () => Visible,
  query: string,
  options: SearchOptions,
  seeker: Seeker,
): Promise<readonly SearchHit[]> {
  checkShape('search', options, OPTIONS)
  const wanted = checkSearch(query, options)
  const { limit } = wanted
  const among = findableIds(visible())
  const ids = await searcher.find(query, { ...seeker, among: [...among], limit })
  // Rules may have changed while the searcher worked.
  const now = visible()
  const found = findableIds(now)
  const shown = ids?.filter((id) => found.has(id)).slice(0, limit) ?? []
  if (shown.length === 0 && ids?.length !== 0) return searchTools(now, query, options)
  return shown.flatMap((id, place) => {
    const tool = now.snapshot.get(id)
    return tool ? [toHit(tool, 1 / (place + 1), wanted)] : []
  })
}

/** Returns the ids of the tools that a search may show. */
function findableIds({ snapshot, bits }: Visible): ReadonlySet<string> {
  const others = withoutBit(bits, indexOfRequestTool(snapshot))
  return new Set(membersOf(others).map((at) => snapshot.ids[at] ?? ''))
}

/**
 * Returns the visible items of some kinds that match a query, best first. With equal scores, tools come first, then the
 * order is by id. Scores of all kinds are comparable.
 *
 * @throws {ToolgateError} `query_invalid` for a query that is not a string, and for an invalid option
 */
export function searchItems(view: Searchable, query: string, options: ItemSearchOptions = {}): readonly SearchHit[] {
  checkShape('search', options, ITEM_OPTIONS)
  const wanted = checkSearch(query, options)
  const asked = checkKinds(options.kinds)
  const kinds = ITEM_KINDS.filter((kind) => kind !== 'tool' && asked.includes(kind))
  const parts: SearchPart[] = []
  if (asked.includes('tool')) parts.push([view.visibleToday(), TOOLS])
  if (kinds.length > 0) parts.push([view.visibleItemsToday(), kinds])
  return searchParts(parts, query, wanted)
}

type SearchPart = readonly [visible: Visible, kinds: readonly ItemKind[]]

function searchParts(parts: readonly SearchPart[], query: string, wanted: Wanted): readonly SearchHit[] {
  const parsed = parseQuery(query)
  if (parsed.terms.length === 0) return []
  const searched = parts.map(([visible, kinds]) => partOf(visible, kinds))
  return rank(searched, parsed, wanted.limit).flatMap(({ part, at, score }) => {
    const item = parts[part]?.[0].snapshot.tools[at]
    return item ? [toHit(item, score, wanted)] : []
  })
}

const partsOf = new WeakMap<Visible, Map<string, SearchedPart>>()

/** Returns the items of some kinds with their totals, computed once. */
function partOf(visible: Visible, kinds: readonly ItemKind[]): SearchedPart {
  let known = partsOf.get(visible)
  if (!known) partsOf.set(visible, (known = new Map()))
  const key = kinds.join()
  let part = known.get(key)
  if (!part) known.set(key, (part = surveyPart(visible, kinds)))
  return part
}

function surveyPart({ snapshot, bits }: Visible, kinds: readonly ItemKind[]): SearchedPart {
  const index = toolIndexOf(snapshot)
  // `request_tools` is listed only if groups are locked, and the rank of other tools must not depend on that.
  const others = withoutBit(bits, indexOfRequestTool(snapshot))
  const ofKinds = (at: number) => kinds.includes(snapshot.tools[at]?.kind ?? 'tool')
  const visible = kinds === TOOLS ? others : bitsWhere(snapshot.size, ofKinds, others)
  const members = membersOf(visible)
  const length = members.reduce((sum, at) => sum + (index.lengths[at] ?? 0), 0)
  return { index, visible, count: members.length, length }
}

type Wanted = { readonly [Option in keyof SearchOptions]-?: NonNullable<SearchOptions[Option]> }

function checkSearch(query: unknown, options: SearchOptions): Wanted {
  const { limit = DEFAULT_LIMIT, detail = 'descriptions', maxDescription = DEFAULT_DESCRIPTION } = options
  if (typeof query !== 'string') throw new ToolgateError('query_invalid', 'The query of a search must be a string.')
  if (!Number.isInteger(limit) || limit < 1 || limit > MAX_LIMIT)
    throw new ToolgateError('query_invalid', `The limit of a search must be a whole number from 1 to ${MAX_LIMIT}.`)
  if (!SEARCH_DETAILS.includes(detail))
    throw new ToolgateError('query_invalid', `The detail of a search must be one of ${SEARCH_DETAILS.join(', ')}.`)
  if (!Number.isInteger(maxDescription) || maxDescription < 1 || maxDescription > MAX_DESCRIPTION)
    throw new ToolgateError('query_invalid', `maxDescription must be a whole number from 1 to ${MAX_DESCRIPTION}.`)
  return { limit, detail, maxDescription }
}

function checkKinds(kinds: unknown = TOOLS): readonly unknown[] {
  const known: readonly unknown[] = ITEM_KINDS
  if (!Array.isArray(kinds) || !kinds.every((kind) => known.includes(kind)))
    throw new ToolgateError('query_invalid', `The kinds of a search must be a list of ${ITEM_KINDS.join(', ')}.`)
  return kinds
}

function toHit(tool: Tool, exactScore: number, { detail, maxDescription }: Wanted): SearchHit {
  const { id, kind, tags, inputSchema, outputSchema } = tool
  const title = titleOf(tool)
  const score = Math.max(0.001, Math.round(exactScore * 1000) / 1000)
  const named = title === undefined ? { id, kind, score, tags } : { id, kind, score, title, tags }
  const description = cut(tool.description, maxDescription)
  if (detail === 'names') return named
  if (detail === 'descriptions') return { ...named, description }
  return { ...named, description, inputSchema, ...(outputSchema && { outputSchema }) }
}
