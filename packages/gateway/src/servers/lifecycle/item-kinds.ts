import { ConfigError, defineTool } from '@toolgate/core'
import { toServedName } from '@toolgate/mcp'
import { isObject, type JsonObject } from '@toolgate/values/json'
import type { Era } from '../transport/connection.ts'
import { clip } from '../transport/json-rpc.ts'
import { findParamHeaders } from '../transport/param-headers.ts'
import type { Offer, UpstreamItems } from '../../model/upstream.ts'

/** The names of a server's lists, in the order in which they are read. */
export type ServerListName = keyof UpstreamItems
export type ItemOf<Name extends ServerListName> = UpstreamItems[Name][number]

/** How servers list one kind of item. */
export interface ServerItemKind {
  /** The method that lists the items, and the field of its result. */
  readonly method: string
  readonly field: string
  /** The capability that the list belongs to. */
  readonly offer: Offer
  /** The singular form for texts. `many` is the plural. */
  readonly one: 'tool' | 'resource' | 'template' | 'prompt'
  readonly many: string
  /** The field that identifies an item. */
  readonly key: 'name' | 'uri' | 'uriTemplate'
  /** Returns why an item cannot be offered. */
  problemOf(item: JsonObject, era: Era): string | undefined
}

export const ITEM_KINDS: Readonly<Record<ServerListName, ServerItemKind>> = {
  tools: {
    method: 'tools/list',
    field: 'tools',
    offer: 'tools',
    one: 'tool',
    many: 'tools',
    key: 'name',
    problemOf: toolProblem,
  },
  resources: {
    method: 'resources/list',
    field: 'resources',
    offer: 'resources',
    one: 'resource',
    many: 'resources',
    key: 'uri',
    problemOf: (item) => keyProblem(item, 'uri') ?? textProblem(item),
  },
  templates: {
    method: 'resources/templates/list',
    field: 'resourceTemplates',
    offer: 'resources',
    one: 'template',
    many: 'resource templates',
    key: 'uriTemplate',
    problemOf: (item) => keyProblem(item, 'uriTemplate') ?? textProblem(item),
  },
  prompts: {
    method: 'prompts/list',
    field: 'prompts',
    offer: 'prompts',
    one: 'prompt',
    many: 'prompts',
    key: 'name',
    problemOf: (item) => keyProblem(item, 'name') ?? textProblem(item) ?? argumentsProblem(item),
  },
}

export const LIST_NAMES = Object.keys(ITEM_KINDS) as readonly ServerListName[]

const HINTS = ['readOnlyHint', 'destructiveHint', 'idempotentHint', 'openWorldHint'] as const

function toolProblem(tool: JsonObject, era: Era): string | undefined {
  const { name, title, description, inputSchema, outputSchema, annotations } = tool
  if (!isObject(inputSchema)) return 'has no inputSchema that is an object'
  if (inputSchema['type'] !== undefined && inputSchema['type'] !== 'object')
    return 'has an inputSchema that is not for objects'
  if (outputSchema !== undefined && !isObject(outputSchema)) return 'has an outputSchema that is not an object'
  if (!isTextOrAbsent(title)) return 'has a title that is not a string'
  if (!isTextOrAbsent(description)) return 'has a description that is not a string'
  if (annotations !== undefined && !areAnnotations(annotations)) return 'has annotations of the wrong type'
  if (era === 'modern') {
    const headers = findParamHeaders(inputSchema)
    if (typeof headers === 'string') return headers
  }
  return nameProblem(name)
}

/** Applies the catalog's own rules, so that the catalog accepts every tool that passes. */
function nameProblem(name: unknown): string | undefined {
  try {
    defineTool({ name: toServedName('tool', name) as string })
    return undefined
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return clip(error.message.slice(error.path.length).replace(/^: /, ''))
  }
}

function keyProblem(item: JsonObject, key: ServerItemKind['key']): string | undefined {
  const value = item[key]
  if (typeof value !== 'string' || value === '') return `has no ${key}`
  return typeof item['name'] === 'string' ? undefined : 'has no name'
}

function textProblem(item: JsonObject): string | undefined {
  const field = ['title', 'description', 'mimeType'].find((name) => !isTextOrAbsent(item[name]))
  return field === undefined ? undefined : `has a ${field} that is not a string`
}

function argumentsProblem({ arguments: asked }: JsonObject): string | undefined {
  const isArgument = (one: unknown) => isObject(one) && typeof one['name'] === 'string'
  if (asked === undefined || (Array.isArray(asked) && asked.every(isArgument))) return undefined
  return 'has arguments that are not a list of named ones'
}

function isTextOrAbsent(value: unknown): boolean {
  return value === undefined || typeof value === 'string'
}

function areAnnotations(annotations: unknown): boolean {
  if (!isObject(annotations) || !isTextOrAbsent(annotations['title'])) return false
  return HINTS.every((hint) => annotations[hint] === undefined || typeof annotations[hint] === 'boolean')
}
