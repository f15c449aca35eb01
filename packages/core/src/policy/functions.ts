import { overload, type Overload } from '../cel/library.ts'
import { matchesGlob, parseGlob } from '../tools/glob.ts'
import { spend, type Work } from '../util/work.ts'

/** The functions of conditions beside those of CEL. Each counts the characters that it reads. */
export const OWN_FUNCTIONS: readonly Overload[] = [
  overload('within(string, string): bool', counted(within, 500)),
  overload('host(string): string', counted(host, 300)),
  overload('like(string, string): bool', counted(like, 30)),
]

/** `steps`: of a call with short texts. */
function counted(run: (first: string, second: string) => unknown, steps: number) {
  return (work: Work, first: string, second = '') => {
    spend(work, steps + first.length + second.length)
    return run(first, second)
  }
}

/**
 * Whether a path is at or below a root, after `.` and `..` are resolved.
 *
 * With a root such as `/workspace`, both are POSIX paths, and a relative path is relative to the root, as
 * `server-filesystem` reads it. With a root such as `file:///workspace` both are absolute URIs of one scheme and authority.
 *
 * Any path that a server may read differently is outside: `~`, white space or a quote at an end (`/root/.. ` is then
 * `/root/..`), backslashes, drive letters and schemes, control characters, percent-coded dots and slashes however often
 * they are coded, `..;`, `//host`, and more than 4,096 characters. A text must lie below the root when normalised (NFKC),
 * too. Symbolic links are not resolved: only the server knows them.
 *
 * @throws {TypeError} for a root that is not absolute or not plain
 */
export function within(path: string, root: string): boolean {
  if (SCHEME.test(root)) return withinUri(path, root)
  if (!root.startsWith('/') || !isPlain(root) || LOOK_ALIKE.test(root))
    throw new TypeError(`within() wants an absolute root, not ${JSON.stringify(root)}`)
  return holdsForReaders(path, root, isPathBelow)
}

/** Some readers normalise a text: U+FE30 becomes `..`, and a full-width colon ends a scheme. It must be below the root for all. */
function holdsForReaders(text: string, root: string, isBelowRoot: typeof isPathBelow): boolean {
  if (text.length > MAX_PATH || LOOK_ALIKE.test(text)) return false
  return isBelowRoot(text, root) && isBelowRoot(text.normalize('NFKC'), root.normalize('NFKC'))
}

function isPathBelow(path: string, root: string): boolean {
  if (!isPlain(path) || SCHEME.test(path) || NETWORK_PATH.test(path)) return false
  return isBelow(normalise(path.startsWith('/') ? path : `${root}/${path}`), normalise(root))
}

/** The longest path of Linux. */
const MAX_PATH = 4096
/** Drive letters match, too. */
const SCHEME = /^[A-Za-z][A-Za-z0-9+.-]*:/

/** Texts that some reader does not take as a plain path. */
const NOT_PLAIN: readonly RegExp[] = [
  /^[~'"\s]|['"\s]$/,
  // oxlint-disable-next-line no-control-regex -- they are what is looked for
  /[\u0000-\u001f\u007f-\u009f\u2028\u2029\\]/,
  // NUL, `.`, `/` and `\`, percent-coded once or more; then overlong UTF-8, and the form of old servers.
  /%(?:25)*(?:00|2e|2f|5c)/i,
  /%(?:25)*(?:c0|c1|e0%(?:25)*80|u[0-9a-f]{4})/i,
  // A name of dots, white space and invisible characters only, of which some systems cut off the end.
  /(?:^|\/)(?!\.{0,2}(?:\/|$))[.\s\p{Default_Ignorable_Code_Point}]+(?:\/|$)/u,
  // Servlet containers cut off `;` and what follows it, before they resolve dots.
  /(?:^|\/)\.{1,2}(?:;|%(?:25)*3b)/i,
  /^\/+[A-Za-z][:|](?:\/|$)/,
]

/** A host name on Windows. POSIX leaves its meaning open. */
const NETWORK_PATH = /^\/\/(?!\/)/

/** These become `.`, `..`, `/` or `\` when a text is normalised, or converted to an older character set. */
const LOOK_ALIKE = /[\u2024\u2025\ufe52\uff0e\u2044\u2215\u2216\u29f5\u29f8\ufe68\uff0f\uff3c\u00a5\u20a9]/

function isPlain(path: string): boolean {
  return path.length <= MAX_PATH && !NOT_PLAIN.some((pattern) => pattern.test(path))
}

function withinUri(uri: string, root: string): boolean {
  if (!isPlain(root) || LOOK_ALIKE.test(root) || !parseHierarchical(root))
    throw new TypeError(`within() wants a root that is an absolute path or URI, not ${JSON.stringify(root)}`)
  return holdsForReaders(uri, root, isUriBelow)
}

function isUriBelow(uri: string, root: string): boolean {
  const base = parseHierarchical(root)
  const full = isPlain(uri) && SCHEME.test(uri) ? parseHierarchical(uri) : undefined
  return (
    base !== undefined &&
    full !== undefined &&
    full.protocol === base.protocol &&
    full.host === base.host &&
    isPlain(full.pathname) &&
    !NETWORK_PATH.test(full.pathname) &&
    isBelow(normalise(full.pathname), normalise(base.pathname))
  )
}

/** Parses a URI with an authority and a path. A URI with a user, also an empty one, may be read as another host. */
function parseHierarchical(uri: string): URL | undefined {
  if (!/^[^:/?#]+:\/\/[^@/?#]*(?:[/?#]|$)/.test(uri)) return undefined
  try {
    host(uri)
    return new URL(uri)
  } catch {
    return undefined
  }
}

function isBelow(full: readonly string[], base: readonly string[]): boolean {
  return base.every((part, i) => full[i] === part)
}

/**
 * Returns the host name of an absolute URL, in lower case, without the port and a final dot.
 *
 * Throws for a URL in which readers find different hosts: with a backslash, white space or control characters (which
 * browsers drop), without `//`, with several `@`, or with a percent-coded host.
 *
 * @throws {TypeError} for anything that is not an absolute URL with one host
 */
export function host(url: string): string {
  const parsed = new URL(url)
  // oxlint-disable-next-line no-control-regex -- they are what is looked for
  if (/[\s\u0000-\u001f\u007f-\u009f\\]/.test(url))
    throw ambiguous('it has white space, a control character or a backslash')
  const [, authority] = /^[^:]+:\/\/([^/?#]*)/.exec(url) ?? []
  if (authority === undefined || authority === '') {
    if (parsed.hostname !== '') throw ambiguous('nothing stands between its // and its path')
    return ''
  }
  const [name = '', ...users] = authority.split('@').toReversed()
  if (users.length > 1) throw ambiguous('it has several @')
  if (/[%\u00df\u1e9e\u03c2\u200c\u200d]/.test(name))
    throw ambiguous('its host is spelt in a way that is read differently')
  return parsed.hostname.toLowerCase().replace(/\.$/, '')
}

function ambiguous(problem: string): TypeError {
  return new TypeError(`host() finds no one host in this URL: ${problem}`)
}

/** Matches a text against a pattern whose `*` matches any characters, in time linear in the text. */
export function like(text: string, pattern: string): boolean {
  return matchesGlob(parseGlob(pattern), text)
}

function normalise(path: string): string[] {
  const parts: string[] = []
  for (const part of path.split('/')) {
    if (part === '..') parts.pop()
    else if (part !== '' && part !== '.') parts.push(part)
  }
  return parts
}
