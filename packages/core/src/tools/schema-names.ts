import type { Tool } from './tool.ts'
import { isObject, isPlain } from '@toolgate/values/json'

/** Keywords whose fields are names that the author of the schema chose. Each field holds a schema. */
const OF_SCHEMAS: ReadonlySet<string> = new Set([
  'properties',
  'patternProperties',
  '$defs',
  'definitions',
  'dependentSchemas',
  'dependencies',
])
/** Keywords that hold values, not schemas. */
const OF_VALUES: ReadonlySet<string> = new Set(['default', 'enum', 'const', 'examples'])
const MAX_DEPTH = 64
const MAX_PARTS = 2000
/** A valid argument name, if no schema names the arguments. */
const NAME = /^[\p{L}_$][\p{L}\d_$-]*$/u

const known = new WeakMap<object, ReadonlySet<string>>()

/** Returns the property names in `properties`, anywhere in a schema. Patterns name no properties. */
export function schemaNames(schema: object): ReadonlySet<string> {
  let names = known.get(schema)
  if (!names) {
    const found = new Set<string>()
    collect(schema, found, new Set())
    known.set(schema, (names = found))
  }
  return names
}

function collect(schema: unknown, names: Set<string>, seen: Set<unknown>): void {
  if (typeof schema !== 'object' || schema === null || seen.has(schema)) return
  seen.add(schema)
  if (Array.isArray(schema)) return schema.forEach((one) => collect(one, names, seen))
  for (const [keyword, value] of Object.entries(schema)) {
    if (OF_VALUES.has(keyword)) continue
    if (!OF_SCHEMAS.has(keyword) || !isObject(value)) collect(value, names, seen)
    else
      for (const [name, one] of Object.entries(value)) {
        if (keyword === 'properties') names.add(name)
        collect(one, names, seen)
      }
  }
}

/**
 * Returns a value of a tool's input, with each key that the tool's schema does not name added as a value: an addressee may
 * be a key. `isInput`: the value is the whole input. Without a schema, its own keys are the names of arguments.
 */
export function withKeys(value: unknown, { inputSchema }: Pick<Tool, 'inputSchema'>, isInput = false): unknown {
  const names = schemaNames(inputSchema)
  let left = MAX_PARTS

  function spread(part: unknown, depth: number): unknown {
    // The value is too large or too deep, so the rest is returned whole and gets its strictest origin.
    if (--left < 0 || depth > MAX_DEPTH) return part
    if (Array.isArray(part)) return part.map((one) => spread(one, depth + 1))
    if (!isPlain(part)) return part
    const isArgument = (key: string) => isInput && depth === 0 && names.size === 0 && NAME.test(key)
    return Object.entries(part).flatMap(([key, one]) => {
      const inner = spread(one, depth + 1)
      return names.has(key) || isArgument(key) ? [inner] : [key, inner]
    })
  }

  return spread(value, 0)
}
