import { type CallContext, ConfigError, type Tool } from '@toolgate/core'
import { isObject, type JsonObject, toJsonText } from '@toolgate/values/json'
import type { ToolOverlay } from '@toolgate/core/tools'
import {
  definePrompt,
  defineResource,
  defineTemplate,
  type ItemKind,
  type PromptDefinition,
  type ResourceDefinition,
  type TemplateDefinition,
} from '@toolgate/core/toolset'
import { withoutNulls } from './nulls.ts'
import { addedBy, type OverlayEntries, Overlays } from './overlays.ts'
import { inOrderOfNames, renamed, toServedName, withServerName } from './served-name.ts'

/** The items, other than tools, that a server lists. */
export interface ListedItems {
  readonly resources: readonly unknown[]
  readonly templates: readonly unknown[]
  readonly prompts: readonly unknown[]
}

/** How the items of a server are named and run. */
export interface ItemClaims {
  readonly namespace: string
  /** The operator's overlays of resources and templates, by URI or template. They also apply to unlisted resources. */
  readonly resources?: OverlayEntries<ToolOverlay> | undefined
  /** The operator's overlays of prompts, by name. */
  readonly prompts?: OverlayEntries<ToolOverlay> | undefined
  /** Reads a resource from the server. */
  readonly read: (uri: string, call: CallContext) => unknown
  /** Gets a prompt from the server. */
  readonly getPrompt: (name: string, input: Readonly<Record<string, string>>, call: CallContext) => unknown
}

/** A listed item that is not offered, or a prompt that is served under another name. */
export interface LeftOutItem {
  readonly kind: Exclude<ItemKind, 'tool'>
  readonly name: string
  readonly error: Error
  readonly part?: 'name'
}

interface KnownItem {
  /** The item, as the server listed it. */
  readonly listed: unknown
  readonly text: string
  readonly item: Tool
}

const KINDS = [
  { kind: 'resource', list: 'resources', key: 'uri' },
  { kind: 'template', list: 'templates', key: 'uriTemplate' },
  { kind: 'prompt', list: 'prompts', key: 'name' },
] as const satisfies readonly { kind: ItemKind; list: keyof ListedItems; key: string }[]

/**
 * The resources, templates and prompts that a server lists.
 *
 * An item that is listed again unchanged stays the same object, so decisions about it stay cached. One invalid item does
 * not affect the others.
 */
export class ServerItems {
  readonly #claims: ItemClaims
  readonly #resources: Overlays<ToolOverlay>
  readonly #prompts: Overlays<ToolOverlay>
  #known = new Map<string, KnownItem>()
  #leftOut: readonly LeftOutItem[] = []

  constructor(claims: ItemClaims) {
    this.#claims = claims
    this.#resources = new Overlays(claims.resources, 'uris')
    this.#prompts = new Overlays(claims.prompts)
  }

  get items(): readonly Tool[] {
    return [...this.#known.values()].map(({ item }) => item)
  }

  get leftOut(): readonly LeftOutItem[] {
    return this.#leftOut
  }

  /** Replaces the items with the server's latest lists. */
  read(lists: ListedItems): void {
    const known = new Map<string, KnownItem>()
    const leftOut: LeftOutItem[] = []
    for (const { kind, list, key } of KINDS) {
      for (const [i, listed] of kind === 'prompt' ? inOrderOfNames(kind, lists[list]) : lists[list].entries()) {
        const name = isObject(listed) ? listed[key] : undefined
        const served = kind === 'prompt' ? toServedName(kind, name) : name
        const id = `${kind} ${String(served)}`
        try {
          if (known.has(id)) throw new ConfigError(kind, 'is listed twice; the first counts')
          known.set(id, this.#toKnown(kind, id, listed))
          if (served !== name) leftOut.push({ kind, name: String(name), error: renamed(String(served)), part: 'name' })
        } catch (error) {
          const shown = typeof name === 'string' ? name.slice(0, MAX_SHOWN).toWellFormed() : `${list}[${i}]`
          leftOut.push({ kind, name: shown, error: error instanceof Error ? error : new Error(String(error)) })
        }
      }
    }
    this.#known = known
    this.#leftOut = leftOut
  }

  /** Returns the resource of a URI that is not listed. @throws {ConfigError} if the text is not a URI */
  unlisted(uri: string): Tool {
    return this.#resource({ uri })
  }

  #toKnown(kind: LeftOutItem['kind'], id: string, listed: unknown): KnownItem {
    const before = this.#known.get(id)
    if (before && before.listed === listed) return before
    const text = toJsonText(listed)
    if (before?.text === text) return { ...before, listed }
    return { listed, text, item: this.#toItem(kind, isObject(listed) ? withoutNulls(listed) : {}) }
  }

  /** The definition checks each field. */
  #toItem(kind: LeftOutItem['kind'], listed: JsonObject): Tool {
    switch (kind) {
      case 'resource':
        return this.#resource(withFields(listed, RESOURCE_FIELDS))
      case 'template':
        return defineTemplate({
          ...(withFields(listed, TEMPLATE_FIELDS) as unknown as TemplateDefinition),
          ...addedBy(this.#resources.of(listed['uriTemplate'])),
          namespace: this.#claims.namespace,
        })
      default: {
        const { namespace, getPrompt } = this.#claims
        const given = withFields(listed, PROMPT_FIELDS) as unknown as PromptDefinition
        const name = toServedName('prompt', given.name) as string
        const prompt = definePrompt({
          ...given,
          ...addedBy(this.#prompts.of(name)),
          name,
          namespace,
          execute: (input, call) => getPrompt(given.name, input, call),
        })
        return withServerName(prompt, given.name)
      }
    }
  }

  #resource(given: JsonObject): Tool {
    const { namespace, read } = this.#claims
    const definition = given as unknown as ResourceDefinition
    const added = addedBy(this.#resources.of(definition.uri))
    return defineResource({ ...definition, ...added, namespace, execute: ({ uri }, call) => read(uri, call) })
  }
}

const MAX_SHOWN = 128
const COMMON_FIELDS = ['name', 'title', 'description', 'annotations', 'icons', '_meta'] as const
const RESOURCE_FIELDS: readonly string[] = [...COMMON_FIELDS, 'uri', 'mimeType', 'size']
const TEMPLATE_FIELDS: readonly string[] = [...COMMON_FIELDS, 'uriTemplate', 'mimeType']
const PROMPT_FIELDS: readonly string[] = [...COMMON_FIELDS, 'arguments']
/** The maximum length of the JSON of unknown fields, in characters. It is the limit for tools too. */
const MAX_FIELD_CHARS = 64 * 1024

/** Returns a definition with every unknown field under `fields`. */
function withFields(listed: JsonObject, names: readonly string[]): JsonObject {
  const known: Record<string, unknown> = {}
  const fields: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(listed)) {
    if (names.includes(name)) known[name] = value
    else fields[name] = value
  }
  if (Object.keys(fields).length === 0) return known
  if (toJsonText(fields).length > MAX_FIELD_CHARS)
    throw new ConfigError('item', `has unknown fields of more than ${MAX_FIELD_CHARS} characters`)
  return { ...known, fields }
}
