import { ConfigError, didYouMean, nearestNames, nearestOf, UnknownToolError } from '@toolgate/values'
import type { Source } from '../tools/catalog.ts'
import { type Glob, matchesGlob } from '../tools/glob.ts'
import { type ItemSelector, matchesSelector, type Selector } from '../tools/selector.ts'
import type { Tool } from '../tools/tool.ts'
import { createToolset, type Toolset } from '../tools/toolset.ts'
import { toNormalUri } from '../tools/uri.ts'
import { CLAUSE_KINDS, type ParsedPolicy } from './parse.ts'

/** A selector and its path. */
export interface WrittenSelector {
  readonly path: string
  readonly selector: Selector
}

/** A selector that no tool matches. */
export interface UnknownName {
  readonly path: string
  readonly text: string
  readonly selector: Selector
  /** Whether it is certainly a mistake: a tool name, or a tag or category that is near a known one. */
  readonly isMistake: boolean
}

/** Returns every selector of policies, including required tags. */
export function selectorsOfPolicies(policies: readonly ParsedPolicy[], path = 'policy'): readonly WrittenSelector[] {
  return policies.flatMap((policy, p) => [
    ...CLAUSE_KINDS.flatMap((kind) =>
      (policy[kind] ?? []).flatMap(({ index, selectors, run, path: own }) =>
        [...selectors, ...(run?.patterns ?? []).map(({ selector }) => selector)].map((selector) => ({
          path: policy.variable === undefined ? `${path}[${p}].${kind}[${index}]` : own,
          selector,
        })),
      ),
    ),
    ...policy.requireTags.map((value, i): WrittenSelector => ({
      path: `${path}[${p}].requireTags[${i}]`,
      selector: { kind: 'tag', text: `tag:${value}`, value },
    })),
  ])
}

/** Returns the selectors of a list of limits or caps. */
export function selectorsOfList(
  list: readonly { readonly selector: Selector; readonly path?: string }[],
  path: string,
): readonly WrittenSelector[] {
  return list.map(({ selector, path: own }, i) => ({ path: own ?? `${path}[${i}]`, selector }))
}

/** Returns the selectors that no tool of the snapshot matches. `*` matches everything, so it is never unknown. */
export function findUnknown(
  written: readonly WrittenSelector[],
  snapshot: Toolset,
  others: OtherItems = NO_OTHERS,
): readonly UnknownName[] {
  return written.flatMap(({ path, selector }): readonly UnknownName[] => {
    if (isItemSelector(selector)) {
      const problem = problemOfItem(selector, snapshot, others)
      return problem ? [{ path, selector, ...problem }] : []
    }
    return isEverything(selector) || namesATool(selector, snapshot)
      ? []
      : [{ path, selector, ...describe(selector, snapshot) }]
  })
}

/** The items of a catalog other than tools. */
export interface OtherItems {
  readonly items: Toolset
  /** Sources that make resources on demand. These can have any URI. */
  readonly sources: readonly Source[]
}

const NO_OTHERS: OtherItems = { items: createToolset([]), sources: [] }

type ServerOrItems = Extract<Selector, { readonly server: unknown }>

function isItemSelector(selector: Selector): selector is ServerOrItems {
  return 'server' in selector
}

/** Returns the problem of a selector. A name without `*` that no item has is a mistake, as with tools. */
function problemOfItem(
  selector: ServerOrItems,
  snapshot: Toolset,
  { items, sources }: OtherItems,
): Pick<UnknownName, 'text' | 'isMistake'> | undefined {
  const { text, kind, server } = selector
  const servers = serversOf(snapshot, items, sources)
  const isOf = (name: string) => (typeof server === 'string' ? server === name : matchesGlob(server, name))
  if (![...servers].some(isOf)) {
    const named = typeof server === 'string' ? server : server.join('*')
    return { text: `"${text}" names no server${didYouMean(named, servers)}`, isMistake: !text.includes('*') }
  }
  const canMake = (source: Source) =>
    source.unlisted && (source.namespaces === undefined || source.namespaces.some(isOf))
  if (kind === 'server' || items.tools.some((item) => matchesSelector(selector, item, 'possible'))) return undefined
  if (selector.kind === 'resource' && sources.some(canMake)) return problemOfUri(selector)
  return {
    text: `"${text}" names no ${kind}${didYouMean(text, items.ids)}`,
    isMistake: !text.includes('*'),
  }
}

/** A server that makes resources on demand may have any URI in normal form, but only the templates that it lists. */
function problemOfUri({ text, name }: ItemSelector): Pick<UnknownName, 'text' | 'isMistake'> | undefined {
  const isMistake = name.length === 1
  if (name.some((part) => /[{}]/.test(part)))
    return { text: `"${text}" names no template: its server does not list it`, isMistake }
  if (mayBeNormalUri(name)) return undefined
  return { text: `"${text}" names no resource: it is not in normal form, and its server does not list it`, isMistake }
}

/** Replacements for a star, enough to form any normal URI from the parts around it. */
const FILLS = ['x', 'x/x', '0', '']

function mayBeNormalUri(glob: Glob): boolean {
  // A star before the path may stand for any scheme and host.
  if (glob.length > 1 && !/^[^:]+:(?:\/\/[^/]*\/|[^/])/.test(glob[0] ?? '')) return true
  return FILLS.some((fill) => toNormalUri(glob.join(fill)) !== undefined)
}

function serversOf(snapshot: Toolset, items: Toolset, sources: readonly Source[]): ReadonlySet<string> {
  const listed = [...snapshot, ...items].flatMap(({ namespace }) => namespace ?? [])
  return new Set([...listed, ...sources.flatMap(({ namespaces = [] }) => namespaces)].filter((name) => name !== ''))
}

const MAX_TOLD = 20

/**
 * Checks selectors against fixed tools.
 *
 * A glob, a group, and a tag that is not near a known one may match nothing: policies may be shared.
 *
 * @throws {ConfigError} `selector_invalid` for certain mistakes, with the path of the first and the text of all
 */
export function checkKnown(written: readonly WrittenSelector[], snapshot: Toolset, others?: OtherItems): void {
  refuseMistakes(findUnknown(written, snapshot, others), snapshot)
}

/** Rejects certain mistakes. @throws {ConfigError} `selector_invalid`, like `checkKnown` */
export function refuseMistakes(unknown: readonly UnknownName[], snapshot: Toolset): void {
  const mistakes = unknown.filter(({ isMistake }) => isMistake)
  const [first, ...others] = mistakes
  if (!first) return
  const more = others.slice(0, MAX_TOLD).map(({ path, text }) => `${path}: ${text}`)
  if (others.length > MAX_TOLD) more.push(`and ${others.length - MAX_TOLD} more`)
  const { text } = first.selector
  throw new ConfigError(first.path, [first.text, ...more].join('\n'), {
    code: 'selector_invalid',
    cause: new UnknownToolError(text, nearestNames(text, snapshot.ids, 3)),
  })
}

/** Returns whether a source with unknown tools may have a tool that the selector matches. */
export function mayStillCome(selector: Selector, unlisted: readonly Source[]): boolean {
  return unlisted.some(({ namespaces }) => namespaces === undefined || mayBeIn(selector, namespaces))
}

function mayBeIn(selector: Selector, namespaces: readonly string[]): boolean {
  if (selector.kind === 'id') return namespaces.includes(namespaceOf(selector.text))
  if (selector.kind === 'server') return namespaces.includes(selector.server)
  if (selector.kind === 'resource' || selector.kind === 'prompt')
    return namespaces.some((one) => matchesGlob(selector.server, one))
  const { namespace } = selector.kind === 'glob' ? selector : {}
  return namespace === undefined || namespaces.some((one) => matchesGlob(namespace, one))
}

function namespaceOf(id: string): string {
  const colon = id.indexOf(':')
  return colon === -1 ? '' : id.slice(0, colon)
}

function isEverything(selector: Selector): boolean {
  return selector.kind === 'glob' && selector.namespace === undefined && selector.name.every((part) => part === '')
}

/** The tags and categories of the tools of a snapshot. */
interface SnapshotLabels {
  readonly tag: ReadonlySet<string>
  readonly category: ReadonlySet<string>
}

const labelsOf = new WeakMap<Toolset, SnapshotLabels>()

function labelsIn(snapshot: Toolset): SnapshotLabels {
  let labels = labelsOf.get(snapshot)
  if (!labels) {
    const categories = snapshot.tools.flatMap(({ category }) => category ?? [])
    labels = { tag: new Set(snapshot.tools.flatMap(({ tags }) => tags)), category: new Set(categories) }
    labelsOf.set(snapshot, labels)
  }
  return labels
}

function namesATool(selector: Selector, snapshot: Toolset): boolean {
  // The tool of an alias is checked once, where the alias is written.
  if (selector.kind === 'id') return selector.target !== undefined || snapshot.has(selector.text)
  if (selector.kind === 'tag' || selector.kind === 'category')
    return labelsIn(snapshot)[selector.kind].has(selector.value)
  return snapshot.tools.some((tool: Tool) => matchesSelector(selector, tool, 'possible'))
}

function describe(selector: Selector, snapshot: Toolset): Pick<UnknownName, 'text' | 'isMistake'> {
  const { text } = selector
  if (selector.kind === 'tag' || selector.kind === 'category') {
    const { kind, value } = selector
    const known = labelsIn(snapshot)[kind]
    return {
      text: `no tool has the ${kind} "${value}"${didYouMean(value, known)}`,
      isMistake: nearestOf(value, known) !== undefined,
    }
  }
  if (selector.kind !== 'id') return { text: `"${text}" names no tool`, isMistake: false }
  return { text: `"${text}" names no tool${nearText(text, snapshot)}`, isMistake: true }
}

function nearText(text: string, snapshot: Toolset): string {
  const elsewhere = snapshot.tools.find((tool) => tool.name === text)
  if (elsewhere) return `; "${elsewhere.id}" has that name, "*:${text}" would name it in any namespace`
  const near = nearestNames(text, snapshot.ids, 3)
  return near.length > 0 ? `; the nearest are ${near.map((id) => `"${id}"`).join(', ')}` : ''
}
