import { below, isObject } from '../schema/node.ts'

/** A part of a provider's definition that a tool cannot keep. */
export interface ForeignNote {
  readonly path: string
  readonly feature: string
  readonly from: unknown
}

type KeywordEntry = readonly [keyword: string, word: unknown]

/** More levels than a gate accepts. Deeper parts stay unchanged, and the gate rejects the schema. */
const MAX_DEPTH = 64

/** More nodes than any real schema has. Further parts stay unchanged, because a schema may contain itself. */
const MAX_NODES = 10_000

interface OpenApiReading {
  readonly notes: ForeignNote[]
  nodes: number
}

/** Returns a schema in OpenAPI 3.0 as JSON Schema: types in small letters, counts as numbers, `nullable` as a type. */
export function readOpenApi(schema: unknown): { readonly schema: unknown; readonly notes: readonly ForeignNote[] } {
  const reading: OpenApiReading = { notes: [], nodes: 0 }
  return { schema: schema === null ? undefined : read(schema, '', reading), notes: reading.notes }
}

function read(value: unknown, path: string, reading: OpenApiReading, depth = 0): unknown {
  if (!isObject(value) || depth > MAX_DEPTH || ++reading.nodes > MAX_NODES) return value
  const entries = Object.entries(value).flatMap(([keyword, word]): readonly KeywordEntry[] => {
    if (word === undefined || word === null || keyword === 'nullable') return []
    const at = below(path, keyword)
    const inner = (one: unknown, ...steps: readonly (string | number)[]) =>
      read(one, steps.reduce<string>(below, at), reading, depth + 1)
    const spell = SPELLINGS.get(keyword)
    return spell
      ? spell(word, inner, () => reading.notes.push({ path: at, feature: keyword, from: word }))
      : [[keyword, word]]
  })
  return value['nullable'] === true ? orNull(entries) : Object.fromEntries(entries)
}

type ReadInner = (schema: unknown, ...steps: readonly (string | number)[]) => unknown
type SpellOpenApi = (word: unknown, inner: ReadInner, lose: () => void) => readonly KeywordEntry[]

const count =
  (keyword: string): SpellOpenApi =>
  (word) => [[keyword, Number(word)]]

/** The keywords that JSON Schema has in another form. */
const SPELLINGS: ReadonlyMap<string, SpellOpenApi> = new Map<string, SpellOpenApi>([
  [
    'type',
    (word) => (word === 'TYPE_UNSPECIFIED' ? [] : [['type', typeof word === 'string' ? word.toLowerCase() : word]]),
  ],
  ['items', (word, inner) => [['items', inner(word)]]],
  ['anyOf', (word, inner) => [['anyOf', Array.isArray(word) ? word.map((one, i) => inner(one, i)) : word]]],
  [
    'properties',
    (word, inner) => [
      [
        'properties',
        isObject(word) ? Object.fromEntries(Object.entries(word).map(([name, one]) => [name, inner(one, name)])) : word,
      ],
    ],
  ],
  ['example', (word) => [['examples', [word]]]],
  ['propertyOrdering', (_word, _inner, lose) => (lose(), [])],
  ...['minLength', 'maxLength', 'minItems', 'maxItems', 'minProperties', 'maxProperties'].map(
    (keyword) => [keyword, count(keyword)] as const,
  ),
])

/** How to add null in JSON Schema, by keyword: to `type`, to the `enum` values, or as an `anyOf` branch. */
const NULLABLE: ReadonlyMap<string, (word: unknown) => unknown> = new Map<string, (word: unknown) => unknown>([
  ['type', (type) => [type, 'null']],
  ['enum', (values) => (Array.isArray(values) ? [...(values as unknown[]), null] : values)],
  ['anyOf', (branches) => (Array.isArray(branches) ? [...(branches as unknown[]), { type: 'null' }] : branches)],
])

function orNull(entries: readonly KeywordEntry[]): object {
  return Object.fromEntries(entries.map(([keyword, word]) => [keyword, NULLABLE.get(keyword)?.(word) ?? word]))
}
