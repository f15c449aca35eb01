/**
 * Two normal forms of a text, because two mistakes have different costs. Taking a stranger's address for the user's leaks
 * data; taking the user's address for a stranger's asks one question too many.
 */

const URL_AUTHORITY = /(?<=:\/\/)[^\s/?#"<>()[\]{},;|\\]+/g
const MAIL_DOMAIN = /(?<=[\p{L}\p{N}._%+'-])@[\p{L}\p{N}.-]+\.[\p{L}\p{N}-]+/gu
const WWW_HOST = /(?<![\p{L}\p{N}._@/-])www\.[\p{L}\p{N}.-]+/giu

/**
 * Returns the form in which a text is compared with the user's words and trusted outputs: NFC, white space collapsed, and
 * lower case only in e-mail domains and host names.
 */
export function toExact(text: string): string {
  const collapsed = text.normalize('NFC').replace(/\s+/g, ' ').trim()
  if (!/[@/.]/.test(collapsed)) return collapsed
  return collapsed
    .replace(URL_AUTHORITY, lowerHost)
    .replace(MAIL_DOMAIN, (domain) => domain.toLowerCase())
    .replace(WWW_HOST, (host) => host.toLowerCase())
}

/** The user and password before the host keep their case. */
function lowerHost(authority: string): string {
  const host = authority.lastIndexOf('@') + 1
  return authority.slice(0, host) + authority.slice(host).toLowerCase()
}

/**
 * Returns the forms in which a text is compared with untrusted outputs: NFKD, lower case, without white space, marks and
 * invisible characters; also after percent signs, JSON escapes and character references are decoded.
 *
 * The form of a substring is a substring of the form, so no text around an address hides it. Characters beyond Latin-1
 * share code points, which halves the memory; a collision can only make a value untrusted.
 */
export function toFoldedForms(text: string): readonly string[] {
  const folded = fold(text)
  let decoded = folded
  for (let i = 0; i < MAX_DECODED && ENCODED.test(decoded); i++) decoded = fold(decode(decoded))
  return decoded === folded ? [toLatin1(folded)] : [toLatin1(folded), toLatin1(decoded)]
}

const ASCII = /^[\0-\x7F]*$/
const BLANK_ASCII = /[\0-\x20\x7F]+/g
/** Removes marks too, because an accent behind an address would change its last letter. */
const BLANK = /[\s\p{C}\p{M}\p{Default_Ignorable_Code_Point}]+/gu

function fold(text: string): string {
  if (ASCII.test(text)) return text.toLowerCase().replace(BLANK_ASCII, '')
  return text.normalize('NFKD').toLowerCase().replaceAll('\u03c2', '\u03c3').replace(BLANK, '')
}

function toLatin1(text: string): string {
  return ASCII.test(text)
    ? text
    : text.replace(/[^\0-\xFF]/g, (unit) => String.fromCharCode(0x80 | (unit.charCodeAt(0) & 0x7f)))
}

const ENCODED = /%[\da-f]{2}|\\u[\da-f]{4}|&#x?[\da-f]+;/i
/** The maximum number of times a text is decoded: a link within a link is encoded twice. */
const MAX_DECODED = 3

function decode(text: string): string {
  return text
    .replace(/(?:%[\da-f]{2})+/gi, decodePercent)
    .replace(/\\u([\da-f]{4})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
    .replace(/&#(?:x([\da-f]{1,6})|(\d{1,7}));/gi, (all, hex?: string, decimal?: string) => {
      const code = hex === undefined ? Number(decimal) : Number.parseInt(hex, 16)
      return code <= 0x10_ff_ff ? String.fromCodePoint(code) : all
    })
}

function decodePercent(run: string): string {
  try {
    return decodeURIComponent(run)
  } catch {
    return run.replace(/%([0-7][\da-f])/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
  }
}
