import type { Visible } from '../decide/visible.ts'
import { ToolgateError } from '../errors.ts'
import { membersOf } from '../tools/bits.ts'
import type { JsonSchema, Tool } from '../tools/tool.ts'
import { toolIndexOf } from './index-tools.ts'
import { checkShape, shapeOf } from '../util/shape.ts'
import { parseQuery } from './query.ts'
import { rank, type Searched } from './rank.ts'

/** How much a search tells of each tool that it finds. */
export const SEARCH_DETAILS = ['names', 'descriptions', 'schemas'] as const
export type SearchDetail = (typeof SEARCH_DETAILS)[number]

export interface SearchOptions {
  /** 1 to 100; default 10. */
  readonly limit?: number | undefined
  /** Default `descriptions`: no schemas. */
  readonly detail?: SearchDetail | undefined
}

/** One tool that was found. What it does not have is absent. */
export interface SearchHit {
  readonly id: string
  /** Above 0, three decimals; to be compared within one answer. */
  readonly score: number
  readonly title?: string
  readonly description?: string
  readonly inputSchema?: JsonSchema
  readonly outputSchema?: JsonSchema
}

const OPTIONS = shapeOf<SearchOptions>({ limit: true, detail: true })

export const MAX_LIMIT = 100
export const DEFAULT_LIMIT = 10

/**
 * Gives the visible tools that fit a query, ranked: the best first, equal ones by id. A query without a word finds
 * none. Nothing is indexed before the first query.
 *
 * @throws {ToolgateError} `query_invalid` for a query that is no string, and for an option that cannot be used
 */
export function searchTools(visible: Visible, query: string, options: SearchOptions = {}): readonly SearchHit[] {
  const { limit, detail } = checkSearch(query, options)
  const parsed = parseQuery(query)
  if (parsed.terms.length === 0) return []
  const { tools } = visible.snapshot
  return rank(surveyOf(visible), parsed, limit).map(({ at, score }) => toHit(tools[at] as Tool, score, detail))
}

const surveys = new WeakMap<Visible, Searched>()

/** What is counted of all visible tools is counted once. */
function surveyOf(visible: Visible): Searched {
  let survey = surveys.get(visible)
  if (!survey) {
    const index = toolIndexOf(visible.snapshot)
    const members = membersOf(visible.bits)
    const length = members.reduce((sum, at) => sum + (index.lengths[at] as number), 0)
    survey = { index, visible: visible.bits, count: members.length, averageLength: length / members.length }
    surveys.set(visible, survey)
  }
  return survey
}

function checkSearch(query: unknown, options: SearchOptions): { limit: number; detail: SearchDetail } {
  checkShape('search', options, OPTIONS)
  const { limit = DEFAULT_LIMIT, detail = 'descriptions' } = options
  if (typeof query !== 'string') throw new ToolgateError('query_invalid', 'The query of a search must be a string.')
  if (!Number.isInteger(limit) || limit < 1 || limit > MAX_LIMIT)
    throw new ToolgateError('query_invalid', `The limit of a search must be a whole number from 1 to ${MAX_LIMIT}.`)
  if (!SEARCH_DETAILS.includes(detail))
    throw new ToolgateError('query_invalid', `The detail of a search must be one of ${SEARCH_DETAILS.join(', ')}.`)
  return { limit, detail }
}

function toHit(tool: Tool, exactScore: number, detail: SearchDetail): SearchHit {
  const { id, title, description, inputSchema, outputSchema } = tool
  const score = Math.max(0.001, Math.round(exactScore * 1000) / 1000)
  const named = title === undefined ? { id, score } : { id, score, title }
  if (detail === 'names') return named
  if (detail === 'descriptions') return { ...named, description }
  return { ...named, description, inputSchema, ...(outputSchema && { outputSchema }) }
}
