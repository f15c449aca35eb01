import { type Draft, isSince } from './dialects.ts'
import { isPlainObject, type PlainObject } from './run.ts'

/** A schema inside another one. */
export interface Subschema {
  readonly pointer: string
  readonly schema: PlainObject
  /** Whether it is asked about the same value, not about a part of it. */
  readonly inPlace: boolean
}

type Shape = 'one' | 'list' | 'map'

interface Row {
  readonly shapes: readonly Shape[]
  readonly inPlace?: boolean
  readonly since?: Draft
  readonly until?: Draft
}

/** Where schemas stand in a schema. */
const ROWS: ReadonlyMap<string, Row> = new Map<string, Row>([
  ['properties', { shapes: ['map'] }],
  ['patternProperties', { shapes: ['map'] }],
  ['additionalProperties', { shapes: ['one'] }],
  ['propertyNames', { shapes: ['one'], since: 'draft-06' }],
  ['items', { shapes: ['one', 'list'] }],
  ['additionalItems', { shapes: ['one'], until: '2019-09' }],
  ['prefixItems', { shapes: ['list'], since: '2020-12' }],
  ['contains', { shapes: ['one'], since: 'draft-06' }],
  ['unevaluatedItems', { shapes: ['one'], since: '2019-09' }],
  ['unevaluatedProperties', { shapes: ['one'], since: '2019-09' }],
  ['allOf', { shapes: ['list'], inPlace: true }],
  ['anyOf', { shapes: ['list'], inPlace: true }],
  ['oneOf', { shapes: ['list'], inPlace: true }],
  ['not', { shapes: ['one'], inPlace: true }],
  ['if', { shapes: ['one'], inPlace: true, since: 'draft-07' }],
  ['then', { shapes: ['one'], inPlace: true, since: 'draft-07' }],
  ['else', { shapes: ['one'], inPlace: true, since: 'draft-07' }],
  ['dependencies', { shapes: ['map'], inPlace: true }],
  ['dependentSchemas', { shapes: ['map'], inPlace: true, since: '2019-09' }],
])

/** Gives the schemas that a schema asks, with their pointers. Definitions that nothing refers to are not among them. */
export function* subschemasOf(schema: PlainObject, pointer: string, draft: Draft): Generator<Subschema> {
  for (const [keyword, value] of Object.entries(schema)) {
    const row = ROWS.get(keyword)
    if (!row || (row.since && !isSince(draft, row.since)) || (row.until && !isSince(row.until, draft))) continue
    for (const [path, inner] of innerOf(value, row.shapes))
      if (isPlainObject(inner))
        yield { pointer: `${pointer}/${keyword}${path}`, schema: inner, inPlace: row.inPlace ?? false }
  }
}

function innerOf(value: unknown, shapes: readonly Shape[]): readonly (readonly [path: string, schema: unknown])[] {
  if (Array.isArray(value)) return shapes.includes('list') ? value.map((item, i) => [`/${i}`, item]) : []
  if (!shapes.includes('map')) return [['', value]]
  return Object.entries(value as PlainObject).map(([key, item]) => [`/${toPointerToken(key)}`, item])
}

/** RFC 6901 §3. */
export function toPointerToken(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1')
}
