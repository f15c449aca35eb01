import type { JsonSchema } from '@toolgate/core'
import { isPlainObject } from './results.ts'

/**
 * Gives an input schema as the SDKs' clients take one: a tool whose schema they do not take costs them the whole list.
 * Its root says that it is of an object, and what it says of properties are objects.
 *
 * `undefined` for a tool that takes no object, which nobody can call over MCP.
 */
export function toInputSchema(schema: JsonSchema): JsonSchema | undefined {
  const { type } = schema
  if (type === 'object') return withObjects(schema)
  if (type !== undefined && !(Array.isArray(type) && type.includes('object'))) return undefined
  return withObjects({ ...schema, type: 'object' })
}

/** The same of an output schema, whose root may say what it likes since MCP 2026-07-28. */
export function toOutputSchema(schema: JsonSchema | undefined): JsonSchema | undefined {
  return schema && withObjects(schema)
}

/** In JSON Schema `true` is `{}` and `false` is `{ "not": {} }`. */
function withObjects(schema: JsonSchema): JsonSchema {
  const { properties } = schema
  if (!isPlainObject(properties) || !Object.values(properties).some((one) => typeof one === 'boolean')) return schema
  const objects = Object.entries(properties).map(([name, one]): [string, unknown] => [
    name,
    one === true ? {} : one === false ? { not: {} } : one,
  ])
  return { ...schema, properties: Object.fromEntries(objects) }
}
