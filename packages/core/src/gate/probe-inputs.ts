import type { Tool } from '../tools/tool.ts'
import { isObject } from '@toolgate/values/json'

const MAX_INPUTS = 200
const MAX_DEPTH = 3
const LITERAL = /"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'/g
const NUMBER = /\b\d{1,15}(?:\.\d{1,6})?\b/g
/** Schema keywords that state values. */
const OWN_VALUES = ['const', 'default', 'minimum', 'maximum'] as const

/**
 * Returns inputs that conditions may tell apart: the texts and numbers in the conditions and their neighbours, placed in
 * each field of the tool's schema and then in each pair of fields.
 */
export function probeInputs({ inputSchema, kind, uri }: Tool, conditions: readonly string[]): readonly unknown[] {
  if (kind === 'resource') return [{ uri }]
  const values = { string: stringsIn(conditions), number: numbersIn(conditions), boolean: [true, false] }
  return [{}, ...objectsFor(inputSchema, values, MAX_DEPTH)].slice(0, MAX_INPUTS)
}

type Values = Readonly<Record<'string' | 'number' | 'boolean', readonly unknown[]>>

function objectsFor(
  { properties }: { readonly properties?: unknown },
  values: Values,
  depth: number,
): readonly object[] {
  const fields = Object.entries(isObject(properties) ? properties : {}).flatMap(([name, schema]) => {
    const own = valuesFor(schema, values, depth - 1)
    return own.length === 0 ? [] : [{ name, own }]
  })
  const base = Object.fromEntries(fields.map(({ name, own }) => [name, own[0]]))
  const changed = fields.flatMap(({ name, own }) => own.map((value) => ({ ...base, [name]: value })))
  const twice = fields.flatMap(({ name, own }, i) =>
    fields
      .slice(i + 1)
      .flatMap((other) =>
        own
          .flatMap((value) => other.own.map((more) => ({ ...base, [name]: value, [other.name]: more })))
          .slice(0, MAX_INPUTS),
      ),
  )
  return [base, ...changed, ...twice].slice(0, MAX_INPUTS)
}

function valuesFor(schema: unknown, values: Values, depth: number): readonly unknown[] {
  if (!isObject(schema) || depth < 0) return []
  const { type, enum: words, examples, items } = schema
  if (Array.isArray(words)) return words
  const own = [
    ...OWN_VALUES.map((key) => schema[key]).filter((value) => value !== undefined),
    ...(Array.isArray(examples) ? examples : []),
  ]
  if (type === 'integer' || type === 'number') return [...own, ...values.number]
  if (type === 'boolean') return values.boolean
  if (type === 'array') return [[], ...valuesFor(items, values, depth - 1).map((value) => [value])]
  if (type === 'object') return depth === 0 ? [{}] : objectsFor(schema, values, depth)
  return [...own.filter((value) => typeof value === 'string'), ...values.string]
}

function stringsIn(conditions: readonly string[]): readonly string[] {
  const found = conditions.flatMap((text) =>
    [...text.matchAll(LITERAL)].map(([, double, single]) => double ?? single ?? ''),
  )
  return [...new Set(['', 'x', ...found.flatMap((text) => [text, `${text}/x`, `${text}x`, `https://${text}/`])])]
}

function numbersIn(conditions: readonly string[]): readonly number[] {
  const found = conditions.flatMap((text) => [...text.matchAll(NUMBER)].map(([number]) => Number(number)))
  return [...new Set([0, 1, ...found.flatMap((number) => [number - 1, number, number + 1])])]
}
