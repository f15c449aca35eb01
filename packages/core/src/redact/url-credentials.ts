import type { Span } from './spans.ts'

const AUTHORITY_END = /[/?#\s"'`<>\\]/g
const OPAQUE_USER = /^(?=.*\d)[\w-]{20,}$/

/** Gives the password of `scheme://user:password@host`, or the user where that alone looks like a token (RFC 3986, 3.2.1). */
export function userInfoAt(text: string, from: number): Span | undefined {
  AUTHORITY_END.lastIndex = from
  const authority = text.slice(from, AUTHORITY_END.exec(text)?.index ?? text.length)
  const at = authority.lastIndexOf('@')
  if (at <= 0) return undefined
  const colon = authority.indexOf(':')
  if (colon === -1 || colon > at) {
    return OPAQUE_USER.test(authority.slice(0, at)) ? { start: from, end: from + at, name: 'url-user' } : undefined
  }
  return colon + 1 < at ? { start: from + colon + 1, end: from + at, name: 'url-password' } : undefined
}
