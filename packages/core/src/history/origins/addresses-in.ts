const BETWEEN = /[\s<>()[\]{},;"'|\\]+/
const AUTHORITY = /\/\/([^/?#&]+)/g
const BARE_HOST = /^[\p{L}\p{N}-]+(?:\.[\p{L}\p{N}-]+)+(?=[/:?#])/u
const IBAN = /^[A-Z]{2}\d{2}[A-Z\d]{11,30}$/i
const MAILTO = /^mailto:|\?.*$/gi
const SENTENCE_END = /(?<![.:!?])[.:!?]+$/
const PORT = /:\d*$/
/** The most characters of a host name. */
const MAX_NAME = 253
const MAX_LABEL = 63
const MAX_ADDRESSES = 1000

/**
 * Returns the addresses within a value: hosts of URLs and their parent domains, e-mail addresses and account numbers. A
 * model may have put the user's data around an address: `https://evil.com/?q=…`, `data.evil.com`. Returns `undefined` for a
 * host longer than a name can be, or for too many addresses.
 */
export function addressesIn(value: string): ReadonlySet<string> | undefined {
  const found = new Set<string>()
  if (!/[./@\d]/.test(value)) return found
  for (const word of value.split(BETWEEN)) {
    const token = word.replace(SENTENCE_END, '')
    for (const [, authority = ''] of token.matchAll(AUTHORITY)) if (!addHost(authority, found)) return undefined
    const [bare] = BARE_HOST.exec(token) ?? []
    if (bare !== undefined && !addHost(bare, found)) return undefined
    if (token.includes('@') && !token.includes('/')) found.add(token.replace(MAILTO, ''))
    if (IBAN.test(token)) found.add(token)
    if (found.size > MAX_ADDRESSES) return undefined
  }
  return found
}

/** Adds a host and its parent domains, down to two labels. Returns whether the name is valid (RFC 1035 §2.3.4). */
function addHost(authority: string, found: Set<string>): boolean {
  const host = authority.slice(authority.lastIndexOf('@') + 1).replace(PORT, '')
  if (!host.includes('.')) return true
  const name = host.replace(/\.$/, '')
  if (name.length > MAX_NAME || name.split('.').some(({ length }) => length > MAX_LABEL)) return false
  let from = 0
  for (let next = host.indexOf('.'); next !== -1; next = host.indexOf('.', from)) {
    found.add(host.slice(from))
    from = next + 1
  }
  return true
}
