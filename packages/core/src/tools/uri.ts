/** The most characters of a URI and of a URI template. */
const MAX_URI_LENGTH = 2048

/** Returns why a text is not a valid URI of a resource; `undefined` if it is valid. */
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
/** RFC 3986, section 2: unreserved and reserved characters, and percent-encoding in upper case. */
const CHARACTERS = /^(?:[A-Za-z0-9._~:/?#[\]@!$&'()*+,;=-]|%[0-9A-F]{2})+$/
/** An optional non-empty user, a host, and an optional port without a leading zero. */
const AUTHORITY = /^(?:[^@:]+(?::[^@:]+)?@)?(?:\[[^\]]*\]|[^:@[\]]*)(?::(?:0|[1-9]\d*))?$/
/** Schemes with hosts. Their URIs have a host and a path. */
const HOST_SCHEMES: ReadonlySet<string> = new Set(['http', 'https', 'ws', 'wss', 'ftp'])

/**
 * Returns whether a URI is in normal form: the only accepted spelling of all that servers read alike.
 *
 * Another spelling could name a resource in a way that no rule mentions, so it is rejected. Servers decode paths, also
 * twice, normalise letters (NFC), and drop empty and dot segments and the final slash, for every scheme. So a path contains
 * allowed characters unencoded, and a query is encoded as by `encodeURIComponent`. The scheme and a host are in lower case;
 * the authority of a scheme without hosts is a name and keeps its case.
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
 * Returns the normal form of a URI that differs from it only by unnecessary percent-encoding, or by the case of a host;
 * `undefined` for any other spelling. Rules, records and servers get the normal form, whichever of these spellings a
 * client sends.
 */
export function toNormalUri(uri: string): string | undefined {
  const plain = uri.length > MAX_URI_LENGTH ? uri : toPlainUri(uri)
  return isNormalUri(plain) ? plain : undefined
}

/**
 * Removes unnecessary percent-encoding (RFC 3986, section 6.2.2) from a URI or a pattern, and writes a host in lower
 * case. Checks nothing.
 */
export function toPlainUri(uri: string): string {
  if (/[{}]/.test(uri)) return uri
  const lower = withLowerHost(uri)
  if (!/[%?]/.test(lower)) return lower
  const [, head = '', scheme = '', authority = '', path = '', query = ''] = SPLIT.exec(lower) ?? []
  const name = HOST_SCHEMES.has(scheme) ? authority : decodeWhere(authority, /[A-Za-z0-9._~!$&'()*+,;=@-]/)
  const pairs = decodeWhere(query, /[A-Za-z0-9._~!'()*-]/)
    .slice(1)
    .replaceAll(/[/:?@$,]/g, encodeURIComponent)
  return head + name + decodeWhere(path, /[A-Za-z0-9._~!$&'()*+,:;=@-]/) + query.slice(0, 1) + pairs
}

/** Returns a listed URI or a pattern in a form for comparison. All spellings that `toNormalUri` accepts are equal. */
export function comparableUri(uri: string): string {
  if (!/[%?]/.test(uri)) return toPlainUri(uri)
  return toPlainUri(uri).replace(/\?.*/s, (query) => query.replaceAll(/%(?:2[4CF]|3[AF]|40)/g, decodeURIComponent))
}

/** The scheme and the host of a URI or a pattern. Hosts have no case; the authority of any other scheme keeps its own. */
// oxlint-disable-next-line no-control-regex -- the character stands for the star of a pattern
const HOST = /^(?:https?|wss?|ftp):\/\/[A-Za-z0-9.:\u0000-]*/i

function withLowerHost(uri: string): string {
  return uri.replace(HOST, (host) => host.toLowerCase())
}

const SPLIT = /^(([^:/?#]*):(?:\/\/)?)?((?<=\/\/)[^/?]*)?([^?]*)(\?.*)?$/s

/** The encoding that stays gets upper-case digits. */
function decodeWhere(text: string, needsNoCode: RegExp): string {
  return text.replaceAll(/%[0-9A-Fa-f]{2}/g, (code) => {
    const character = String.fromCharCode(Number.parseInt(code.slice(1), 16))
    return needsNoCode.test(character) ? character : code.toUpperCase()
  })
}

/** Characters that a path contains unencoded, or at which servers split a path: `!$&'()*+,:;=@`, `/` and `\`. */
const ENCODED_IN_PATH = /%(?:2[146-9A-CF]|3[ABD]|40|5C)/

/**
 * RFC 8089 allows several spellings of a file: `file:/a`, `file://localhost/a`. Servers use only the path. Windows drops
 * dots and blanks at the end of a name, and reads `a::$DATA` as `a` and `C|` as `C:`.
 */
function isNormalFile(path: string): boolean {
  return path.startsWith('/') && !/(?:\.|%20)(?:\/|$)|:[^/]*:\$|^\/[A-Za-z]%7C/.test(path) && isPlainPath(path)
}

/** Returns whether URL parsers leave the host of a URI unchanged. */
function isOfHost(uri: string, authority: string | undefined): boolean {
  return URL.canParse(uri) && new URL(uri).host === authority && !/\.(?::\d+)?$/.test(authority)
}

/**
 * Checks where the path starts in a URI whose scheme has no hosts: `x:/a` equals `x:///a`, and `x://a/` equals `x://a`. In
 * an authority, `%3A` is a colon that starts no port.
 */
function isNormalName(authority: string | undefined, path: string): boolean {
  if (authority === undefined) return !path.startsWith('/')
  if (path === (authority === '' ? '' : '/') || !AUTHORITY.test(authority)) return false
  return !/%3A\d+$/.test(authority) && !ENCODED_IN_PATH.test(authority.replaceAll('%3A', ''))
}

/** An address of a host within a path keeps its `//`, and the rest of the URI belongs to it: `web://page/https://h/a?b=c`. */
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

/** Checks that a query has only non-empty pairs: `a=` equals `a`. Their meaning and order are up to the server. */
function isNormalQuery(query: string): boolean {
  return query.split('&').every((pair) => {
    const texts = pair.split('=')
    return (
      texts.length <= 2 && texts.every((text) => text !== '' && encodeURIComponent(decodeURIComponent(text)) === text)
    )
  })
}

/** Percent-encoded `A-Za-z0-9._~-`. */
const CODED_UNRESERVED = /%(?:2[DE]|3\d|[46][1-9A-F]|[57][0-9A]|5F|7E)/
/** `%25` before two hex digits: a server that decodes twice reads another character. */
const CODED_TWICE = /%25[0-9A-Fa-f]{2}/
// oxlint-disable-next-line no-control-regex -- the pattern looks for them
const CONTROL = /[\u0000-\u001F\u007F]/

/**
 * Returns whether a URI has unnecessary percent-encoding, encoding that servers read differently, or text that is not in
 * NFC, which file systems use.
 */
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

/** Decodes as servers do: invalid UTF-8 becomes U+FFFD. */
function decoded(text: string): string {
  return text.replaceAll(/(?:%[0-9A-Fa-f]{2})+/g, (run) => Buffer.from(run.replaceAll('%', ''), 'hex').toString())
}

/**
 * Returns a URI as the most tolerant server reads it: decoded, in lower case, without dot segments, the host of a file, a
 * user, a default port, a fragment and unnecessary slashes. URIs that name one resource give the same text.
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
