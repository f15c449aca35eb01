import { ConfigError, messageOf, nearestOf } from '@toolgate/values'
import { type Glob, matchesGlob, parseGlob } from './glob.ts'
import { lesserUrisOf } from './lesser-uris.ts'
import { isUnlisted } from './own-tool.ts'
import { PROMPT_PREFIX, RESERVED_NAMESPACES, RESOURCE_PREFIX } from './tool-id.ts'
import type { Tool } from './tool.ts'
import { matchesUri, toPlainGlob } from './uri-glob.ts'

/**
 * A parsed selector: the notation that names tools.
 *
 * | text | names |
 * |---|---|
 * | `files:read_file` | the tool with exactly this id |
 * | `search` | the tool `search` that has no namespace |
 * | `files:*`, `files:read_*` | tools of one namespace, by a glob whose `*` matches any characters |
 * | `*:delete_*` | tools of any namespace or none |
 * | `*` | every tool |
 * | `group:web` | the tools of a group |
 * | `tag:read`, `category:search`, `hint:destructive` | tools with this tag, category or hint |
 * | `resource:files:file:///docs/*` | resources and templates of a server, by a glob of their URI |
 * | `prompt:git:*` | prompts of a server, by a glob of their name |
 * | `server:files` | everything of a server, of all kinds; only in `deny`, `ask` and halts |
 */
export type Selector =
  /** `target`: the id that `text` is an alias of. */
  | { readonly kind: 'id'; readonly text: string; readonly target?: string }
  | { readonly kind: 'glob'; readonly text: string; readonly namespace: Glob | undefined; readonly name: Glob }
  | { readonly kind: 'group'; readonly text: string; readonly group: string; readonly members: readonly Selector[] }
  /** A member of a group: the tools whose own definitions join the group. */
  | { readonly kind: 'joined'; readonly text: string; readonly group: string }
  | { readonly kind: 'tag' | 'category'; readonly text: string; readonly value: string }
  | { readonly kind: 'hint'; readonly text: string; readonly hint: Hint }
  | ItemSelector
  | { readonly kind: 'server'; readonly text: string; readonly server: string }

/** Matches resources and templates by their URI, or prompts by their name. In an `allow`, only these selectors match them. */
export interface ItemSelector {
  readonly kind: 'resource' | 'prompt'
  readonly text: string
  readonly server: Glob
  readonly name: Glob
  /** The name with unnecessary percent-encoding removed. */
  readonly plain: Glob
}

/** The selectors of each group, by its name, and the aliases of tools. */
export interface GroupSelectors extends ReadonlyMap<string, readonly Selector[]> {
  readonly aliases?: ReadonlyMap<string, string>
}

/**
 * How `hint:` selectors match. A clause that allows matches only certain hints; a clause that denies or asks also matches
 * possible hints.
 */
type HintReading = 'certain' | 'possible'

const MAX_LENGTH = 300
/** The longest URI together with its server's name. */
const MAX_ITEM_LENGTH = 2300
const NO_GROUPS: GroupSelectors = new Map()

/** What a selector may match in its place: tools only, items of any kind, or items and whole servers. */
type SelectorScope = 'tools' | 'items' | 'servers'

/** Parses a selector. @throws {ConfigError} `selector_invalid`, with the selector and the problem */
export function parseSelector(
  text: unknown,
  groups: GroupSelectors = NO_GROUPS,
  scope: SelectorScope = 'items',
): Selector {
  const selector = readSelector(text, groups)
  if (scope === 'tools' && (selector.kind === 'resource' || selector.kind === 'prompt'))
    throw invalid(text, `names ${selector.kind}s, and only tools can be named here`)
  if (scope !== 'servers' && selector.kind === 'server')
    throw invalid(text, 'names everything of a server, which only deny, ask and halts can')
  return selector
}

function readSelector(text: unknown, groups: GroupSelectors): Selector {
  if (typeof text !== 'string' || text === '') throw invalid(text, 'must be a string that is not empty')
  const max = isItemText(text) ? MAX_ITEM_LENGTH : MAX_LENGTH
  if (text.length > max) throw invalid(`${text.slice(0, 40)}…`, `has more than ${max} characters`)
  if (/\s/.test(text)) throw invalid(text, 'must not hold spaces')
  const colon = text.indexOf(':')
  if (colon === -1) return text.includes('*') ? bareGlob(text) : plainName(text, groups)
  const head = text.slice(0, colon)
  const rest = text.slice(colon + 1)
  if (head === '' || rest === '') throw invalid(text, 'has nothing on one side of its ":"')
  checkKind(text, head, rest, groups)
  if (head === 'resource' || head === 'prompt') return itemSelector(text, head, rest)
  if (rest.includes(':')) throw invalid(text, 'has more than one ":"')
  switch (head) {
    case 'server':
      if (rest.includes('*')) throw invalid(text, 'names one server; "*" is not read there')
      return { kind: head, text, server: rest }
    case 'group':
      return groupSelector(text, rest, groups)
    case 'tag':
    case 'category':
      if (rest.includes('*')) throw invalid(text, `names one ${head}; "*" is not read there`)
      return { kind: head, text, value: rest }
    case 'hint':
      return hintSelector(text, rest)
    default:
      if (!text.includes('*')) return plainName(text, groups)
      return { kind: 'glob', text, namespace: isStars(head) ? undefined : parseGlob(head), name: parseGlob(rest) }
  }
}

/** Parses a selector. @throws {ConfigError} `selector_invalid` with the path of the selector */
export function parseSelectorAt(path: string, text: unknown, groups: GroupSelectors, scope?: SelectorScope): Selector {
  try {
    return parseSelector(text, groups, scope)
  } catch (cause) {
    throw new ConfigError(path, messageOf(cause), { code: 'selector_invalid', cause })
  }
}

/** Returns whether a selector matches an item. Only `resource:`, `prompt:` and `server:` match items other than tools. */
export function matchesSelector(selector: Selector, tool: Tool, reading: HintReading): boolean {
  if (tool.kind !== 'tool') return matchesItem(selector, tool, reading)
  switch (selector.kind) {
    case 'id':
      if (selector.target === undefined) return selector.text === tool.id
      // A tool whose id equals an alias is denied with the alias, and never allowed by it.
      return selector.target === tool.id || (reading === 'possible' && selector.text === tool.id)
    case 'glob':
      return matchesNamespace(selector.namespace, tool.namespace) && matchesGlob(selector.name, tool.name)
    case 'group':
      return selector.members.some((member) => matchesSelector(member, tool, reading))
    case 'joined':
      return tool.groups.includes(selector.group)
    case 'tag':
      return tool.tags.includes(selector.value)
    case 'category':
      return tool.category === selector.value
    case 'hint':
      return reading === 'certain' ? certainlyHas(tool, selector.hint) : possiblyHas(tool, selector.hint)
    case 'server':
      return tool.namespace === selector.server
    case 'resource':
    case 'prompt':
      return false
  }
}

function matchesItem(selector: Selector, item: Tool, reading: HintReading): boolean {
  const { kind, namespace, name, uri } = item
  if (selector.kind === 'server') return selector.server === namespace
  if (selector.kind !== (kind === 'prompt' ? 'prompt' : 'resource')) return false
  if (!matchesGlob(selector.server, namespace ?? '')) return false
  if (uri === undefined) return matchesGlob(selector.name, name)
  // Only the client says that an unlisted URI is a separate resource, so shorter URIs count, too.
  const others = reading === 'possible' && isUnlisted(item) ? lesserUrisOf(uri) : []
  return [uri, ...others].some((one) => matchesUri(selector.name, selector.plain, one))
}

const NO_NAMESPACE = ''

/** `*` alone matches every tool. Any other glob without a namespace matches tools without one. */
function matchesNamespace(glob: Glob | undefined, namespace: string | undefined): boolean {
  if (glob === undefined) return true
  return namespace === undefined ? glob.length === 1 && glob[0] === NO_NAMESPACE : matchesGlob(glob, namespace)
}

function plainName(text: string, { aliases }: GroupSelectors): Selector {
  const target = aliases?.get(text)
  return target === undefined ? { kind: 'id', text } : { kind: 'id', text, target }
}

function bareGlob(text: string): Selector {
  return { kind: 'glob', text, namespace: isStars(text) ? undefined : [NO_NAMESPACE], name: parseGlob(text) }
}

function isStars(text: string): boolean {
  return /^\*+$/.test(text)
}

const KINDS: ReadonlySet<string> = RESERVED_NAMESPACES

function isItemText(text: string): boolean {
  return text.startsWith(RESOURCE_PREFIX) || text.startsWith(PROMPT_PREFIX)
}

function itemSelector(text: string, kind: ItemSelector['kind'], rest: string): Selector {
  const colon = rest.indexOf(':')
  if (colon < 1 || colon === rest.length - 1)
    throw invalid(
      text,
      `must be written ${kind}:<server>:<${kind === 'resource' ? 'uri' : 'name'}>, as in ${kind}:files:*`,
    )
  const name = parseGlob(rest.slice(colon + 1))
  const plain = kind === 'resource' ? toPlainGlob(name) : name
  return { kind, text, server: parseGlob(rest.slice(0, colon)), name, plain }
}

/** `GROUP:WEB` could match no tool, because these namespaces are reserved in any letter case. */
function checkKind(text: string, head: string, rest: string, groups: GroupSelectors): void {
  const kind = head.toLowerCase()
  if (head === kind || !KINDS.has(kind)) return
  const meant = kind === 'group' ? (nearestOf(rest, groups.keys()) ?? rest) : rest
  throw invalid(text, `"${head}" must be written "${kind}"; did you mean "${kind}:${meant}"?`)
}

function groupSelector(text: string, group: string, groups: GroupSelectors): Selector {
  const members = groups.get(group)
  if (!members) {
    const near = nearestOf(group, groups.keys())
    const meant = near === undefined ? '' : `; did you mean "group:${near}"?`
    throw invalid(text, `names no group; the groups are ${[...groups.keys()].join(', ') || '(none)'}${meant}`)
  }
  return { kind: 'group', text, group, members }
}

function hintSelector(text: string, name: string): Selector {
  const hint = HINTS.find((known) => known === name)
  if (!hint) throw invalid(text, `names no hint; the hints are ${HINTS.join(', ')}`)
  return { kind: 'hint', text, hint }
}

function invalid(text: unknown, problem: string): ConfigError {
  return new ConfigError(`selector ${JSON.stringify(text)}`, problem, { code: 'selector_invalid' })
}

export const HINTS = ['read-only', 'destructive', 'idempotent', 'open-world'] as const
type Hint = (typeof HINTS)[number]

/**
 * Returns whether a tool certainly has a hint, from its own author or the operator.
 *
 * An `allow` requires this: a claim of an untrusted upstream allows nothing.
 */
export function certainlyHas(tool: Tool, hint: Hint): boolean {
  return tool.hintsTrusted && claims(tool, hint)
}

/**
 * Returns whether a tool may have a hint. `deny` and `ask` use this.
 *
 * An untrusted claim can add a hint but never remove one, so MCP's default applies as well.
 */
export function possiblyHas(tool: Tool, hint: Hint): boolean {
  return claims(tool, hint) || (!tool.hintsTrusted && DEFAULT_HINTS.has(hint))
}

/** The defaults of MCP 2026-07-28 for a tool without annotations. */
const DEFAULT_HINTS: ReadonlySet<Hint> = new Set<Hint>(['destructive', 'open-world'])

function claims({ annotations }: Tool, hint: Hint): boolean {
  switch (hint) {
    case 'read-only':
      return annotations.readOnlyHint === true
    case 'destructive':
      return annotations.readOnlyHint !== true && annotations.destructiveHint !== false
    case 'idempotent':
      return annotations.idempotentHint === true
    case 'open-world':
      return annotations.openWorldHint !== false
  }
}

interface NamePattern {
  /** `undefined`: any namespace, or none. */
  readonly namespace: Glob | undefined
  readonly name: Glob
}

/**
 * Returns whether a tool could match both selectors, including a future tool.
 *
 * Names are compared as patterns. A tag, category or hint overlaps only with itself.
 */
export function selectorsOverlap(a: Selector, b: Selector): boolean {
  const [left, right] = [toPattern(a), toPattern(b)]
  if (!left || !right) return a.kind === b.kind && a.text === b.text
  return namespacesOverlap(left.namespace, right.namespace) && globsOverlap(left.name, right.name)
}

function toPattern(selector: Selector): NamePattern | undefined {
  if (selector.kind === 'glob') return selector
  if (selector.kind !== 'id') return undefined
  const [name = '', namespace = ''] = (selector.target ?? selector.text).split(':').toReversed()
  return { namespace: [namespace], name: [name] }
}

function namespacesOverlap(a: Glob | undefined, b: Glob | undefined): boolean {
  return a === undefined || b === undefined || globsOverlap(a, b)
}

function globsOverlap(a: Glob, b: Glob): boolean {
  if (a.length === 1) return matchesGlob(b, a[0] ?? '')
  if (b.length === 1) return matchesGlob(a, b[0] ?? '')
  // Stars match anything in between, so only the two ends can conflict.
  const [headA = '', headB = '', tailA = '', tailB = ''] = [a[0], b[0], a.at(-1), b.at(-1)]
  const headsAgree = headA.startsWith(headB) || headB.startsWith(headA)
  return headsAgree && (tailA.endsWith(tailB) || tailB.endsWith(tailA))
}

/** Returns the entries of a comma-separated text. */
export function splitEntries(text: string): readonly string[] {
  return text.split(',').map((entry) => entry.trim())
}

/** The characters of tool ids in real catalogs. Other characters, such as `;` and quotes, are probably mistakes. */
const LISTED = /^[\p{L}\p{N}\p{M}_.*:@$/+~#-]+$/u

/**
 * Checks that a selector in a text list is one entry.
 *
 * `a:1/60;b:1/60` would otherwise be one limit for a tool named `a:1/60;b`, which limits nothing. Write a selector with
 * other characters as an object, in code or in a file.
 *
 * @throws {ConfigError} naming the entry
 */
export function checkEntry(path: string, entry: string, selector: string): void {
  // `parseSelector` reports spaces.
  if (/\s/.test(selector) || (LISTED.test(selector) && !/:\d+\/\d/.test(selector))) return
  throw new ConfigError(
    path,
    `${JSON.stringify(entry)} is not one entry: entries have commas between them, and a selector holds letters, digits and _ . * : @ $ / + ~ # -`,
    { code: 'selector_invalid' },
  )
}
