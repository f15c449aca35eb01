/** The location of a path relative to a root: at or below it for every reader, for none, or only for some. */
export type Location = 'inside' | 'outside' | 'unclear'

/**
 * Returns where an absolute or relative path leads, seen from an absolute root.
 *
 * A relative path is relative to the root. If it leaves the root it is unclear, because another working folder may bring it
 * back. Some readers decode `%`, normalise (NFKC), cut off `?…` and `#…`, ignore case, accents and invisible characters, or
 * cut off the end of a name: dots, spaces, `;…` and `:…`. Symbolic links are not resolved, because only the server knows
 * them.
 */
export function locatePath(path: string, root: string): Location {
  const readings = isUncoded(path) ? (isPlainPath(path) ? [{ path, root }] : undefined) : readingsOf({ path, root })
  if (!readings) return 'unclear'
  let location: Location | undefined
  for (const one of readings) {
    const base = partsOf(one.root)
    const full = one.path.startsWith('/') ? normalise(one.path) : normalise(one.path, base)
    const found = locationOf(full, base, path.startsWith('/'))
    if (location !== undefined && location !== found) return 'unclear'
    location = found
  }
  return location ?? 'unclear'
}

/** `isAbsolute`: whether the original text is absolute. */
function locationOf(full: readonly string[], base: readonly string[], isAbsolute: boolean): Location {
  if (base.every((part, i) => full[i] === part)) return 'inside'
  return !isAbsolute || base.every((part, i) => mayBeName(full[i], part)) ? 'unclear' : 'outside'
}

/** Caches the last root, because conditions name few. */
let latest: { readonly root: string; readonly parts: readonly string[] } = { root: '', parts: [] }

function partsOf(root: string): readonly string[] {
  if (latest.root !== root) latest = { root, parts: normalise(root) }
  return latest.parts
}

interface PathReading {
  readonly path: string
  readonly root: string
}

/** The ways in which readers interpret a text. Each returns `undefined` for a text that is unclear to it. */
const READERS: readonly ((text: string) => string | undefined)[] = [
  (text) => text.normalize('NFKC'),
  percentDecoded,
  (text) => /^[^?#]*/.exec(text)?.[0],
]
/** The most readings of a path. A path with more is encoded several times. */
const MAX_READINGS = 8
/** Characters that no reader decodes or normalises. */
const UNCODED = /^[ !$&'()*+,\-./0-9:;=@A-Z[\]^_`a-z{|}~]*$/

/** Returns whether a path has only one reading. This is a fast check. */
export function isUncoded(path: string): boolean {
  return UNCODED.test(path)
}

/**
 * Returns the readings of an encoded path, each with the root as the same reader sees it; `undefined` if one of them is not
 * a plain path.
 */
function readingsOf(written: PathReading): readonly PathReading[] | undefined {
  if (!isPlainPath(written.path) || LOOK_ALIKE.test(written.path)) return undefined
  const found = [written]
  // The list grows during the loop.
  for (const { path, root } of found) {
    for (const reader of READERS) {
      const [next, base] = [reader(path), reader(root)]
      if (next === undefined || base === undefined || !isPlainPath(next)) return undefined
      if (found.some((one) => one.path === next && one.root === base)) continue
      if (found.length === MAX_READINGS) return undefined
      found.push({ path: next, root: base })
    }
  }
  return found
}

function percentDecoded(text: string): string | undefined {
  if (!text.includes('%')) return text
  let isCertain = true
  const decoded = text.replaceAll(/(?:%[0-9a-f]{2})+/gi, (run) => {
    const characters = decodeUtf8(run)
    if (characters === undefined || LOOK_ALIKE.test(characters)) isCertain = false
    return characters ?? run
  })
  return isCertain ? decoded : undefined
}

function decodeUtf8(run: string): string | undefined {
  try {
    return decodeURIComponent(run)
  } catch {
    return undefined
  }
}

/** The longest path of Linux. */
export const MAX_PATH = 4096
/** Also matches drive letters. */
export const SCHEME = /^[A-Za-z][A-Za-z0-9+.-]*:/
/** A host name on Windows. POSIX does not define its meaning. */
const NETWORK_PATH = /^\/\/(?!\/)/

/** Texts that some reader does not interpret as a plain path. */
const NOT_PLAIN: readonly RegExp[] = [
  // A shell replaces `~` and `$HOME`.
  /^[~$'"\s]|['"\s]$/,
  // oxlint-disable-next-line no-control-regex -- the pattern looks for them
  /[\u0000-\u001f\u007f-\u009f\u2028\u2029\\]/,
  // NUL, `.`, `/` and `\`, percent-coded once or more; then overlong UTF-8, and the form of old servers.
  /%(?:25)*(?:00|2e|2f|5c)/i,
  /%(?:25)*(?:c0|c1|e0%(?:25)*80|u[0-9a-f]{4})/i,
  // A name that is empty or only dots after a system has cut off its end or removed what it ignores. A form has + for a
  // space; servlet containers cut off `;` and what follows it before they resolve dots.
  /(?:^|\/)(?!\.{0,2}(?:\/|$))[.+\s\p{M}\p{Default_Ignorable_Code_Point}]*(?:[;:/]|%(?:25)*3[abAB]|$)/u,
  /^\/+[A-Za-z][:|](?:\/|$)/,
]

/** The same check for texts with only {@link UNCODED} characters. Most texts have only these, and this is faster. */
const NOT_PLAIN_UNCODED = /^[~$' ]|[' ]$|(?:^|\/)(?!\.{0,2}(?:\/|$))[.+ ]*(?:[;:/]|$)|^\/+[A-Za-z][:|](?:\/|$)/

/** These become `.`, `..`, `/` or `\` when a text is normalised, or converted to an older character set. */
const LOOK_ALIKE = /[\u2024\u2025\ufe52\uff0e\u2044\u2215\u2216\u29f5\u29f8\ufe68\uff0f\uff3c\u00a5\u20a9]/

/** Returns whether every reader sees the same dots and slashes in a text. */
export function isPlain(text: string): boolean {
  if (text.length > MAX_PATH || mayTakeBackNothing(text)) return false
  if (UNCODED.test(text)) return !NOT_PLAIN_UNCODED.test(text)
  return text.isWellFormed() && !NOT_PLAIN.some((pattern) => pattern.test(text))
}

/**
 * Returns whether `..` may remove an empty name: `/a//../b` is `/b` for a file system, and `/a/b` when read as a URL (RFC
 * 3986 §5.2.4).
 */
function mayTakeBackNothing(text: string): boolean {
  const empty = text.indexOf('//', AUTHORITY.exec(text)?.[0].length ?? 0)
  return empty !== -1 && /\/\.\.(?:\/|$)/.test(text.slice(empty + 1))
}

const AUTHORITY = /^[A-Za-z][A-Za-z0-9+.-]*:\/\//

/** Returns whether a root, a path or a URI, is plain enough to compare with. */
export function isPlainRoot(root: string): boolean {
  return isPlain(root) && !LOOK_ALIKE.test(root)
}

function isPlainPath(path: string): boolean {
  return isPlain(path) && !SCHEME.test(path) && !NETWORK_PATH.test(path)
}

/** `from`: the segments that a relative path is appended to. */
function normalise(path: string, from: readonly string[] = []): readonly string[] {
  const parts = [...from]
  for (const part of path.split('/')) {
    if (part === '..') parts.pop()
    else if (part !== '' && part !== '.') parts.push(part)
  }
  return parts
}

/** A short name (8.3) that Windows makes from a longer name. */
const SHORT_NAME = /^[^.]{1,6}~\d{1,6}(?:\.[^.]{0,3})?$/

/** Returns whether some system treats two names as the same. */
function mayBeName(name: string | undefined, other: string): boolean {
  if (name === undefined) return false
  return name === other || SHORT_NAME.test(name) || folded(name) === folded(other)
}

/** Returns a name without the characters that some systems ignore. */
function folded(name: string): string {
  if (/^[\w-]+$/.test(name)) return name.toLowerCase()
  const plain = UNCODED.test(name)
    ? name
    : name.normalize('NFKD').replaceAll(/[\p{M}\p{Default_Ignorable_Code_Point}]/gu, '')
  return plain
    .replaceAll('+', ' ')
    .replace(/[:;].*/s, '')
    .replace(/(?<![. ])[. ]+$/, '')
    .toUpperCase()
    .toLowerCase()
}
