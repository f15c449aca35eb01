import { isDeepStrictEqual } from 'node:util'
import type { AppRules, ImportedGroup } from '../decide/layers/app.ts'
import { checkShape, ConfigError, messageOf, nearestNames, shapeOf, toNamedMap, ToolgateError } from '@toolgate/values'
import type { ParsedPolicy } from '../policy/parse.ts'
import { listPolicies } from '../policy/policy.ts'
import type { Policies } from '../policy/policy.ts'
import { selectorsOfPolicies, type WrittenSelector } from '../policy/unknown-names.ts'
import { definitionOf } from '../tools/definition-hash.ts'
import type { Group, Groups } from '../tools/groups.ts'
import { parseSelector, type Selector } from '../tools/selector.ts'
import { defineTool, isTool, type Tool, type ToolDefinition } from '../tools/tool.ts'

/** A named bundle of imported groups and own tools. */
export interface App {
  readonly title?: string
  /** Groups of the gate, by name. */
  readonly import?: readonly AppImport[]
  /** Other tools: selectors, or definitions, which are added to the gate's catalog. */
  readonly tools?: readonly OwnTool[]
  /** Combined with the gate's policies, so it can only tighten. */
  readonly policy?: Policies
  /** Instructions for the model, sent to a client when it connects. */
  readonly instructions?: string
}

/** An imported group. `visibility` can only tighten: listed only while available, or not at all. */
export type AppImport = string | { readonly group: string; readonly visibility?: 'conditional' | 'hidden' }

export type AppsInput = Readonly<Record<string, App>> | ReadonlyMap<string, App>

/** An app, for display and serving. */
export interface AppInfo {
  readonly name: string
  readonly title: string | undefined
  readonly instructions: string | undefined
  /** The groups it imports, by name. */
  readonly groups: readonly { readonly name: string; readonly visibility: 'conditional' | 'hidden' | undefined }[]
}

export interface ParsedApp extends AppRules {
  readonly info: AppInfo
}

/** A parsed app. */
interface AppGround {
  readonly groups: Groups
  readonly definitions: ReadonlyMap<string, Group>
  parsePolicy(policy: Policies | undefined, root?: string): readonly ParsedPolicy[]
}

const APP = shapeOf<App>({ title: true, import: true, tools: true, policy: true, instructions: true }, 'field')
const IMPORT = shapeOf<Exclude<AppImport, string>>({ group: true, visibility: true }, 'field')
const NAME = /^[A-Za-z0-9](?:[A-Za-z0-9_-]{0,62}[A-Za-z0-9])?$/

/** Returns apps by name. */
export function listApps(apps: AppsInput = {}): ReadonlyMap<string, App> {
  return toNamedMap('apps', apps)
}

/**
 * Parses apps.
 *
 * @throws {ConfigError} naming the app, for an unknown group, or an invalid selector or clause
 */
export function parseApps(apps: ReadonlyMap<string, App>, ground: AppGround): ReadonlyMap<string, ParsedApp> {
  return new Map([...apps].map(([name, app]) => [name, parseApp(name, app, ground)]))
}

function parseApp(name: string, app: App, ground: AppGround): ParsedApp {
  const path = `apps.${name}`
  checkApp(path, name, app)
  const imports = (app.import ?? []).map((one, i) => parseImport(`${path}.import[${i}]`, one, ground.groups))
  const again = imports.findIndex(({ group }, i) => imports.findIndex((other) => other.group === group) < i)
  if (again !== -1)
    throw new ConfigError(`${path}.import[${again}]`, `imports the group "${imports[again]?.group}" a second time`)
  const own = readOwnTools(path, app.tools).map((tool, i) => ownSelector(`${path}.tools[${i}]`, tool, ground.groups))
  if (imports.length + own.length === 0) throw new ConfigError(path, 'must import a group or have tools')
  return {
    name,
    imports,
    own,
    groups: tightenGroups(imports, ground),
    policies: parseOwnPolicies(path, name, app, ground),
    info: Object.freeze({
      name,
      title: app.title,
      instructions: app.instructions,
      groups: Object.freeze(imports.map(({ group, visibility }) => Object.freeze({ name: group, visibility }))),
    }),
  }
}

function checkApp(path: string, name: string, app: App): void {
  if (!NAME.test(name))
    throw new ConfigError(
      path,
      'the name of an app has 1 to 64 letters, digits, "-" and "_", the last two not at an end',
    )
  checkShape(path, app, APP)
  for (const field of ['title', 'instructions'] as const)
    if (app[field] !== undefined && typeof app[field] !== 'string')
      throw new ConfigError(`${path}.${field}`, 'must be a text')
  for (const field of ['import', 'tools'] as const)
    if (app[field] !== undefined && !Array.isArray(app[field]))
      throw new ConfigError(`${path}.${field}`, 'must be a list')
}

function parseImport(path: string, one: AppImport, { selectors }: Groups): ImportedGroup {
  const written: unknown = typeof one === 'string' ? { group: one } : one
  if (typeof written !== 'object' || written === null)
    throw new ConfigError(path, 'must be the name of a group, or { group, visibility }')
  checkShape(path, written, IMPORT)
  const { group, visibility }: { group?: unknown; visibility?: unknown } = written
  const members = typeof group === 'string' ? selectors.get(group) : undefined
  if (typeof group !== 'string' || !members)
    throw new ConfigError(
      path,
      `no group is named ${JSON.stringify(group)}${didYouMean(String(group), selectors.keys())}`,
    )
  if (visibility !== undefined && visibility !== 'conditional' && visibility !== 'hidden')
    throw new ConfigError(`${path}.visibility`, 'must be conditional or hidden: an import can only tighten')
  return { group, members, visibility }
}

function ownSelector(path: string, text: string, { selectors }: Groups): Selector {
  if (text.startsWith('group:'))
    throw new ConfigError(path, `found "${text}": a group is imported, with "import"`, { code: 'selector_invalid' })
  try {
    return parseSelector(text, selectors)
  } catch (cause) {
    throw new ConfigError(path, messageOf(cause), { code: 'selector_invalid', cause })
  }
}

/** Returns the groups, with those that the app imports as conditional among the conditional ones. */
function tightenGroups(imports: readonly ImportedGroup[], { groups, definitions }: AppGround): Groups {
  const conditional = new Map(groups.conditional)
  for (const { group, visibility } of imports) {
    const definition = definitions.get(group)
    if (visibility !== 'conditional' || !definition) continue
    const { requires = [] } = groups.conditional.get(group) ?? {}
    if (!requires.includes(group)) conditional.set(group, { group: definition, requires: [group, ...requires] })
  }
  return { ...groups, conditional }
}

function parseOwnPolicies(path: string, name: string, { policy }: App, ground: AppGround): readonly ParsedPolicy[] {
  const written = listPolicies(policy)
  const isNamed = (i: number) => written[i]?.name !== undefined
  return ground
    .parsePolicy(policy, `${path}.policy`)
    .map((parsed, i) => (isNamed(i) ? parsed : { ...parsed, name: `app ${name}` }))
}

/** Returns the selectors of an app: its own tools and its policies. */
export function selectorsOfApp({ name, own, policies }: ParsedApp): readonly WrittenSelector[] {
  return [
    ...own.map((selector, i) => ({ path: `apps.${name}.tools[${i}]`, selector })),
    ...selectorsOfPolicies(policies, `apps.${name}.policy`),
  ]
}

/** Returns the error for an unknown app. */
export function unknownApp(name: unknown, apps: ReadonlyMap<string, ParsedApp>): ToolgateError {
  const asked = String(name).slice(0, 64).toWellFormed()
  return new ToolgateError('app_unknown', `No app is named "${asked}"${didYouMean(asked, apps.keys())}`)
}

function didYouMean(asked: string, names: Iterable<string>): string {
  const [nearest] = nearestNames(asked, [...names], 1)
  return nearest === undefined ? '; there is none.' : `; the nearest is "${nearest}".`
}

/** A tool of an app: a selector, or a definition. */
type OwnTool = string | Tool | ToolDefinition

const made = new WeakMap<object, Tool>()

/** Returns the tools of an app as selectors. A tool that the app defines is selected by its id. */
function readOwnTools(path: string, tools: readonly OwnTool[] = []): readonly string[] {
  return tools.map((tool, i) => (typeof tool === 'string' ? tool : toTool(`${path}.tools[${i}]`, tool).id))
}

/**
 * Returns all tools of a gate, including those that its apps define, each once.
 *
 * Equal definitions are one tool; the first one runs. Two different tools must not have the same id: the tools of an app
 * would then depend on another app.
 *
 * @throws {ConfigError} `tool_duplicate`, naming both places and what differs
 */
export function collectTools(
  tools: readonly Tool[],
  apps: ReadonlyMap<string, { readonly tools?: readonly OwnTool[] }>,
): readonly Tool[] {
  const owners = new Map(tools.map((tool) => [tool.id, { tool, place: 'tools' }]))
  const added: Tool[] = []
  for (const [name, app] of apps) {
    for (const [i, written] of (Array.isArray(app?.tools) ? app.tools : []).entries()) {
      if (typeof written === 'string') continue
      const place = `apps.${name}.tools[${i}]`
      const tool = toTool(place, written)
      const owner = owners.get(tool.id)
      if (owner) checkSame(place, tool, owner)
      else {
        owners.set(tool.id, { tool, place })
        added.push(tool)
      }
    }
  }
  return [...tools, ...added]
}

function checkSame(path: string, tool: Tool, { tool: first, place }: { tool: Tool; place: string }): void {
  const differs = FIELDS.find((field) => !isDeepStrictEqual(read(tool, field), read(first, field)))
  if (differs === undefined) return
  throw new ConfigError(path, `the tool "${tool.id}" is defined in ${place} too, with another ${differs}`, {
    code: 'tool_duplicate',
  })
}

/** The fields that models and people see, and those that decisions depend on. */
const FIELDS = [
  'title',
  'description',
  'inputSchema',
  'outputSchema',
  'annotations',
  'icons',
  '_meta',
  'fields',
  'strict',
  'tags',
  'category',
  'requiredScopes',
  'hintsTrusted',
  'groups',
] as const

function read(tool: Tool, field: (typeof FIELDS)[number]): unknown {
  return { ...tool, ...definitionOf(tool) }[field]
}

function toTool(path: string, written: unknown): Tool {
  if (typeof written !== 'object' || written === null)
    throw new ConfigError(path, 'must be a selector or a tool', { code: 'tool_invalid' })
  if (isTool(written)) return written
  let tool = made.get(written)
  if (!tool) made.set(written, (tool = defineTool(written as Parameters<typeof defineTool>[0])))
  return tool
}
