import { matchesGlob, parseGlob } from '../tools/selector.ts'

/**
 * Answers whether a POSIX path lies at or below a root, once `.` and `..` are resolved.
 *
 * A relative path is relative to the root, as `server-filesystem` reads it. A path that a
 * server may read as another is outside: one that begins with `~`, holds NUL, or begins or ends
 * with a quote or white space, which servers cut off (`/root/.. ` is then `/root/..`). Symbolic
 * links are not followed: that is for the server, which knows its disk.
 *
 * @throws {TypeError} for a root that is not absolute: what lies in it cannot be known
 */
export function within(path: string, root: string): boolean {
  if (!root.startsWith('/')) throw new TypeError(`within() wants an absolute root, not ${JSON.stringify(root)}`)
  if (/^[~'"\s]|['"\s]$|\0/.test(path)) return false
  const base = normalise(root)
  const full = normalise(path.startsWith('/') ? path : `${root}/${path}`)
  return base.every((part, i) => full[i] === part)
}

/**
 * Gives the host name of an absolute URL, in lower case, without port and without the dot
 * that a full name may end with.
 *
 * @throws {TypeError} for anything that is not one
 */
export function host(url: string): string {
  return new URL(url).hostname.toLowerCase().replace(/\.$/, '')
}

/** Matches a text against a pattern whose `*` is any run of characters, in time linear in the text. */
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
