/** The parameters of a `WWW-Authenticate` challenge, by their names in lower case. */
export type Challenge = ReadonlyMap<string, string>

/** A parameter, with a quoted or a plain value, or a word: the next scheme, or a token68. */
const PART = /[,\s]*(?:([^\s,="]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]*))(?=[\s,]|$)|([^\s,="]+=*)(?=[\s,]|$))/sy

/**
 * Returns the parameters of the bearer challenges of a `WWW-Authenticate` header; the first of several counts.
 *
 * It reads more than RFC 9110 §11.6.1 allows, such as a URL without quotes, because a challenge only says where to look.
 */
export function bearerChallenge(header: string | null): Challenge {
  const found = new Map<string, string>()
  let scheme = ''
  for (const [, name, quoted, plain, word] of matchesOf(header ?? '')) {
    if (word !== undefined) scheme = word.toLowerCase()
    else if (scheme === 'bearer' && name !== undefined && !found.has(name.toLowerCase()))
      found.set(name.toLowerCase(), quoted?.replaceAll(/\\(.)/gs, '$1') ?? plain ?? '')
  }
  return found
}

/** Returns the parts from the start of a header to the first text that is no part. */
function* matchesOf(header: string): Iterable<readonly (string | undefined)[]> {
  const parts = new RegExp(PART)
  for (let part = parts.exec(header); part && part[0] !== ''; part = parts.exec(header)) yield part
}
