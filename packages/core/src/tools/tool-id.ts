import { ConfigError } from '@toolgate/values/errors'

/**
 * The kinds of catalog items. Resources, resource templates and prompts are what MCP servers offer besides tools: the same
 * code decides, calls and records them.
 */
export const ITEM_KINDS = ['tool', 'resource', 'template', 'prompt'] as const
export type ItemKind = (typeof ITEM_KINDS)[number]

/** Namespaces that selectors use themselves, in any letter case. */
export const RESERVED_NAMESPACES: ReadonlySet<string> = new Set([
  'group',
  'tag',
  'category',
  'hint',
  'resource',
  'prompt',
  'server',
])

/** The most characters in a name. */
const MAX_NAME_LENGTH = 128
/** Letters, digits, marks and punctuation of any script. No spaces, controls, lone surrogates, and no `:` or `*`, which selectors use. */
const USABLE = /^[\p{L}\p{N}\p{M}\p{P}\p{S}]+$/u
const SELECTOR_MARKS = /[:*]/

/** The id prefixes of resources, templates and prompts. They are reserved, so no tool id starts with them. */
export const RESOURCE_PREFIX = 'resource:'
export const PROMPT_PREFIX = 'prompt:'

/** The id of a resource, a template or a prompt. */
export type ItemId = `${typeof RESOURCE_PREFIX | typeof PROMPT_PREFIX}${string}`

/** Returns whether an id belongs to an item that is not a tool. Accepts any value that a client sends. */
export function isItemId(id: unknown): id is string {
  if (typeof id !== 'string') return false
  return id.startsWith(RESOURCE_PREFIX) || id.startsWith(PROMPT_PREFIX)
}

/** Returns the kind of an id, whether or not the item exists. Templates are recognised only by their braces. */
export function kindOfId(id: string): ItemKind {
  if (id.startsWith(PROMPT_PREFIX)) return 'prompt'
  if (!id.startsWith(RESOURCE_PREFIX)) return 'tool'
  return /[{}]/.test(id) ? 'template' : 'resource'
}

/**
 * Returns the name that limits and caps count an item as. Resources and templates count as one per server, because a client
 * can name any number of URIs.
 */
export function countedAs({
  kind,
  id,
  namespace,
}: {
  kind: ItemKind
  id: string
  namespace: string | undefined
}): string {
  return kind === 'resource' || kind === 'template' ? `${RESOURCE_PREFIX}${namespace}` : id
}

/** Returns the kind of an id, in the form that records use: `undefined` for tools. */
export function recordedKind(id: string): Exclude<ItemKind, 'tool'> | undefined {
  const kind = kindOfId(id)
  return kind === 'tool' ? undefined : kind
}

/** Returns the id of a tool: `namespace:name`, or `name` alone. */
export function toToolId(namespace: string | undefined, name: string): string {
  return namespace === undefined ? name : `${namespace}:${name}`
}

/** Checks a name. @throws {ConfigError} `tool_invalid` for a name that no selector can match */
export function checkName(name: unknown): asserts name is string {
  const problem = findNameProblem(name)
  if (problem) throw new ConfigError(`tool ${JSON.stringify(name)}`, `the name ${problem}`, { code: 'tool_invalid' })
}

/** Checks a namespace. @throws {ConfigError} `tool_invalid` for a namespace that no selector can match, or a reserved one */
export function checkNamespace(namespace: unknown): asserts namespace is string | undefined {
  if (namespace === undefined) return
  const isReserved = typeof namespace === 'string' && RESERVED_NAMESPACES.has(namespace.toLowerCase())
  const problem = findNameProblem(namespace) ?? (isReserved ? 'is reserved for selectors' : undefined)
  if (problem)
    throw new ConfigError(`namespace ${JSON.stringify(namespace)}`, `the namespace ${problem}`, {
      code: 'tool_invalid',
    })
}

/**
 * Compares two ids by code point, which is also the order of their UTF-8 bytes.
 *
 * JavaScript's own `<` compares UTF-16 units, which puts U+FFFD after an emoji.
 */
export function compareToolIds(a: string, b: string): number {
  const length = Math.min(a.length, b.length)
  for (let i = 0; i < length; i++) {
    const x = a.charCodeAt(i)
    const y = b.charCodeAt(i)
    if (x !== y) return rank(x) - rank(y)
  }
  return a.length - b.length
}

/** Surrogates sort above all other UTF-16 units. */
function rank(unit: number): number {
  return unit >= 0xd800 && unit <= 0xdfff ? unit + 0x10000 : unit
}

/** Returns why a text is not a valid name; `undefined` if it is valid. */
export function findNameProblem(name: unknown): string | undefined {
  if (typeof name !== 'string' || name === '') return 'must be a string that is not empty'
  if (name.length > MAX_NAME_LENGTH) return `has ${name.length} characters; at most ${MAX_NAME_LENGTH} are allowed`
  if (SELECTOR_MARKS.test(name)) return 'must not hold ":" or "*", which selectors use'
  if (!USABLE.test(name)) return 'must not hold spaces, control characters or unpaired surrogates'
  return undefined
}
