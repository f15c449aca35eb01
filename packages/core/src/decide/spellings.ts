import type { Tool } from '../tools/tool.ts'
import type { Toolset } from '../tools/toolset.ts'
import { readingOf, toNormalUri, toPlainUri } from '../tools/uri.ts'
import { isNormal } from './templates.ts'

/** The spelling of a server's URIs, as far as its lists show it. */
interface Spellings {
  /** The normal forms of the resources that are listed in another spelling. */
  readonly readings: Set<string>
  /** The beginnings of its URIs: `x:///` or `x://`. */
  readonly beginnings: Set<string>
  /** Its listed URIs by those without needless coding; `undefined` where two have one. */
  readonly listed: Map<string, string | undefined>
  hasQueries: boolean
}

const known = new WeakMap<Toolset, ReadonlyMap<string, Spellings>>()

/**
 * Returns the URI of a resource as its server lists it, or its normal form; `undefined` for a URI in any other spelling.
 * It differs from the given one only by needless coding.
 */
export function spelledAs(server: string, uri: string, items: Toolset): string | undefined {
  const normal = toNormalUri(uri)
  if (normal === undefined) return undefined
  return spellingsOf(items).get(server)?.listed.get(normal) ?? normal
}

/**
 * Whether the server of an unlisted resource may know it by another URI that rules name.
 *
 * Rules name a resource as it is listed, so its normal form is unknown where that is not how it is listed. `x:///a` and
 * `x://a`, and `x://a?b` and `x://a`, are two resources for some servers and one for others, which read less of a URI. So
 * an authority is empty only where the server lists one that is, and a listed resource has no queries unless a template
 * has some.
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

/** A listed normal form is itself, whatever else is listed. */
function list(listed: Spellings['listed'], uri: string): void {
  const plain = toPlainUri(uri)
  if (listed.get(plain) !== plain) listed.set(plain, listed.has(plain) && plain !== uri ? undefined : uri)
}

function none(): Spellings {
  return { readings: new Set(), beginnings: new Set(), listed: new Map(), hasQueries: false }
}

const NONE: Spellings = none()

/** Returns the beginning of a URI and the other one of its scheme. A file has no authority, and a host always is one. */
function beginningsOf(uri: string): readonly [own: string, other: string] | undefined {
  const [, scheme = '', third] = /^([^:/?#]+):\/\/(\/?)/.exec(uri) ?? []
  if (scheme === '' || scheme === 'file') return undefined
  const [empty, named] = [`${scheme.toLowerCase()}:///`, `${scheme.toLowerCase()}://`]
  return third === '/' ? [empty, named] : [named, empty]
}
