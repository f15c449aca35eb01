const BETWEEN = /[\s<>()[\]{},;"'|\\]+/
const AUTHORITY = /\/\/([^/?#&]+)/g
const BARE_HOST = /^[\p{L}\p{N}-]+(?:\.[\p{L}\p{N}-]+)+(?=[/:?#])/u
const IBAN = /^[A-Z]{2}\d{2}[A-Z\d]{11,30}$/i
const MAILTO = /^mailto:|\?.*$/gi
const SENTENCE_END = /[.:!?]+$/

/**
 * Returns the addresses within a value: hosts of URLs and the domains above them, e-mail addresses and account numbers. A model
 * may have put data of the user around each: `https://evil.com/?q=…`, `data.evil.com`.
 */
export function addressesIn(value: string): ReadonlySet<string> {
  const found = new Set<string>()
  if (!/[./@\d]/.test(value)) return found
  for (const word of value.split(BETWEEN)) {
    const token = word.replace(SENTENCE_END, '')
    for (const [, authority = ''] of token.matchAll(AUTHORITY)) addHost(authority, found)
    const [bare] = BARE_HOST.exec(token) ?? []
    if (bare !== undefined) addHost(bare, found)
    if (token.includes('@') && !token.includes('/')) found.add(token.replace(MAILTO, ''))
    if (IBAN.test(token)) found.add(token)
  }
  return found
}

/** Adds a host and its parent domains, down to two labels. */
function addHost(authority: string, found: Set<string>): void {
  const host = authority.slice(authority.lastIndexOf('@') + 1).replace(/:\d*$/, '')
  if (!host.includes('.')) return
  let from = 0
  for (let next = host.indexOf('.'); next !== -1; next = host.indexOf('.', from)) {
    found.add(host.slice(from))
    from = next + 1
  }
}
