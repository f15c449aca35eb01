import { ToolgateError } from '../errors.ts'
import { compareToolIds } from './tool-id.ts'
import type { Tool } from './tool.ts'

/** An immutable collection of tools in the order of their ids. Filtering gives a new one. */
export interface Toolset extends Iterable<Tool> {
  readonly size: number
  readonly tools: readonly Tool[]
  readonly ids: readonly string[]
  has(id: string): boolean
  get(id: string): Tool | undefined
  /** Position in `tools`, or -1. */
  indexOf(id: string): number
  filter(keep: (tool: Tool) => boolean): Toolset
}

/** @throws {ToolgateError} `tool_duplicate`, naming the id that two tools have */
export function createToolset(tools: Iterable<Tool>): Toolset {
  const sorted = Object.freeze([...tools].toSorted((a, b) => compareToolIds(a.id, b.id)))
  const indexes = new Map<string, number>()
  for (const [index, { id }] of sorted.entries()) {
    if (indexes.has(id)) throw new ToolgateError('tool_duplicate', `Two tools have the id "${id}".`)
    indexes.set(id, index)
  }
  return Object.freeze({
    size: sorted.length,
    tools: sorted,
    ids: Object.freeze(sorted.map((tool) => tool.id)),
    has: (id: string) => indexes.has(id),
    get: (id: string) => sorted[indexes.get(id) ?? -1],
    indexOf: (id: string) => indexes.get(id) ?? -1,
    filter: (keep: (tool: Tool) => boolean) => createToolset(sorted.filter(keep)),
    [Symbol.iterator]: () => sorted[Symbol.iterator](),
  })
}
