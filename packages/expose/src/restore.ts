import type { JsonSchema, Tool } from '@toolgate/core'
import { isObject, listOf } from './schema/node.ts'
import { createResolve, type Resolve } from './schema/references.ts'

const MAX_DEPTH = 64

/**
 * Returns an input without the nulls that replace absent properties.
 *
 * A strict mode requires every property and allows null for optional ones. If the tool's own schema neither requires the
 * property nor allows null, it is left out again.
 */
export function withoutNulls(tool: Tool, input: unknown): unknown {
  const resolve = createResolve(tool.inputSchema)
  return restore(input, [tool.inputSchema], resolve, 0)
}

function restore(value: unknown, schemas: readonly JsonSchema[], resolve: Resolve, depth: number): unknown {
  if (depth > MAX_DEPTH || typeof value !== 'object' || value === null) return value
  const all = schemas.flatMap((schema) => applicable(schema, resolve))
  if (Array.isArray(value)) {
    const items = all.flatMap((schema) => schemasIn([schema['items'], schema['prefixItems']].flat()))
    return value.map((item) => restore(item, items, resolve, depth + 1))
  }
  const required = new Set(all.flatMap((schema) => listOf(schema['required'])))
  const entries = Object.entries(value).flatMap(([key, item]) => {
    const own = all.flatMap((schema) => {
      const properties = schema['properties']
      return isObject(properties) && Object.hasOwn(properties, key) ? schemasIn([properties[key]]) : []
    })
    const absent =
      item === null && own.length > 0 && !required.has(key) && !own.some((schema) => takesNull(schema, resolve))
    return absent ? [] : [[key, restore(item, own, resolve, depth + 1)] as const]
  })
  return Object.fromEntries(entries)
}

/** Returns a schema with those that may apply with it: its reference, its parts and its branches. */
function applicable(schema: JsonSchema, resolve: Resolve, seen = new Set<JsonSchema>()): readonly JsonSchema[] {
  if (seen.has(schema)) return []
  seen.add(schema)
  const parts = schemasIn(['allOf', 'anyOf', 'oneOf'].flatMap((keyword) => [schema[keyword] ?? []].flat()))
  const target = typeof schema['$ref'] === 'string' ? resolve(schema, schema['$ref'], '').raw : undefined
  return [schema, ...[...parts, ...schemasIn([target])].flatMap((part) => applicable(part, resolve, seen))]
}

function takesNull(schema: JsonSchema, resolve: Resolve): boolean {
  const all = applicable(schema, resolve)
  const named = all.filter((each) => ['type', 'enum', 'const'].some((keyword) => keyword in each))
  return (
    named.length === 0 ||
    named.some(
      (each) =>
        [each['type']].flat().includes('null') ||
        each['nullable'] === true ||
        ('const' in each ? each['const'] === null : !('type' in each) && [each['enum']].flat().includes(null)),
    )
  )
}

function schemasIn(values: readonly unknown[]): readonly JsonSchema[] {
  return values.filter(isObject)
}
