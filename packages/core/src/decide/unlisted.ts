import type { Catalog, Source } from '../tools/catalog.ts'
import { definitionHash } from '../tools/definition-hash.ts'
import { markUnlisted } from '../tools/own-tool.ts'
import { RESOURCE_PREFIX } from '../tools/tool-id.ts'
import { isTool, type Tool } from '../tools/tool.ts'
import { createToolset, type Toolset } from '../tools/toolset.ts'
import { isNormalUri } from '../tools/uri.ts'
import { createBoundedCache } from '@toolgate/values'
import { isObject, type JsonObject } from '@toolgate/values/json'
import { isSpelledOtherwise, spelledAs } from './spellings.ts'
import { mayMatch, templatesOf } from './templates.ts'

/** Resources that no server lists, by their URIs. */
export interface Unlisted {
  /**
   * Returns a resource that is not among `items`, with every template of `items` that may match it. This is the set to
   * decide it in. The same set for the same items. `undefined` for an id that no source has a resource for.
   */
  setFor(id: string, items: Toolset): Toolset | undefined
}

/** The most remembered URIs, because a client can name any number. A read of a remembered URI is not decided again. */
const MAX_KNOWN = 1000

/**
 * Returns the resources that sources make on demand. If a source throws, its error goes to `onFault`, and the resource
 * counts as unknown.
 */
export function createUnlisted(
  catalog: Pick<Catalog, 'items' | 'itemsRevision' | 'revision' | 'sources'>,
  onFault: (error: unknown) => void,
): Unlisted {
  let of: readonly Source[] | undefined
  let able: readonly Source[] = []
  const ableSources = (): readonly Source[] => {
    if (of !== catalog.sources) {
      of = catalog.sources
      able = of.filter((source) => source.unlisted !== undefined)
      made = createBoundedCache(MAX_KNOWN)
    }
    return able
  }
  let made = createBoundedCache<string, { readonly at: string; readonly tool: Tool }>(MAX_KNOWN)
  const sets = new WeakMap<Toolset, ReturnType<typeof createBoundedCache<string, Toolset>>>()

  const find = (id: string): Tool | undefined => {
    const listed = catalog.items().get(id)
    if (listed) return listed
    const known = made.get(id)
    const at = `${catalog.revision}.${catalog.itemsRevision}`
    if (known?.at === at) return known.tool
    const found = ask(ableSources(), id, onFault)
    if (!found) return undefined
    // The same object while the resource is the same, so that a changed list does not refuse a call under way.
    const tool = known && isSame(known.tool, found) ? known.tool : found
    made.set(id, { at, tool })
    return tool
  }
  return {
    setFor(id, items) {
      const tool = ableSources().length > 0 ? find(id) : undefined
      if (!tool || isSpelledOtherwise(tool, items)) return undefined
      let known = sets.get(items)
      if (!known) sets.set(items, (known = createBoundedCache(MAX_KNOWN)))
      let set = known.get(id)
      if (set?.get(id) !== tool) known.set(id, (set = withTemplates(tool, items)))
      return set
    },
  }
}

function ask(sources: readonly Source[], id: string, onFault: (error: unknown) => void): Tool | undefined {
  const [server, uri] = partsOf(id)
  if (server === undefined || uri === undefined || !isNormalUri(uri)) return undefined
  for (const source of sources) {
    if (source.namespaces && !source.namespaces.includes(server)) continue
    try {
      const tool: unknown = source.unlisted?.(uri)
      if (isTool(tool) && tool.kind === 'resource' && tool.id === id) return markUnlisted(tool)
    } catch (error) {
      onFault(error)
    }
  }
  return undefined
}

/**
 * Returns the id by which a resource is decided: that of a listed resource, or of its URI in normal form. Ids that differ
 * only by unnecessary percent-encoding name one resource. Other ids are returned unchanged.
 */
export function toDecidedId(id: string, items: Toolset): string {
  if (items.has(id)) return id
  const [server, uri] = partsOf(id)
  const spelled = server === undefined || uri === undefined ? undefined : spelledAs(server, uri, items)
  return spelled === undefined ? id : `${RESOURCE_PREFIX}${server}:${spelled}`
}

/**
 * Returns the request with the id and input by which its resource is decided, so that the server gets exactly what was
 * decided, hashed and recorded.
 */
export function toDecidedRequest<Request extends { readonly tool: string | undefined; readonly input?: unknown }>(
  request: Request,
  items: Toolset,
): Request {
  // A host may pass something that is not a request. The check of its fields reports that.
  if (!isObject(request)) return request
  const { tool, input } = request
  if (typeof tool !== 'string' || !tool.startsWith(RESOURCE_PREFIX)) return request
  const id = toDecidedId(tool, items)
  const [server = '', uri] = partsOf(id)
  const given = isObject(input) ? input['uri'] : undefined
  if (typeof given !== 'string' || given === uri || spelledAs(server, given, items) !== uri)
    return id === tool ? request : { ...request, tool: id }
  return { ...request, tool: id, input: { ...(input as JsonObject), uri } }
}

function partsOf(id: string): readonly [server?: string, uri?: string] {
  if (!id.startsWith(RESOURCE_PREFIX)) return []
  const rest = id.slice(RESOURCE_PREFIX.length)
  const colon = rest.indexOf(':')
  return colon === -1 ? [] : [rest.slice(0, colon), rest.slice(colon + 1)]
}

function isSame(a: Tool, b: Tool): boolean {
  const marksOf = ({ tags, category, requiredScopes }: Tool) => JSON.stringify([tags, category, requiredScopes])
  return definitionHash(a) === definitionHash(b) && marksOf(a) === marksOf(b)
}

function withTemplates(tool: Tool, items: Toolset): Toolset {
  const templates = templatesOf(items).map(({ at }) => items.tools[at] as Tool)
  const matching = templates.filter((one) => one.namespace === tool.namespace && mayMatch(one, tool))
  return createToolset([tool, ...matching])
}
