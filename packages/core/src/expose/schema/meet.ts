import { isDeepStrictEqual } from 'node:util'
import { ANNOTATIONS, typeOf } from './keywords.ts'
import { both, type Node, type NodeMap } from './node.ts'

/**
 * Gives the one value of a keyword that says what two say together, or `undefined` where none can.
 *
 * What only tells (`title`, `default`) is the first one's.
 */
export function meet(keyword: string, a: unknown, b: unknown): unknown {
  if (ANNOTATIONS.has(keyword)) return a
  const meetWords = MEETINGS.get(keyword)
  if (meetWords) return meetWords(a as never, b as never)
  return isDeepStrictEqual(a, b) ? a : undefined
}

type Meeting = (a: never, b: never) => unknown

const larger: Meeting = (a: number, b: number) => Math.max(a, b)
const smaller: Meeting = (a: number, b: number) => Math.min(a, b)
const joined: Meeting = (a: readonly unknown[], b: readonly unknown[]) => [...a, ...b]

const MEETINGS: ReadonlyMap<string, Meeting> = new Map<string, Meeting>([
  ['type', meetTypes],
  ['enum', meetValues],
  ['required', (a: readonly string[], b: readonly string[]) => [...new Set([...a, ...b])]],
  ['properties', meetMaps],
  ['patternProperties', meetMaps],
  ['dependentSchemas', meetMaps],
  ['additionalProperties', meetSchemas],
  ['items', meetSchemas],
  ['propertyNames', meetSchemas],
  ['contains', meetSchemas],
  ['allOf', joined],
  ...['minimum', 'exclusiveMinimum', 'minLength', 'minItems', 'minProperties', 'minContains'].map(
    (keyword): [string, Meeting] => [keyword, larger],
  ),
  ...['maximum', 'exclusiveMaximum', 'maxLength', 'maxItems', 'maxProperties', 'maxContains'].map(
    (keyword): [string, Meeting] => [keyword, smaller],
  ),
])

function meetTypes(a: readonly string[], b: readonly string[]): readonly string[] | undefined {
  const types = a.flatMap((type) => {
    if (b.includes(type)) return [type]
    if (type === 'number' && b.includes('integer')) return ['integer']
    return type === 'integer' && b.includes('number') ? ['integer'] : []
  })
  return types.length > 0 ? [...new Set(types)] : undefined
}

function meetValues(a: readonly unknown[], b: readonly unknown[]): readonly unknown[] | undefined {
  const values = a.filter((value) =>
    b.some((other) => typeOf(value) === typeOf(other) && isDeepStrictEqual(value, other)),
  )
  return values.length > 0 ? values : undefined
}

function meetMaps(a: NodeMap, b: NodeMap): NodeMap {
  const met = new Map(a)
  for (const [key, node] of b) {
    const first = met.get(key)
    met.set(key, first ? both(first, node) : node)
  }
  return new Map([...met].toSorted(([x], [y]) => (x < y ? -1 : 1)))
}

function meetSchemas(a: Node | boolean, b: Node | boolean): Node | boolean {
  if (typeof a === 'boolean') return a ? b : a
  if (typeof b === 'boolean') return b ? a : b
  return both(a, b)
}
