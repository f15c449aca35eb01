import { overload, type Overload } from '@toolgate/values/cel'
import { matchesGlob, parseGlob } from '../tools/glob.ts'
import { spend, type Work } from '@toolgate/values'
import { isPlain, isPlainRoot, isUncoded, type Location, locatePath, MAX_PATH, SCHEME } from './paths.ts'

/** The functions of conditions that CEL does not have. Each counts the characters that it reads. */
export const OWN_FUNCTIONS: readonly Overload[] = [
  overload('within(string, string): bool', countedWithin),
  overload('host(string): string', countedHost),
  overload('like(string, string): bool', countedLike),
]

/** Texts longer than the longest path are not read. */
function countedWithin(work: Work, path: string, root: string): boolean {
  const length = Math.min(path.length, MAX_PATH)
  spend(work, 500 + root.length + length * (isUncoded(path.slice(0, MAX_PATH)) ? STEPS : STEPS_CODED))
  return within(path, root)
}

/** A non-ASCII character takes more steps, because it is encoded or looked up in tables. */
function countedHost(work: Work, url: string): string {
  spend(work, url.length)
  spend(work, 300 + (ASCII.test(url) ? 0 : 4 * url.length))
  return host(url)
}

// oxlint-disable-next-line no-control-regex -- they are ASCII, too
const ASCII = /^[\0-\x7f]*$/

/** A pattern is split at its stars, and each part is searched. */
function countedLike(work: Work, text: string, pattern: string): boolean {
  spend(work, 30 + text.length + 5 * pattern.length)
  return like(text, pattern)
}

/** Thrown for a text that readers may interpret differently, so that no answer about it is certain. */
export class UnclearError extends TypeError {}

/**
 * Returns whether a path is at or below a root, after `.` and `..` are resolved. Returns only if every reader agrees, so
 * the answer is safe in both `allow` and `deny`.
 *
 * With a root such as `/workspace`, both are POSIX paths, and a relative path is relative to the root, as in
 * `server-filesystem`. With a root such as `file:///workspace`, both are absolute URIs, and their scheme, authority and
 * path are compared.
 *
 * @throws {UnclearError} for a text that a server may read differently, or a path that differs from the root only by case:
 * see {@link locatePath}
 * @throws {TypeError} for a root that is not absolute or not plain
 */
export function within(path: string, root: string): boolean {
  // Paths that are too long are not read.
  const found = SCHEME.test(root) ? locateUri(path, root) : locatePath(path, checkRoot(root))
  if (found === 'unclear') throw new UnclearError('within() finds no one place: servers may read this text differently')
  return found === 'inside'
}

/** The steps of `within` for each character, enough for a path with several readings. */
const STEPS = 4
const STEPS_CODED = 64

function checkRoot(root: string): string {
  if (root.startsWith('/') && isPlainRoot(root)) return root
  throw new TypeError(`within() wants an absolute root, not ${JSON.stringify(root)}`)
}

function locateUri(uri: string, root: string): Location {
  const base = isPlainRoot(root) ? parseHierarchical(root) : undefined
  if (!base) throw new TypeError(`within() wants a root that is an absolute path or URI, not ${JSON.stringify(root)}`)
  const full = uri.length <= MAX_PATH && SCHEME.test(uri) ? parseHierarchical(uri) : undefined
  if (!full) return 'unclear'
  const isSame = full.protocol === base.protocol && full.host === base.host
  if (!isSame && !mayBeSameHost(full, base)) return 'outside'
  const found = isPlain(uri) ? locatePath(full.pathname || '/', base.pathname || '/') : 'unclear'
  return isSame || found === 'outside' ? found : 'unclear'
}

/**
 * Compares only the host name, because a request may be redirected to another scheme or port, and some readers ignore the
 * host of a file.
 */
function mayBeSameHost(one: URL, other: URL): boolean {
  const [name, base] = [one, other].map(({ hostname }) => hostname.toLowerCase().replace(/\.$/, ''))
  return name === base || (one.protocol === 'file:' && other.protocol === 'file:')
}

/** Parses a URI with an authority and a path. Rejects a user, even an empty one, because readers may find another host. */
function parseHierarchical(uri: string): URL | undefined {
  if (!/^[^:/?#]+:\/\/[^@/?#]*(?:[/?#]|$)/.test(uri)) return undefined
  try {
    host(uri)
    return new URL(uri)
  } catch {
    return undefined
  }
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

/**
 * Returns whether a text matches a pattern whose `*` matches any characters, in time linear in the text.
 *
 * Use it for an allowlist, not a denylist: most texts can be written in another way that a pattern does not match.
 */
export function like(text: string, pattern: string): boolean {
  return matchesGlob(parseGlob(pattern), text)
}
