import type { Tool } from '../tools/tool.ts'
import type { Toolset } from '../tools/toolset.ts'
import { readingOf, toNormalUri, toPlainUri } from '../tools/uri.ts'
import { isNormal } from './templates.ts'

/** How a server spells its URIs, as far as its lists show. */
interface Spellings {
  /** The normal forms of resources that are listed in another spelling. */
  readonly readings: Set<string>
  /** The prefixes of the server's URIs: `x:///` or `x://`. */
  readonly beginnings: Set<string>
  /** Listed URIs by their form without unnecessary percent-encoding; `undefined` if two URIs have the same form. */
  readonly listed: Map<string, string | undefined>
  hasQueries: boolean
}

const known = new WeakMap<Toolset, ReadonlyMap<string, Spellings>>()

/**
 * Returns the URI of a resource as its server lists it, or its normal form. It differs from the given URI only by
 * unnecessary percent-encoding; `undefined` for any other spelling.
 */
export function spelledAs(server: string, uri: string, items: Toolset): string | undefined {
  const normal = toNormalUri(uri)
  if (normal === undefined) return undefined
  return spellingsOf(items).get(server)?.listed.get(normal) ?? normal
}

/**
 * Returns whether the server of an unlisted resource may know it by another URI that rules name.
 *
 * Rules name a resource as it is listed, so they do not know its normal form if the list uses another spelling. `x:///a`
 * and `x://a`, or `x://a?b` and `x://a`, are two resources for some servers and one for servers that ignore part of a URI.
 * So an authority may be empty only if the server lists such a URI, and a listed resource has queries only if a template
 * has.
 */
export function isSpelledOtherwise(tool: Tool, items: Toolset): boolean {
  const { namespace = '', uri = '' } = tool
  const { readings, beginnings, listed, hasQueries } = spellingsOf(items).get(namespace) ?? NONE
  const [path = ''] = uri.split('?', 1)
  if (readings.size > 0 && isNormal(tool) && readings.has(readingOf(uri))) return true
  if (!hasQueries && path !== uri && (listed.has(path) || readings.has(readingOf(path)))) return true
  const [own, other] = beginningsOf(uri) ?? []
  if (own === undefined || other === undefined || beginnings.has(own)) return false
  return own.endsWith('///') || beginnings.has(other)
}

function spellingsOf(items: Toolset): ReadonlyMap<string, Spellings> {
  let all = known.get(items)
  if (!all) known.set(items, (all = toSpellings(items)))
  return all
}

function toSpellings({ tools }: Toolset): ReadonlyMap<string, Spellings> {
  const all = new Map<string, Spellings>()
  for (const tool of tools) {
    const { kind, namespace = '', uri } = tool
    if (uri === undefined) continue
    let own = all.get(namespace)
    if (!own) all.set(namespace, (own = none()))
    if (kind === 'template') own.hasQueries ||= /\?|\{&/.test(uri)
    else list(own.listed, uri)
    if (kind === 'resource' && !isNormal(tool)) own.readings.add(readingOf(uri))
    const [beginning] = beginningsOf(uri) ?? []
    if (beginning !== undefined) own.beginnings.add(beginning)
  }
  return all
}

/** A listed URI in normal form stands for itself, whatever else is listed. */
function list(listed: Spellings['listed'], uri: string): void {
  const plain = toPlainUri(uri)
  if (listed.get(plain) !== plain) listed.set(plain, listed.has(plain) && plain !== uri ? undefined : uri)
}

function none(): Spellings {
  return { readings: new Set(), beginnings: new Set(), listed: new Map(), hasQueries: false }
}

const NONE: Spellings = none()

/** Returns the prefix of a URI and the other prefix of its scheme. A file never has an authority, and a host always is one. */
function beginningsOf(uri: string): readonly [own: string, other: string] | undefined {
  const [, scheme = '', third] = /^([^:/?#]+):\/\/(\/?)/.exec(uri) ?? []
  if (scheme === '' || scheme === 'file') return undefined
  const [empty, named] = [`${scheme.toLowerCase()}:///`, `${scheme.toLowerCase()}://`]
  return third === '/' ? [empty, named] : [named, empty]
}
