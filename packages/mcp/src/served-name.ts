import type { Tool } from '@toolgate/core'
import { isObject } from '@toolgate/values/json'

/** Characters that servers use in names, although selectors cannot hold them. MCP only recommends others. */
const UNUSABLE = { tool: /[ :*]/g, prompt: /[ *]/g }

/**
 * Returns the name under which an item is served: `greet_(form)` for `greet (form)`. Spaces, `*` and the `:` of tools
 * become `_`. A name with any other invalid character stays as it is, and is rejected.
 */
export function toServedName(kind: keyof typeof UNUSABLE, name: unknown): unknown {
  return typeof name === 'string' ? name.replaceAll(UNUSABLE[kind], '_') : name
}

const names = new WeakMap<Tool, string>()

/** Remembers the server's own name of an item. Returns the item. */
export function withServerName(item: Tool, name: string): Tool {
  if (item.name !== name) names.set(item, name)
  return item
}

/** Returns the name that an item has at its server. */
export function serverNameOf(item: Tool): string {
  return names.get(item) ?? item.name
}

/** Returns what the operator is told about an item that is served under another name. */
export function renamed(served: string): Error {
  return new Error(`rules cannot name it, so it is served as ${JSON.stringify(served)}`)
}

/** Returns the entries of a list, those last that are served under another name: a name as listed takes precedence. */
export function inOrderOfNames(
  kind: keyof typeof UNUSABLE,
  list: readonly unknown[],
): readonly (readonly [number, unknown])[] {
  const isRenamed = (listed: unknown) => {
    const name = isObject(listed) ? listed['name'] : undefined
    return toServedName(kind, name) !== name
  }
  const entries = [...list.entries()]
  if (!list.some(isRenamed)) return entries
  return entries.toSorted(([, a], [, b]) => Number(isRenamed(a)) - Number(isRenamed(b)))
}
