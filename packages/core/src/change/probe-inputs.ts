import type { Tool } from '../tools/tool.ts'
import { isObject } from '../util/json.ts'
import type { Restrictions } from './restrictions.ts'
import { readOwnJson } from '../util/read-json.ts'

const MAX_INPUTS = 200
const LITERAL = /"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'/g
const NUMBER = /\b\d{1,15}(?:\.\d{1,6})?\b/g

/**
 * Returns inputs that conditions may tell apart: the texts and numbers that stand in the conditions, and ones beside them, in
 * each field of the tool's schema.
 */
export function probeInputs({ inputSchema, kind, uri }: Tool, sides: readonly Restrictions[]): readonly unknown[] {
  if (kind === 'resource') return [{ uri }]
  const texts = sides.flatMap(({ deny, ask, allow }) => [
    ...deny,
    ...ask.map(({ text }) => text),
    ...allow.flatMap((list) => [...list]),
  ])
  const { properties } = inputSchema
  const fields = isObject(properties) ? Object.entries(properties) : []
  const values = { string: stringsIn(texts), number: numbersIn(texts), boolean: [true, false] }
  const base = Object.fromEntries(
    fields.flatMap(([name, schema]) => {
      const [first] = valuesFor(schema, values)
      return first === undefined ? [] : [[name, first] as const]
    }),
  )
  const inputs = [
    {},
    base,
    ...fields.flatMap(([name, schema]) => valuesFor(schema, values).map((value) => ({ ...base, [name]: value }))),
  ]
  return inputs.slice(0, MAX_INPUTS)
}

type Values = Readonly<Record<'string' | 'number' | 'boolean', readonly unknown[]>>

function valuesFor(schema: unknown, values: Values): readonly unknown[] {
  const { type, enum: words, items } = isObject(schema) ? schema : {}
  if (Array.isArray(words)) return words
  if (type === 'integer' || type === 'number') return values.number
  if (type === 'boolean') return values.boolean
  if (type === 'array') return [[], ...valuesFor(items, values).map((value) => [value])]
  if (type === 'object') return [{}]
  return values.string
}

function stringsIn(texts: readonly string[]): readonly string[] {
  // The conditions are inside JSON, so their quotes are escaped.
  const found = texts.flatMap((text) =>
    [...textsOf(text).matchAll(LITERAL)].map(([, double, single]) => double ?? single ?? ''),
  )
  return [...new Set(['', 'x', ...found.flatMap((text) => [text, `${text}/x`, `${text}x`, `https://${text}/`])])]
}

function numbersIn(texts: readonly string[]): readonly number[] {
  const found = texts.flatMap((text) => [...textsOf(text).matchAll(NUMBER)].map(([number]) => Number(number)))
  return [...new Set([0, 1, ...found.flatMap((number) => [number - 1, number, number + 1])])]
}

function textsOf(json: string): string {
  return (readOwnJson(json) as readonly unknown[]).filter((part) => typeof part === 'string').join('\n')
}
