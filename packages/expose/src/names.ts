import { sha256Hex } from '@toolgate/values'
import type { Tool } from '@toolgate/core'

/** The longest name that every provider and MCP client accepts. */
export const MAX_NAME_LENGTH = 64
const HASH_LENGTH = 10
const SAFE = /^[A-Za-z0-9_-]+$/

/**
 * Returns the name of a tool on the wire: at most `max` of `[A-Za-z0-9_-]`, depending on the tool's id and name alone.
 *
 * It is `namespace__name` if that is unambiguous (no part contains `__` or begins or ends with `_`) and short enough.
 * Otherwise it is as much of that as fits, and the beginning of the SHA-256 of the id.
 */
export function toWireName({ id, namespace, name }: Identified, max: number = MAX_NAME_LENGTH): string {
  const parts = namespace === undefined ? [name] : [namespace, name]
  const plain = parts.join('__')
  if (plain.length <= max && parts.every(isPlain)) return plain
  const prefix = plain.replaceAll(/[^A-Za-z0-9-]+/g, '_').slice(0, max - HASH_LENGTH - 3)
  return `${prefix}__${sha256Hex(id).slice(0, HASH_LENGTH)}_`
}

function isPlain(part: string): boolean {
  return SAFE.test(part) && !part.includes('__') && !part.startsWith('_') && !part.endsWith('_')
}

/** The names of tools, both ways. Tools with the same name are left out. */
export interface WireNames {
  toId(name: string): string | undefined
  toName(id: string): string | undefined
  readonly collisions: readonly { readonly name: string; readonly ids: readonly string[] }[]
}

type Identified = Pick<Tool, 'id' | 'namespace' | 'name'>

/** `nameOf` may be replaced for a target with other rules. */
export function createWireNames<T extends Identified>(
  tools: Iterable<T>,
  nameOf: (tool: T) => string = (tool) => toWireName(tool),
): WireNames {
  const ids = new Map<string, string>()
  const names = new Map<string, string>()
  const met = new Map<string, string[]>()
  for (const tool of tools) {
    const name = nameOf(tool)
    const first = ids.get(name)
    if (first === undefined) {
      ids.set(name, tool.id)
      names.set(tool.id, name)
    } else met.set(name, [...(met.get(name) ?? [first]), tool.id])
  }
  for (const [name, owners] of met) {
    ids.delete(name)
    for (const id of owners) names.delete(id)
  }
  const collisions = [...met].map(([name, owners]) => ({ name, ids: owners }))
  return { toId: ids.get.bind(ids), toName: names.get.bind(names), collisions }
}
