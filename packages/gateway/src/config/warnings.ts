import type { Policy } from '@toolgate/core'
import { parseGroups } from '@toolgate/core/groups'
import { didYouMean } from '@toolgate/values'
import { matchesGlob, parseSelector } from '@toolgate/core/toolset'
import type { GatewayConfig } from './config.ts'
import type { ConfigPath } from './problems.ts'

/** A name in the configuration that no tool can have. */
interface NameWarning {
  readonly code: 'selector_unmatched'
  /** Its path in the file. */
  readonly at: ConfigPath
  /** Its path in the gate's warnings. */
  readonly path: string
  readonly text: string
}

/**
 * Returns the names that no tool can have.
 *
 * Servers, tags and categories are known from the file: every tool has the namespace of its server, and tags come from
 * overlays only. The names of tools are known only when the servers run.
 */
export function findNameWarnings(config: NamingConfig): readonly NameWarning[] {
  const known = namesOf(config)
  const definitions = new Map(config.groups.map(({ name, tools }) => [name, { tools }]))
  const groups = parseGroups(definitions, new Map(Object.entries(config.aliases ?? {}))).selectors
  return written(config).flatMap(({ at, path, text, isTag = false }) => {
    const problem = problemOf(
      isTag ? { kind: 'tag', text, value: text } : parseSelector(text, groups, 'servers'),
      known,
    )
    return problem === undefined ? [] : [{ code: 'selector_unmatched', at, path, text: problem }]
  })
}

type ParsedSelector = ReturnType<typeof parseSelector>
type NamingConfig = Pick<
  GatewayConfig,
  'servers' | 'groups' | 'aliases' | 'labels' | 'apps' | 'policy' | 'limits' | 'calls'
>

interface KnownNames {
  readonly servers: readonly string[]
  readonly tag: ReadonlySet<string>
  readonly category: ReadonlySet<string>
}

/** The gateway's own tools, which have no namespace. */
const OWN_TOOLS = ['call_tool', 'get_tool_details', 'request_tools', 'search_tools']

function namesOf({ servers }: NamingConfig): KnownNames {
  const overlays = servers.flatMap(({ tools }) => [...tools.values()])
  return {
    servers: servers.map(({ name }) => name),
    tag: new Set(overlays.flatMap(({ tags = [] }) => tags)),
    category: new Set(overlays.flatMap(({ category }) => category ?? [])),
  }
}

function problemOf(selector: ParsedSelector, known: KnownNames): string | undefined {
  switch (selector.kind) {
    case 'tag':
    case 'category': {
      const { kind, value } = selector
      if (known[kind].has(value)) return undefined
      return `no overlay gives a tool the ${kind} "${value}"${didYouMean(value, known[kind])}`
    }
    case 'id':
      // An alias and its target are checked together elsewhere.
      return selector.target === undefined ? problemOfId(selector.text, known.servers) : undefined
    case 'glob': {
      const { namespace, name, text } = selector
      if (namespace === undefined) return undefined
      if (namespace.length === 1 && namespace[0] === '')
        return OWN_TOOLS.some((tool) => matchesGlob(name, tool)) ? undefined : bare(text)
      if (known.servers.some((server) => matchesGlob(namespace, server))) return undefined
      return noServer(text, text.slice(0, text.indexOf(':')), known.servers)
    }
    case 'server':
      return known.servers.includes(selector.server)
        ? undefined
        : noServer(selector.text, selector.server, known.servers)
    case 'resource':
    case 'prompt': {
      const { server, text } = selector
      if (known.servers.some((name) => matchesGlob(server, name))) return undefined
      return noServer(text, server.join('*'), known.servers)
    }
    default:
      return undefined
  }
}

function problemOfId(id: string, servers: readonly string[]): string | undefined {
  const colon = id.indexOf(':')
  if (colon === -1) return OWN_TOOLS.includes(id) ? undefined : bare(id)
  const namespace = id.slice(0, colon)
  return servers.includes(namespace) ? undefined : noServer(id, namespace, servers)
}

function bare(name: string): string {
  return `"${name}" names no tool: every tool of a server has its name before it, as in "files:${name}"; "*:${name}" names it in any server`
}

function noServer(text: string, namespace: string, servers: readonly string[]): string {
  const what = /^(?:resource|prompt|server):/.test(text) ? 'nothing' : 'no tool'
  return `"${text}" names ${what}: no server is named "${namespace}"${didYouMean(namespace, servers)}`
}

interface WrittenName {
  readonly at: ConfigPath
  readonly path: string
  readonly text: string
  readonly isTag?: true
}

/** Returns every selector of the file with its path. */
function written({
  groups,
  aliases = {},
  labels = {},
  apps = [],
  policy,
  limits,
  calls,
}: NamingConfig): readonly WrittenName[] {
  return [
    ...inPolicies(policy, ['policy'], 'policy'),
    ...limits.map((limit, i) => inEntry(limit, ['limits', i], `limits[${i}]`)),
    ...(calls?.concurrency ?? []).map((cap, i) => inEntry(cap, ['calls', 'concurrency', i], `concurrency[${i}]`)),
    ...Object.entries(aliases).map(([alias, text]) => ({ at: ['aliases', alias], path: `aliases.${alias}`, text })),
    ...Object.entries(labels).flatMap(([label, texts]) => inList(texts, ['labels', label], `labels.${label}`)),
    ...groups.flatMap(({ name, tools }) => inList(tools, ['groups', name, 'tools'], `groups.${name}.tools`)),
    ...apps.flatMap(({ name, tools, policy: own }) => [
      ...inList(tools, ['apps', name, 'tools'], `apps.${name}.tools`),
      ...inPolicies(own, ['apps', name, 'policy'], `apps.${name}.policy`),
    ]),
  ]
}

function inPolicies(policies: readonly Policy[], at: ConfigPath, path: string): readonly WrittenName[] {
  return policies.flatMap((policy, p) => [
    ...(['deny', 'allow', 'ask'] as const).flatMap((kind) =>
      (policy[kind] ?? []).flatMap((clause, c) => {
        const place = [...at, p, kind, c]
        const match = typeof clause === 'string' ? clause : clause.match
        return [match].flat().map((text) => ({ at: place, path: `${path}[${p}].${kind}[${c}]`, text }))
      }),
    ),
    ...(policy.requireTags ?? []).map((text, t) => ({
      at: [...at, p, 'requireTags', t],
      path: `${path}[${p}].requireTags[${t}]`,
      text,
      isTag: true as const,
    })),
  ])
}

function inList(selectors: readonly string[], at: ConfigPath, path: string): readonly WrittenName[] {
  return selectors.map((text, i) => ({ at: [...at, i], path: `${path}[${i}]`, text }))
}

/** Returns the selector of a limit or cap: a field of an object, or the start of a text. */
function inEntry(entry: string | { readonly match: string }, at: ConfigPath, path: string): WrittenName {
  return { at, path, text: typeof entry === 'string' ? entry.slice(0, entry.lastIndexOf(':')) : entry.match }
}
