import { definitionOf } from '../../tools/definition-hash.ts'
import { findConfusions, skeleton } from '../../tools/confusables.ts'
import type { Tool } from '../../tools/tool.ts'
import { type CharacterCode, findCharacters, readTags, spellOut } from './characters.ts'
import { escapePointer, toJsonText } from '@toolgate/values/json'
import { cut, formatCodePoint, formatNonAscii } from '@toolgate/values'

/**
 * The table of findings: the text, and whether quarantine hides a tool for it.
 *
 * Each finding is about the form of a text, which can be checked. The meaning is for people to judge.
 */
export const FINDINGS = {
  tag_characters: { quarantines: true, about: 'tag characters: a text that a model reads and nobody sees' },
  bidi_control: { quarantines: true, about: 'characters that show a text in another order than it is read' },
  invisible: { quarantines: true, about: 'characters that are not drawn, where no script or emoji needs them' },
  private_use: { quarantines: true, about: 'characters that no standard gives a meaning' },
  control_character: { quarantines: true, about: 'control characters other than tab and line break' },
  mixed_script: { quarantines: true, about: 'a word with letters of another script that look like its own' },
  name_lookalike: { quarantines: true, about: 'a name that looks like that of another tool' },
  name_near_duplicate: { quarantines: false, about: 'a name that is nearly that of a tool in another namespace' },
  text_too_long: { quarantines: false, about: 'a text that is longer than anybody reads' },
  text_long_blank: { quarantines: false, about: 'a gap that pushes the rest of a text out of sight' },
  schema_too_large: { quarantines: false, about: 'a schema that is larger than a model should be sent' },
} as const satisfies Record<string, { readonly quarantines: boolean; readonly about: string }>

type FindingCode = keyof typeof FINDINGS

/** What is wrong with a definition, and where. */
export interface DefinitionFinding {
  readonly code: FindingCode
  /** RFC 6901, into the definition: `/description`, `/inputSchema/properties/path/description`. */
  readonly pointer: string
  /** For people, with code points spelt out. */
  readonly text: string
}

/** Limits in UTF-16 units; for schemas, in bytes of their canonical form. */
export const DEFINITION_LIMITS = {
  name: 64,
  title: 128,
  description: 8192,
  schemaText: 4096,
  propertyName: 128,
  schemaBytes: 32_768,
  blanks: 200,
  lineBreaks: 20,
} as const

const MAX_FINDINGS = 100
const MAX_SPELT = 8
const MAX_POINTER = 200
const MAX_QUOTED = 200

/**
 * Finds text in a tool's definition that people cannot see, may misread, or would not read because it is too long. Does not
 * judge the meaning.
 *
 * @example
 * checkDefinition(defineTool({ name: 'add', description: 'Adds.\u200b' }))
 * // [{ code: 'invisible', pointer: '/description', text: '/description holds 1 invisible character: U+200B' }]
 */
export function checkDefinition(tool: Tool): readonly DefinitionFinding[] {
  let findings = known.get(tool)
  if (!findings) known.set(tool, (findings = Object.freeze([...findIn(tool)].slice(0, MAX_FINDINGS))))
  return findings
}

const known = new WeakMap<Tool, readonly DefinitionFinding[]>()

function* findIn(tool: Tool): Generator<DefinitionFinding> {
  const { inputSchema, outputSchema, annotations, icons, _meta, fields, description, title } = definitionOf(tool)
  yield* findInText(tool.name, '/name', DEFINITION_LIMITS.name)
  yield* findMixedName(tool.name, '/name')
  if (title !== null) yield* findInText(title, '/title', DEFINITION_LIMITS.title)
  yield* findInText(description, '/description', DEFINITION_LIMITS.description)
  yield* findInValue(annotations, '/annotations')
  if (icons) yield* findInValue(icons, '/icons')
  if (_meta) yield* findInValue(_meta, '/_meta')
  if (fields) yield* findInValue(fields, '')
  yield* findInSchema(inputSchema, '/inputSchema')
  if (outputSchema) yield* findInSchema(outputSchema, '/outputSchema')
}

function* findInSchema(schema: object, pointer: string): Generator<DefinitionFinding> {
  // The canonical form of plain JSON has the same size, because only the order of keys differs.
  const bytes = Buffer.byteLength(toJsonText(schema))
  const most = DEFINITION_LIMITS.schemaBytes
  if (bytes > most) yield finding('schema_too_large', pointer, `has ${bytes} bytes; more than ${most} are not usual`)
  if (!isPlain(schema)) yield* findInValue(schema, pointer)
}

/** A fast check, because most schemas have no findings. */
function isPlain(value: unknown): boolean {
  if (typeof value === 'string') return isPlainText(value, DEFINITION_LIMITS.schemaText)
  if (typeof value !== 'object' || value === null) return true
  if (Array.isArray(value)) return value.every(isPlain)
  for (const key of Object.keys(value)) {
    if (!isPlainText(key, DEFINITION_LIMITS.propertyName)) return false
    if (!isPlain((value as Readonly<Record<string, unknown>>)[key])) return false
  }
  return true
}

function isPlainText(text: string, most: number): boolean {
  return text.length <= most && ASCII.test(text) && (text.length <= DEFINITION_LIMITS.lineBreaks || !GAP.test(text))
}

/** Checks every text and key of a value, because a model gets all of them. */
function* findInValue(value: unknown, pointer: string): Generator<DefinitionFinding> {
  if (typeof value === 'string') yield* findInText(value, pointer, DEFINITION_LIMITS.schemaText)
  if (typeof value !== 'object' || value === null) return
  if (Array.isArray(value)) {
    for (const [i, item] of value.entries()) yield* findInValue(item, `${pointer}/${escapePointer(i)}`)
    return
  }
  for (const [key, item] of Object.entries(value)) {
    const below = `${pointer}/${escapePointer(key)}`
    yield* findInText(key, below, DEFINITION_LIMITS.propertyName)
    yield* findInValue(item, below)
  }
}

function* findInText(text: string, pointer: string, most: number): Generator<DefinitionFinding> {
  if (isPlainText(text, most)) return
  if (text.length > most) {
    yield finding('text_too_long', pointer, `has ${text.length} characters; more than ${most} are not usual`)
  }
  yield* findBlanks(text, pointer)
  for (const { code, characters } of findCharacters(text)) yield characterFinding(code, pointer, characters)
  yield* findMixedWords(text, pointer)
}

/** Excludes control characters, which are also ASCII. */
const ASCII = /^[\x20-\x7e\t\n\r]*$/

function characterFinding(code: CharacterCode, pointer: string, characters: readonly string[]): DefinitionFinding {
  const count = `${characters.length} ${KINDS[code]}${characters.length === 1 ? '' : 's'}`
  const spelt = characters.slice(0, MAX_SPELT).map(formatCodePoint).join(' ')
  const rest = characters.length > MAX_SPELT ? ' …' : ''
  const says = code === 'tag_characters' ? readTags(characters) : ''
  const read = says === '' ? '' : `, which say ${JSON.stringify(cut(says, MAX_QUOTED))}`
  return finding(code, pointer, `holds ${count}: ${spelt}${rest}${read}`)
}

const KINDS: Readonly<Record<CharacterCode, string>> = {
  tag_characters: 'tag character',
  bidi_control: 'bidi control character',
  invisible: 'invisible character',
  private_use: 'private-use character',
  control_character: 'control character',
}

const GAP = /\s{20}/
const GAPS = /\s{20,}/g

function* findBlanks(text: string, pointer: string): Generator<DefinitionFinding> {
  for (const [blanks] of text.matchAll(GAPS)) {
    const breaks = blanks.split('\n').length - 1
    if (blanks.length <= DEFINITION_LIMITS.blanks && breaks <= DEFINITION_LIMITS.lineBreaks) continue
    yield finding('text_long_blank', pointer, `has a gap of ${blanks.length} blanks and ${breaks} line breaks`)
    return
  }
}

function* findMixedName(name: string, pointer: string): Generator<DefinitionFinding> {
  if (ASCII.test(name)) return
  for (const { text } of findConfusions([name])) yield finding('mixed_script', pointer, text)
}

/**
 * Finds words of mixed scripts that look like ASCII words. `kΩ`, `URLов` and `β-carotene` do not, because they have letters
 * that do not look Latin.
 */
function* findMixedWords(text: string, pointer: string): Generator<DefinitionFinding> {
  if (pointer === '/name') return
  for (const [word] of text.matchAll(/[\p{L}\p{M}]{4,}/gu)) {
    if (
      !/[a-z]/i.test(word) ||
      !/[\p{Script=Cyrillic}\p{Script=Greek}\p{Script=Cherokee}\p{Script=Armenian}\p{Script=Coptic}\p{Script=Lisu}]/u.test(
        word,
      )
    )
      continue
    if (!/^[\x20-\x7e]+$/.test(skeleton(word))) continue
    const strangers = formatNonAscii(word)
    const quoted = JSON.stringify(cut(word, MAX_QUOTED))
    yield finding(
      'mixed_script',
      pointer,
      `has ${quoted}, a word with letters of another script: ${strangers.join(' ')}`,
    )
    return
  }
}

function finding(code: FindingCode, pointer: string, what: string): DefinitionFinding {
  const where = cut(spellOut(pointer), MAX_POINTER)
  return Object.freeze({ code, pointer: where, text: `${where} ${what}` })
}
