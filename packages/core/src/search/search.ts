import type { Visible } from '../decide/decide.ts'
import { ToolgateError } from '../util/errors.ts'
import { membersOf, withoutBit } from '../tools/bits.ts'
import { indexOfRequestTool } from '../tools/own-tool.ts'
import { type JsonSchema, titleOf, type Tool } from '../tools/tool.ts'
import { checkShape, shapeOf } from '../util/shape.ts'
import { cut } from '../util/text.ts'
import { toolIndexOf } from './index-tools.ts'
import { parseQuery, rank, type Searched } from './rank.ts'

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

/** A found tool. Fields that it does not have are absent. */
export interface SearchHit {
  readonly id: string
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

const OPTIONS = shapeOf<SearchOptions>({ limit: true, detail: true, maxDescription: true })

export const MAX_LIMIT = 100
export const DEFAULT_LIMIT = 10
const MAX_DESCRIPTION = 100_000
const DEFAULT_DESCRIPTION = 400

/**
 * Returns the visible tools that match a query, best first and equal ones by id. A query without a word finds none.
 * Nothing is indexed before the first query.
 *
 * @throws {ToolgateError} `query_invalid` for a query that is no string, and for an option that cannot be used
 */
export function searchTools(visible: Visible, query: string, options: SearchOptions = {}): readonly SearchHit[] {
  const wanted = checkSearch(query, options)
  const parsed = parseQuery(query)
  if (parsed.terms.length === 0) return []
  const { tools } = visible.snapshot
  return rank(surveyOf(visible), parsed, wanted.limit).flatMap(({ at, score }) => {
    const tool = tools[at]
    return tool ? [toHit(tool, score, wanted)] : []
  })
}

const surveys = new WeakMap<Visible, Searched>()

/** Returns the totals over all visible tools, computed once. */
function surveyOf(visible: Visible): Searched {
  let survey = surveys.get(visible)
  if (!survey) {
    const index = toolIndexOf(visible.snapshot)
    // It is listed only if groups are locked, and the rank of other tools must not depend on that.
    const bits = withoutBit(visible.bits, indexOfRequestTool(visible.snapshot))
    const members = membersOf(bits)
    const length = members.reduce((sum, at) => sum + (index.lengths[at] ?? 0), 0)
    survey = { index, visible: bits, count: members.length, averageLength: length / members.length }
    surveys.set(visible, survey)
  }
  return survey
}

type Wanted = { readonly [Option in keyof SearchOptions]-?: NonNullable<SearchOptions[Option]> }

function checkSearch(query: unknown, options: SearchOptions): Wanted {
  checkShape('search', options, OPTIONS)
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

function toHit(tool: Tool, exactScore: number, { detail, maxDescription }: Wanted): SearchHit {
  const { id, tags, inputSchema, outputSchema } = tool
  const title = titleOf(tool)
  const score = Math.max(0.001, Math.round(exactScore * 1000) / 1000)
  const named = title === undefined ? { id, score, tags } : { id, score, title, tags }
  const description = cut(tool.description, maxDescription)
  if (detail === 'names') return named
  if (detail === 'descriptions') return { ...named, description }
  return { ...named, description, inputSchema, ...(outputSchema && { outputSchema }) }
}
