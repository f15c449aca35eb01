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
const PARTS = /^([^:/?#]+):(?:\/\/([^/?#]*))?([^?#]*)(?:\?([^#]*))?(#.*)?$/
/** RFC 3986, section 2: unreserved, reserved and percent-encoded in upper case. */
const CHARACTERS = /^(?:[A-Za-z0-9._~:/?#[\]@!$&'()*+,;=-]|%[0-9A-F]{2})+$/
/** A user, where there is one, is not empty; a port has no zero before it. */
const AUTHORITY = /^(?:[^@:]+(?::[^@:]+)?@)?(?:\[[^\]]*\]|[^:@[\]]*)(?::(?:0|[1-9]\d*))?$/
/** Schemes of hosts. A URI of these has a host and a path. */
const HOST_SCHEMES: ReadonlySet<string> = new Set(['http', 'https', 'ws', 'wss', 'ftp'])

/**
 * Returns whether a URI is in the one spelling that is taken of all that servers read alike.
 *
 * A URI in another spelling could name a resource by a name that no rule mentions, so it names nothing. Servers decode
 * paths, also twice, normalise their letters (NFC), and drop empty and dot segments and the slash at the end, for every
 * scheme. So characters that may stand in a path stand there as they are, and those of a query as `encodeURIComponent`
 * writes them. The scheme is in lower case, and so is a host; the authority of another scheme is a name and keeps its case.
 */
export function isNormalUri(uri: string): boolean {
  if (uri.length > MAX_URI_LENGTH || !CHARACTERS.test(uri) || hasOtherCoding(uri)) return false
  const [, scheme = '', authority, path = '', query, fragment] = PARTS.exec(uri) ?? []
  if (!/^[a-z][a-z0-9+.-]*$/.test(scheme) || fragment !== undefined) return false
  if (scheme === 'file') return authority === '' && query === undefined && isNormalFile(path)
  if (HOST_SCHEMES.has(scheme) ? path === '' || !isOfHost(uri, authority) : !isNormalName(authority, path)) return false
  return isNormalPath(path, query)
}

/**
 * Returns the normal form of a URI that differs from it only by coding that it does not need; `undefined` for a URI in any
 * other spelling. Rules, records and servers get the normal form, whichever of these spellings a client writes.
 */
export function toNormalUri(uri: string): string | undefined {
  const plain = uri.length > MAX_URI_LENGTH ? uri : toPlainUri(uri)
  return isNormalUri(plain) ? plain : undefined
}

/** A text without needless coding (RFC 3986, section 6.2.2), of a listed URI or a pattern, too. Nothing is checked. */
export function toPlainUri(uri: string): string {
  if (!/[%?]/.test(uri) || /[{}]/.test(uri)) return uri
  const [, head = '', scheme = '', authority = '', path = '', query = ''] = SPLIT.exec(uri) ?? []
  const name = HOST_SCHEMES.has(scheme) ? authority : decodeWhere(authority, /[A-Za-z0-9._~!$&'()*+,;=@-]/)
  const pairs = decodeWhere(query, /[A-Za-z0-9._~!'()*-]/)
    .slice(1)
    .replaceAll(/[/:?@$,]/g, encodeURIComponent)
  return head + name + decodeWhere(path, /[A-Za-z0-9._~!$&'()*+,:;=@-]/) + query.slice(0, 1) + pairs
}

/** Returns the text of a listed URI or of a pattern that is compared: equal for all spellings that `toNormalUri` takes. */
export function comparableUri(uri: string): string {
  if (!/[%?]/.test(uri)) return uri
  return toPlainUri(uri).replace(/\?.*/s, (query) => query.replaceAll(/%(?:2[4CF]|3[AF]|40)/g, decodeURIComponent))
}

const SPLIT = /^(([^:/?#]*):(?:\/\/)?)?((?<=\/\/)[^/?]*)?([^?]*)(\?.*)?$/s

/** The codes of other characters get digits in upper case. */
function decodeWhere(text: string, needsNoCode: RegExp): string {
  return text.replaceAll(/%[0-9A-Fa-f]{2}/g, (code) => {
    const character = String.fromCharCode(Number.parseInt(code.slice(1), 16))
    return needsNoCode.test(character) ? character : code.toUpperCase()
  })
}

/** What may stand in a path as it is, and what servers split a path at: `!$&'()*+,:;=@`, `/` and `\`. */
const ENCODED_IN_PATH = /%(?:2[146-9A-CF]|3[ABD]|40|5C)/

/** RFC 8089 has several spellings of a file: `file:/a`, `file://localhost/a`. Servers take the path alone; Windows drops dots and blanks at the end of a name, `a::$DATA` is `a`, and `C|` is `C:`. */
function isNormalFile(path: string): boolean {
  return path.startsWith('/') && !/(?:\.|%20)(?:\/|$)|:[^/]*:\$|^\/[A-Za-z]%7C/.test(path) && isPlainPath(path)
}

/** Whether a URI names its host as URL parsers read it: with nothing that they add, drop or rewrite. */
function isOfHost(uri: string, authority: string | undefined): boolean {
  return URL.canParse(uri) && new URL(uri).host === authority && !/\.(?::\d+)?$/.test(authority)
}

/**
 * Checks where the path of a scheme without hosts begins: `x:/a` is `x:///a`, and `x://a/` is `x://a`. In an authority
 * `%3A` is a colon that begins no port.
 */
function isNormalName(authority: string | undefined, path: string): boolean {
  if (authority === undefined) return !path.startsWith('/')
  if (path === (authority === '' ? '' : '/') || !AUTHORITY.test(authority)) return false
  return !/%3A\d+$/.test(authority) && !ENCODED_IN_PATH.test(authority.replaceAll('%3A', ''))
}

/** An address of a host in a path keeps its `//`, and the rest of the URI is of this address: `web://page/https://h/a?b=c`. */
const INNER = /(?:^|\/)(?=(?:https?|wss?|ftp):)/i

function isNormalPath(path: string, query: string | undefined): boolean {
  const inner = INNER.exec(path)
  if (!inner) return isPlainPath(path) && (query === undefined || isNormalQuery(query))
  const address = path.slice(inner.index + inner[0].length)
  return isPlainPath(path.slice(0, inner.index)) && isNormalUri(query === undefined ? address : `${address}?${query}`)
}

function isPlainPath(path: string): boolean {
  const isEmpty = (part: string, at: number) => part === '' && at > 0 && path !== '/'
  const parts = path.split('/')
  return (
    !ENCODED_IN_PATH.test(path) && !/[[\]]/.test(path) && !parts.some((part, at) => isEmpty(part, at) || isDots(part))
  )
}

function isDots(part: string): boolean {
  return part === '.' || part === '..'
}

/** Pairs of a form, without empty ones: `a=` is `a`. Their meaning and their order are up to the server. */
function isNormalQuery(query: string): boolean {
  return query.split('&').every((pair) => {
    const texts = pair.split('=')
    return (
      texts.length <= 2 && texts.every((text) => text !== '' && encodeURIComponent(decodeURIComponent(text)) === text)
    )
  })
}

/** `A-Za-z0-9._~-`. */
const CODED_UNRESERVED = /%(?:2[DE]|3\d|[46][1-9A-F]|[57][0-9A]|5F|7E)/
/** `%25` before two digits: a server that decodes twice reads another character. */
const CODED_TWICE = /%25[0-9A-Fa-f]{2}/
// oxlint-disable-next-line no-control-regex -- the pattern looks for them
const CONTROL = /[\u0000-\u001F\u007F]/

/** Whether it has needless codes, codes that servers read differently, or text outside NFC (of file systems). */
function hasOtherCoding(uri: string): boolean {
  if (!uri.includes('%')) return false
  const text = decoded(uri)
  return (
    CODED_UNRESERVED.test(uri) ||
    text.includes('\uFFFD') ||
    CODED_TWICE.test(uri) ||
    CONTROL.test(text) ||
    text !== text.normalize('NFC')
  )
}

/** Decodes as servers do: bytes that are no UTF-8 are U+FFFD, all of them. */
function decoded(text: string): string {
  return text.replaceAll(/(?:%[0-9A-Fa-f]{2})+/g, (run) => Buffer.from(run.replaceAll('%', ''), 'hex').toString())
}

/**
 * Returns the reading of a URI by a server that accepts every spelling of it: decoded, in lower case, without dot
 * segments, the host of a file, a user, a default port, a fragment and needless slashes. URIs that name one resource
 * read alike.
 */
export function readingOf(uri: string): string {
  if (!URL.canParse(uri)) return uri.toLowerCase()
  const { protocol, host, pathname, search } = new URL(uri)
  const rest = protocol === 'file:' ? pathname : `${host}/${pathname}${search}`
  const plain = decoded(rest.replaceAll(/%(?:25)+(?=[0-9A-Fa-f]{2})/g, '%'))
    .toLowerCase()
    .normalize('NFC')
  return `${protocol}${withoutDots(plain.split(/[/\\]+/)).join('/')}`
}

function withoutDots(parts: readonly string[]): readonly string[] {
  const kept: string[] = []
  for (const part of parts) {
    if (part === '..') kept.pop()
    else if (part !== '.' && part !== '') kept.push(part)
  }
  return kept
}
