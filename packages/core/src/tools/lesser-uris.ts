/** Parts of a URI that some servers ignore: a query, the user and the port of an authority, parameters of path segments. */
const UNREAD: readonly ((uri: string) => string)[] = [
  (uri) => uri.replace(/\?.*$/s, ''),
  (uri) => uri.replace(/^([^:/?#]+:\/\/)[^/?#@]*@/, '$1'),
  (uri) => uri.replace(/^([^:/?#]+:\/\/[^/?#]*):\d+(?=[/?#]|$)/, '$1'),
  (uri) => uri.replace(/^[^?]*/, (path) => path.replaceAll(/;[^/]*/g, '')),
]

/**
 * Returns the shorter URIs that servers which ignore these parts would read. A rule that denies one of them also denies the
 * URI.
 */
export function lesserUrisOf(uri: string): readonly string[] {
  if (!/[?@;]|:\/\/[^/]*:/.test(uri)) return NONE
  const all = UNREAD.reduce((found, withoutOne) => found.union(new Set(found.values().map(withoutOne))), new Set([uri]))
  all.delete(uri)
  return [...all]
}

const NONE: readonly string[] = []
