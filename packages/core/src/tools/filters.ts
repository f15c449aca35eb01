import { ConfigError } from '@toolgate/values'
import type { Tool } from './tool.ts'

/** Returns whether a tool is kept. */
export type ToolFilter = (tool: Tool) => boolean

/**
 * The filters of a toolset: pure predicates over one tool.
 *
 * | filter | keeps | without values |
 * |---|---|---|
 * | `byNamespace(...namespaces)` | tools of one of the namespaces | nothing |
 * | `byTagsAny(...tags)` | tools with at least one of the tags | nothing |
 * | `byTagsAll(...tags)` | tools with every one of the tags | all |
 * | `byTagsNone(...tags)` | tools with none of the tags | all |
 * | `byCategory(...categories)` | tools of one of the categories | nothing |
 * | `allowIds(...ids)` | tools with one of the ids | nothing |
 * | `denyIds(...ids)` | tools with none of the ids | all |
 * | `and(...filters)` | tools that every filter keeps | all |
 * | `or(...filters)` | tools that at least one filter keeps | nothing |
 * | `not(filter)` | tools that the filter does not keep | - |
 *
 * Values are compared exactly. A value that is not a string, such as a list, throws `filter_invalid`: it would silently
 * keep everything or nothing.
 *
 * @example
 * tools.filter(and(byNamespace('files'), byTagsNone('danger')))
 */
export function byNamespace(...namespaces: readonly string[]): ToolFilter {
  const wanted = textSet('byNamespace', namespaces)
  return ({ namespace }) => namespace !== undefined && wanted.has(namespace)
}

/** Keeps tools that have at least one of the tags. Without tags it keeps no tool. */
export function byTagsAny(...tags: readonly string[]): ToolFilter {
  const wanted = textSet('byTagsAny', tags)
  return (tool) => tool.tags.some((tag) => wanted.has(tag))
}

/** Keeps tools that have all of the tags. Without tags it keeps all tools. */
export function byTagsAll(...tags: readonly string[]): ToolFilter {
  const wanted = textSet('byTagsAll', tags)
  return (tool) => wanted.isSubsetOf(new Set(tool.tags))
}

/** Keeps tools with none of the tags; without tags, all. */
export function byTagsNone(...tags: readonly string[]): ToolFilter {
  return not(byTagsAny(...textSet('byTagsNone', tags)))
}

/** Keeps tools of one of the categories; without categories, nothing. */
export function byCategory(...categories: readonly string[]): ToolFilter {
  const wanted = textSet('byCategory', categories)
  return ({ category }) => category !== undefined && wanted.has(category)
}

/** Keeps tools with one of the ids; without ids, nothing. */
export function allowIds(...ids: readonly string[]): ToolFilter {
  const wanted = textSet('allowIds', ids)
  return ({ id }) => wanted.has(id)
}

/** Keeps tools with none of the ids; without ids, all. */
export function denyIds(...ids: readonly string[]): ToolFilter {
  return not(allowIds(...textSet('denyIds', ids)))
}

/** Keeps tools that every filter keeps; without filters, all. */
export function and(...filters: readonly ToolFilter[]): ToolFilter {
  checkFilters('and', filters)
  return (tool) => filters.every((filter) => keeps(filter, tool))
}

/** Keeps tools that at least one filter keeps; without filters, nothing. */
export function or(...filters: readonly ToolFilter[]): ToolFilter {
  checkFilters('or', filters)
  return (tool) => filters.some((filter) => keeps(filter, tool))
}

/** Keeps tools that the filter does not keep. */
export function not(filter: ToolFilter): ToolFilter {
  checkFilters('not', [filter])
  return (tool) => !keeps(filter, tool)
}

/**
 * Runs a filter on a tool.
 *
 * @throws {ConfigError} `filter_invalid` for a result that is not a boolean: a promise would count as true
 */
export function keeps(filter: ToolFilter, tool: Tool): boolean {
  const answer: unknown = filter(tool)
  if (answer === true || answer === false) return answer
  if (answer instanceof Promise) answer.catch(() => {})
  throw invalid(filter.name || 'a filter', `did not return true or false for the tool "${tool.id}"`)
}

/** @throws {ConfigError} `filter_invalid` with the path of a value that is not a filter */
export function checkFilters(path: string, filters: readonly unknown[]): asserts filters is readonly ToolFilter[] {
  for (const [i, filter] of filters.entries()) {
    if (typeof filter !== 'function') throw invalid(`${path}[${i}]`, `must be a filter, not ${kindOf(filter)}`)
  }
}

function textSet(path: string, values: readonly unknown[]): ReadonlySet<string> {
  const texts = new Set<string>()
  for (const [i, value] of values.entries()) {
    if (typeof value !== 'string') throw invalid(`${path}[${i}]`, `must be a string, not ${kindOf(value)}`)
    texts.add(value)
  }
  return texts
}

function kindOf(value: unknown): string {
  if (Array.isArray(value)) return 'a list'
  return value === null ? 'null' : typeof value
}

function invalid(path: string, problem: string): ConfigError {
  return new ConfigError(path, problem, { code: 'filter_invalid' })
}
