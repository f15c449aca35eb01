import { ConfigError, toNamedMap } from '@toolgate/values'
import { parseSelector } from './selector.ts'
import type { Toolset } from './toolset.ts'

/** Other names of tools, for policies, limits and the environment: `{ exec: 'bash' }`. */
export type AliasesInput = Readonly<Record<string, string>> | ReadonlyMap<string, string>

/** Ids of tools by alias. */
export type Aliases = ReadonlyMap<string, string>

/**
 * Parses aliases. Whether the tools exist is checked later.
 *
 * @throws {ConfigError} for a name that is not a plain tool name, and for an alias of an alias
 */
export function parseAliases(aliases: AliasesInput = {}): Aliases {
  const byName: Aliases = new Map(toNamedMap('aliases', aliases))
  for (const [alias, id] of byName) {
    if (!isPlainName(alias)) throw new ConfigError(pathOf(alias), 'must be a plain name, as that of a tool')
    if (!isPlainName(id)) throw new ConfigError(pathOf(alias), 'must name one tool, by its id')
    if (byName.has(id)) throw new ConfigError(pathOf(alias), `"${id}" is an alias itself; name the tool`)
  }
  return byName
}

/** Returns the aliases that are also ids of tools. */
export function findTaken(
  aliases: Aliases,
  snapshot: Toolset,
): readonly { readonly path: string; readonly text: string }[] {
  return [...aliases.keys()].flatMap((alias) =>
    snapshot.has(alias)
      ? [{ path: pathOf(alias), text: `"${alias}" is a tool itself; an alias needs a name of its own` }]
      : [],
  )
}

/** Returns the selectors of the tools that aliases name, and where each alias is written. */
export function selectorsOfAliases(aliases: Aliases) {
  return [...aliases].map(([alias, id]) => ({ path: pathOf(alias), selector: { kind: 'id' as const, text: id } }))
}

/** Returns tool ids and aliases that are easily confused: `read-file` and `Read_File`. */
export function findNearNames(
  ids: readonly string[],
  aliases: Aliases = new Map(),
): readonly { readonly ids: readonly string[]; readonly text: string }[] {
  const named = new Map([...ids.map((id) => [id, id] as const), ...aliases])
  const byFold = Map.groupBy(named.keys(), (name) => name.toLowerCase().replaceAll('-', '_'))
  return [...byFold.values()].flatMap((names) => {
    if (new Set(names.map((name) => named.get(name))).size < 2) return []
    const listed = names.toSorted().map((name) => `"${name}"`)
    const text = `${listed.join(' and ')} differ in letter case, "-" and "_" alone`
    return [{ ids: [...new Set(names.map((name) => named.get(name) ?? name))], text }]
  })
}

function pathOf(alias: string): string {
  return `aliases.${alias}`
}

function isPlainName(name: unknown): name is string {
  try {
    return parseSelector(name).kind === 'id'
  } catch {
    return false
  }
}
