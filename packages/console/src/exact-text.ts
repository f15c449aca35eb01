import { type DiffLine, diffLines } from './line-diff.ts'
import { writeDigits } from './digits.ts'

/** Plain text, or one invisible character. */
type TextSegment =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'mark'; readonly code: string; readonly name: string }

/**
 * Characters that are invisible or change the display of others: controls, formats (bidirectional overrides,
 * zero-width), unpaired surrogates, private use, unassigned, separators other than the plain space, blank letters, and
 * variation selectors that do not follow a pictograph. Line feeds are kept.
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
 * Splits text so that each invisible character becomes a mark with its code point.
 * @example
 * toSegments('a\u202eb') // text 'a', mark 'U+202E' (right-to-left override), text 'b'
 */
export function toSegments(text: string): readonly TextSegment[] {
  const segments: TextSegment[] = []
  let from = 0
  for (const match of text.matchAll(UNSEEN)) {
    if (match.index > from) segments.push({ kind: 'text', text: text.slice(from, match.index) })
    segments.push(toMark(match[0].codePointAt(0) ?? 0))
    from = match.index + match[0].length
  }
  if (from < text.length) segments.push({ kind: 'text', text: text.slice(from) })
  return segments
}

/** Returns the text with each invisible character replaced by its code point. */
export function toVisible(text: string): string {
  return toSegments(text)
    .map((segment) => (segment.kind === 'text' ? segment.text : segment.code))
    .join('')
}

/** Returns a value as indented JSON, for people to read before they approve it. */
export function toPrettyJson(value: unknown): string {
  return writeDigits(value, 2) ?? 'nothing'
}

/** A part of a value as JSON: notation, a string of several lines, or a text with its replacement. */
export type JsonPart =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'lines'; readonly lines: readonly string[] }
  | { readonly kind: 'diff'; readonly names: readonly [string, string]; readonly lines: readonly DiffLine[] }

/** Pairs of field names under which tools accept a text and its replacement. */
const REPLACEMENTS: readonly (readonly [string, string])[] = [
  ['oldText', 'newText'],
  ['old_text', 'new_text'],
  ['old_string', 'new_string'],
  ['old_str', 'new_str'],
  ['oldString', 'newString'],
  ['search', 'replace'],
  ['before', 'after'],
]

/**
 * Splits a value as indented JSON, so that strings of several lines are shown as lines, and a text with its replacement
 * as a difference.
 *
 * Nothing is left out: every character of the value is in a part.
 *
 * @param value as `JSON.parse` returns it. It must not be parsed again here: V8 13.6 (Node 24) reads the key `"\n"` as
 * `"\\"` where an earlier object of that shape had that key.
 * @example
 * toJsonParts({ a: 'x\ny' }) // text '{\n  "a": ', lines ['x', 'y'], text '\n}'
 */
export function toJsonParts(value: unknown): readonly JsonPart[] {
  const parts: JsonPart[] = []
  let text = ''
  write(value, '')
  if (text !== '') parts.push({ kind: 'text', text })
  return parts

  function write(one: unknown, indent: string): void {
    if (typeof one === 'string' && one.includes('\n')) add({ kind: 'lines', lines: one.split('\n') })
    else if (Array.isArray(one)) writeItems('[]', indent, one.length, (i) => write(one[i], `${indent}  `))
    else if (typeof one === 'object' && one !== null) writeObject(one, indent)
    else text += toPrettyJson(one)
  }

  function writeObject(object: object, indent: string): void {
    const pair = replacementIn(object)
    const fields = Object.entries(object).filter(([name, field]) => name !== pair?.names[1] && field !== undefined)
    writeItems('{}', indent, fields.length, (i) => {
      const [name, field] = fields[i] as [string, unknown]
      if (name === pair?.names[0]) {
        text += `${JSON.stringify(name)} → ${JSON.stringify(pair.names[1])}: `
        add(pair)
        return
      }
      text += `${JSON.stringify(name)}: `
      write(field, `${indent}  `)
    })
  }

  function writeItems([open, close]: string, indent: string, count: number, item: (i: number) => void): void {
    if (count === 0) {
      text += `${open}${close}`
      return
    }
    text += open
    for (let i = 0; i < count; i++) {
      text += `\n${indent}  `
      item(i)
      if (i < count - 1) text += ','
    }
    text += `\n${indent}${close}`
  }

  function add(part: JsonPart): void {
    if (text !== '') parts.push({ kind: 'text', text })
    parts.push(part)
    text = ''
  }
}

/**
 * Returns the difference between a text and its replacement in an object, or `undefined` if there is none.
 */
function replacementIn(object: object): (JsonPart & { readonly kind: 'diff' }) | undefined {
  const fields = new Map<string, unknown>(Object.entries(object))
  for (const names of REPLACEMENTS) {
    const [before, after] = [fields.get(names[0]), fields.get(names[1])]
    if (typeof before === 'string' && typeof after === 'string' && before !== after)
      return { kind: 'diff', names, lines: diffLines(before, after) }
  }
  return undefined
}

function toMark(codePoint: number): TextSegment {
  const code = `U+${codePoint.toString(16).toUpperCase().padStart(4, '0')}`
  return { kind: 'mark', code, name: NAMES.get(codePoint) ?? 'invisible character' }
}
