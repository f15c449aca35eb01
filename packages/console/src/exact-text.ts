/** Plain text, or one invisible character. */
export type Segment =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'mark'; readonly code: string; readonly name: string }

/**
 * Characters that are invisible or change how others are shown: controls, formats (bidirectional
 * overrides, zero-width), unpaired surrogates, private use, unassigned, separators other than the plain space, blank
 * letters, and variation selectors that do not follow a pictograph. Line feeds are kept.
 */
const UNSEEN =
  /(?!\n)[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}]|(?! )\p{Zs}|[\u115f\u1160\u3164\uffa0\u2800]|\u034f|\u17b4|\u17b5|(?<!\p{Extended_Pictographic})\ufe0f|[\u180b-\u180d\u180f\ufe00-\ufe0e\u{e0100}-\u{e01ef}]/gu

const NAMES: ReadonlyMap<number, string> = new Map([
  [0x00, 'null'],
  [0x07, 'bell'],
  [0x08, 'backspace'],
  [0x09, 'tab'],
  [0x0d, 'carriage return'],
  [0x1b, 'escape'],
  [0x7f, 'delete'],
  [0xa0, 'no-break space'],
  [0xad, 'soft hyphen'],
  [0x061c, 'Arabic letter mark'],
  [0x200b, 'zero-width space'],
  [0x200c, 'zero-width non-joiner'],
  [0x200d, 'zero-width joiner'],
  [0x200e, 'left-to-right mark'],
  [0x200f, 'right-to-left mark'],
  [0x2028, 'line separator'],
  [0x2029, 'paragraph separator'],
  [0x202a, 'left-to-right embedding'],
  [0x202b, 'right-to-left embedding'],
  [0x202c, 'pop directional formatting'],
  [0x202d, 'left-to-right override'],
  [0x202e, 'right-to-left override'],
  [0x2060, 'word joiner'],
  [0x2066, 'left-to-right isolate'],
  [0x2067, 'right-to-left isolate'],
  [0x2068, 'first strong isolate'],
  [0x2069, 'pop directional isolate'],
  [0xfeff, 'byte order mark'],
])

/**
 * Splits text so that nothing in it can hide: each invisible character becomes a mark with its code point.
 *
 * @example
 * toSegments('a\u202eb') // text 'a', mark 'U+202E' (right-to-left override), text 'b'
 */
export function toSegments(text: string): readonly Segment[] {
  const segments: Segment[] = []
  let from = 0
  for (const match of text.matchAll(UNSEEN)) {
    if (match.index > from) segments.push({ kind: 'text', text: text.slice(from, match.index) })
    segments.push(toMark(match[0].codePointAt(0) ?? 0))
    from = match.index + match[0].length
  }
  if (from < text.length) segments.push({ kind: 'text', text: text.slice(from) })
  return segments
}

/** Returns a value as indented JSON, for people to read before they approve it. */
export function toPrettyJson(value: unknown): string {
  return JSON.stringify(value, null, 2) ?? 'nothing'
}

/** A part of a value as JSON: text of the notation, or one string that has several lines. */
export type JsonPart =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'lines'; readonly lines: readonly string[] }

/** A string of JSON, with the colon after it if it is a key. */
const STRING = /"((?:[^"\\]|\\.)*)"(:?)/g
const ESCAPE = /\\./g

/**
 * Splits a value as indented JSON, so that strings of several lines can be shown as lines.
 *
 * Only line breaks are unescaped. No line can end its string, so none can look like another part of the value.
 *
 * @example
 * toJsonParts({ a: 'x\ny' }) // text '{\n  "a": ', lines ['x', 'y'], text '\n}'
 */
export function toJsonParts(value: unknown): readonly JsonPart[] {
  const json = toPrettyJson(value)
  const parts: JsonPart[] = []
  let from = 0
  for (const match of json.matchAll(STRING)) {
    const [whole, inner = '', colon] = match
    if (colon === ':') continue
    const lines = inner.replace(ESCAPE, (escape) => (escape === '\\n' ? '\n' : escape)).split('\n')
    if (lines.length === 1) continue
    parts.push({ kind: 'text', text: json.slice(from, match.index) }, { kind: 'lines', lines })
    from = match.index + whole.length
  }
  if (from < json.length) parts.push({ kind: 'text', text: json.slice(from) })
  return parts
}

function toMark(codePoint: number): Segment {
  const code = `U+${codePoint.toString(16).toUpperCase().padStart(4, '0')}`
  return { kind: 'mark', code, name: NAMES.get(codePoint) ?? 'invisible character' }
}
