import { matchesGlob } from './glob.ts'

/** The most characters of a URI and of a URI template. */
export const MAX_URI_LENGTH = 2048

/** Returns why a text cannot be the URI of a resource; `undefined` where it can. */
export function findUriProblem(uri: unknown): string | undefined {
  if (typeof uri !== 'string' || uri === '') return 'must be a string that is not empty'
  if (uri.length > MAX_URI_LENGTH) return `has ${uri.length} characters; at most ${MAX_URI_LENGTH} are allowed`
  if (!USABLE.test(uri)) return 'must not hold spaces, control characters or unpaired surrogates'
  if (!SCHEME.test(uri)) return 'must begin with a scheme, such as file:'
  return /[{}]/.test(uri) ? 'must not hold "{" or "}", which templates use' : undefined
}

const USABLE = /^[\p{L}\p{N}\p{M}\p{P}\p{S}]+$/u
const SCHEME = /^[A-Za-z][A-Za-z0-9+.-]*:/

/** RFC 3986, appendix B. */
const PARTS = /^([^:/?#]+):(?:\/\/([^/?#]*))?([^?#]*)(\?[^#]*)?(#.*)?$/
/** RFC 3986, section 2: unreserved, reserved and percent-encoded in upper case. */
const CHARACTERS = /^(?:[A-Za-z0-9._~:/?#[\]@!$&'()*+,;=-]|%[0-9A-F]{2})+$/
const AUTHORITY = /^(?:[^@]*@)?(\[[^\]]*\]|[^:@]*)(:(?:0|[1-9]\d*))?$/
const ENCODED = /%[0-9A-F]{2}/g
/** Schemes of hosts. A URI of these has a host and a path. */
const HOST_SCHEMES: ReadonlySet<string> = new Set(['http', 'https', 'ws', 'wss', 'ftp'])

/**
 * Returns whether a URI is in the normal form of RFC 3986, sections 6.2.2 and 6.2.3: scheme and host in lower case,
 * percent-encodings in upper case and only where they are needed, no dot segments, no default port, no fragment.
 *
 * A URI in another spelling could name a resource by a name that no rule mentions, so it names nothing. For the same
 * reason an encoded `../` and an encoded control character are never normal, a `file:` URI has exactly one spelling, and
 * a host has one: `https:/h/a`, `https://user@h/a`, `https://h./a` and `http://2130706433/` are not normal.
 */
export function isNormalUri(uri: string): boolean {
  if (uri.length > MAX_URI_LENGTH || !CHARACTERS.test(uri) || hasNeedlessEncoding(uri)) return false
  const [, scheme = '', authority, path = '', query, fragment] = PARTS.exec(uri) ?? []
  if (!/^[a-z][a-z0-9+.-]*$/.test(scheme) || fragment !== undefined || query === '?') return false
  if (authority !== undefined && !isNormalAuthority(authority)) return false
  if (HOST_SCHEMES.has(scheme) && (path === '' || !isOfHost(uri, authority))) return false
  return !climbs(path) && (scheme !== 'file' || isNormalFile(authority, path, query))
}

function isNormalAuthority(authority: string): boolean {
  const [, host] = AUTHORITY.exec(authority) ?? []
  if (host === undefined) return false
  const letters = host.replaceAll(ENCODED, '')
  return letters === letters.toLowerCase()
}

/** Whether a URI names its host as URL parsers read it: with nothing that they add, drop or rewrite. */
function isOfHost(uri: string, authority: string | undefined): boolean {
  return URL.canParse(uri) && new URL(uri).host === authority && !/\.(?::\d+)?$/.test(authority)
}

/**
 * RFC 8089 has several spellings: `file:/a`, `file:///a`, `file://localhost/a`. Servers take the path alone: they drop
 * hosts, queries, empty segments and a slash at the end, and decode what needs no encoding in a path.
 */
function isNormalFile(authority: string | undefined, path: string, query: string | undefined): boolean {
  if (authority !== '' || query !== undefined || !path.startsWith('/') || path.includes('//')) return false
  return (path === '/' || !path.endsWith('/')) && !ENCODED_IN_FILE.test(path)
}

/** `/`, `\`, and what may stand in a path as it is: `!$&'()*+,:;=@`. */
const ENCODED_IN_FILE = /%(?:2[146-9A-CF]|3[ABD]|40|5C)/

/** An unreserved character needs no percent-encoding: `%61` is `a`. */
function hasNeedlessEncoding(uri: string): boolean {
  for (const [code] of uri.matchAll(ENCODED)) if (/[A-Za-z0-9._~-]/.test(decoded(code))) return true
  return false
}

/** Whether a path has dot segments or control characters, also once it is decoded. */
function climbs(path: string): boolean {
  const plain = path.replaceAll(ENCODED, decoded)
  // oxlint-disable-next-line no-control-regex -- these are what it looks for
  return /[\u0000-\u001F\u007F]/.test(plain) || plain.split(/[/\\]/).some((part) => part === '.' || part === '..')
}

function decoded(code: string): string {
  return String.fromCharCode(Number.parseInt(code.slice(1), 16))
}

/**
 * Returns what a URI reads as to a server that takes every spelling of it: decoded, in lower case, without dot segments,
 * the host of a file, a user, a default port, a fragment and needless slashes. URIs that name one resource read alike.
 */
export function readingOf(uri: string): string {
  if (!URL.canParse(uri)) return uri.toLowerCase()
  const { protocol, host, pathname, search } = new URL(uri)
  const rest = protocol === 'file:' ? pathname : `${host}/${pathname}${search}`
  const plain = rest.replaceAll(/%[0-9A-Fa-f]{2}/g, decoded).toLowerCase()
  return protocol + plain.replaceAll(/[/\\]+/g, '/').replace(/\/$/, '')
}

/** A URI template (RFC 6570), as far as it says which URIs it cannot match. */
export interface UriTemplate {
  readonly text: string
  /** Whether it may match a URI. */
  readonly mayMatch: (uri: string) => boolean
  /** Whether it may match a URI that is in normal form. */
  readonly matches: (uri: string) => boolean
}

const EXPRESSION = /\{([^{}]*)\}/
const SIMPLE = /^\+?[\w.%]+$/

/** Returns why a text cannot be a URI template; `undefined` where it can. */
export function findTemplateProblem(text: unknown): string | undefined {
  if (typeof text !== 'string') return 'must be a string'
  const parts = text.split(EXPRESSION)
  if (parts.length === 1) return 'has no expression, such as {name}; a URI without one is a resource'
  if (parts.some((part, i) => (i % 2 === 1 ? part === '' : /[{}]/.test(part)))) return 'has braces that do not match'
  return findUriProblem(text.replaceAll(new RegExp(EXPRESSION, 'g'), (all) => 'x'.repeat(all.length)))
}

/**
 * Returns a template, to be asked in time linear in a URI.
 *
 * `{var}` matches what has no `/`, and `{+var}` anything. A template with any other expression may match every URI, and
 * so may one whose own spelling is not normal. A URI whose spelling is not normal may match every template.
 */
export function parseUriTemplate(text: string): UriTemplate {
  const parts = text.split(EXPRESSION)
  const literals = parts.filter((_, i) => i % 2 === 0)
  const variables = parts.filter((_, i) => i % 2 === 1)
  const isPlain = variables.every((one) => SIMPLE.test(one)) && isNormalUri(literals.join('x'))
  if (!isPlain) return { text, mayMatch: anything, matches: anything }
  const matches = variables.some((one) => one.startsWith('+')) ? byText(literals) : bySegments(literals)
  return { text, mayMatch: (uri) => matches(uri) || !isNormalUri(uri), matches }
}

function anything(): boolean {
  return true
}

function byText(literals: readonly string[]): (uri: string) => boolean {
  return (uri) => matchesGlob(literals, uri)
}

/** No variable matches a `/`, so a URI matches segment by segment. */
function bySegments(literals: readonly string[]): (uri: string) => boolean {
  const segments = literals
    .join(STAR)
    .split('/')
    .map((segment) => segment.split(STAR))
  return (uri) => {
    const parts = uri.split('/')
    return parts.length === segments.length && segments.every((glob, i) => matchesGlob(glob, parts[i] as string))
  }
}

/** A character that no URI holds. */
const STAR = '\0'
