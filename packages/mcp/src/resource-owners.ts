import type { Caller, Tool } from '@toolgate/core'
import { isNormalUri, parseUriTemplate, toNormalUri, toPlainUri, type Toolset } from '@toolgate/core/toolset'

/** A listed URI that several servers could own. */
export interface ContestedUri {
  readonly uri: string
  /** Sorted. */
  readonly servers: readonly string[]
}

/** Returns the servers that offer resources. */
export type ResourceServers = () => readonly string[]

interface Template {
  readonly text: string
  readonly server: string
  /** Every matching URI starts with this text. */
  readonly prefix: string
  /** Whether the template may match a URI in normal form. A URI in another form may match if it has this prefix. */
  readonly matches: (uri: string) => boolean
}

interface ResourceIndex {
  /** The listed URIs, as they are listed. */
  readonly uris: ReadonlySet<string>
  /** The servers of each listed URI. The keys have no needless percent-encoding. */
  readonly listed: ReadonlyMap<string, ReadonlySet<string>>
  readonly templates: readonly Template[]
  readonly contested: ReadonlyMap<string, ContestedUri>
}

/**
 * Finds the server of a URI, because clients read a resource without naming a server.
 *
 * The servers that list the URI, or a template that may match it, could own it. If there are none, every server with
 * resources could. A URI belongs to a server only if no other server could own it, so ownership does not depend on what
 * the caller may see. Items of single callers count for those callers only. Without a caller, only shared items count.
 */
export class ResourceOwners {
  readonly #items: (caller: Caller | undefined) => Toolset
  readonly #servers: ResourceServers
  readonly #indexes = new WeakMap<Toolset, ResourceIndex>()

  constructor(
    catalog: { items(): Toolset; of?(caller: Caller): { readonly items: Toolset } },
    servers: ResourceServers,
  ) {
    this.#items = (caller) => (caller && catalog.of ? catalog.of(caller).items : catalog.items())
    this.#servers = servers
  }

  /**
   * Returns the id of the resource with this URI. The resource need not be listed. The id has the URI as listed, or in
   * normal form.
   */
  idOf(uri: string, caller?: Caller): string | undefined {
    const { uris, listed, templates } = this.#index(caller)
    const named = uris.has(uri) ? uri : toNormalUri(uri)
    if (named === undefined) return undefined
    const claims = claimsOn(named, listed, templates)
    const [server, other] = claims.size > 0 ? claims : this.#servers()
    return server === undefined || other !== undefined ? undefined : `resource:${server}:${named}`
  }

  /** Returns the id of the template with this text; `undefined` where several servers list it. */
  idOfTemplate(text: string, caller?: Caller): string | undefined {
    const owners = new Set(this.#index(caller).templates.flatMap((one) => (one.text === text ? one.server : [])))
    const [server, other] = owners
    return server === undefined || other !== undefined ? undefined : `resource:${server}:${text}`
  }

  /** Whether a text may be the URI of a resource: a listed resource, a match of a template, or an unlisted resource. */
  mayBeUri(text: string, caller?: Caller): boolean {
    const { listed, templates } = this.#index(caller)
    if (claimsOn(text, listed, templates).size > 0) return true
    return HIERARCHICAL.test(text) && this.#servers().length > 0
  }

  /** Whether a listed resource belongs to its server alone. Other resources are left out of the list. */
  isOwned({ kind, uri = '' }: Tool, caller?: Caller): boolean {
    return kind !== 'resource' || !this.#index(caller).contested.has(uri)
  }

  /** The listed URIs that several servers could own, sorted. */
  get contested(): readonly ContestedUri[] {
    return [...this.#index().contested.values()]
  }

  #index(caller?: Caller): ResourceIndex {
    const items = this.#items(caller)
    let index = this.#indexes.get(items)
    if (!index) this.#indexes.set(items, (index = toIndex(items)))
    return index
  }
}

/** The slashes are required because `python:3` is a valid URI but also an ordinary word. */
const HIERARCHICAL = /^[a-z][a-z\d+.-]*:\/\//i

function toIndex(items: Toolset): ResourceIndex {
  const uris = new Set<string>()
  const listed = new Map<string, Set<string>>()
  const templates: Template[] = []
  for (const { kind, uri = '', namespace = '' } of items.tools) {
    if (kind === 'resource') {
      const plain = toPlainUri(uri)
      uris.add(uri)
      listed.set(plain, (listed.get(plain) ?? new Set()).add(namespace))
    } else if (kind === 'template') templates.push(toTemplate(uri, namespace))
  }
  const contested = new Map<string, ContestedUri>()
  const servers = new Set(items.tools.flatMap(({ kind, namespace }) => (kind === 'prompt' ? [] : [namespace])))
  if (servers.size > 1)
    for (const uri of [...uris].toSorted()) {
      const claims = claimsOn(uri, listed, templates)
      if (claims.size > 1) contested.set(uri, { uri, servers: [...claims].toSorted() })
    }
  return { uris, listed, templates, contested }
}

function toTemplate(text: string, server: string): Template {
  const [prefix = ''] = text.split('{', 1)
  const { matches } = parseUriTemplate(text)
  return { text, server, prefix: prefix.toLowerCase(), matches }
}

function claimsOn(
  uri: string,
  listed: ResourceIndex['listed'],
  templates: ResourceIndex['templates'],
): ReadonlySet<string> {
  const claims = new Set(listed.get(toPlainUri(uri)))
  if (templates.length === 0) return claims
  const lower = uri.toLowerCase()
  const isNormal = isNormalUri(uri)
  for (const { server, prefix, matches } of templates)
    if (!claims.has(server) && lower.startsWith(prefix) && (!isNormal || matches(uri))) claims.add(server)
  return claims
}
