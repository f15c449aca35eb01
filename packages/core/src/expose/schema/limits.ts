import type { JsonSchema } from '../../tools/tool.ts'
import type { Limits } from './dialect.ts'
import { isObject } from './node.ts'

const LONG_ENUM = 250

const WORDS: Readonly<Record<keyof Limits, string>> = {
  properties: 'properties',
  optionalProperties: 'optional properties',
  depth: 'levels of objects',
  enumValues: 'enum values',
  textLength: 'characters of names and enum values',
  longEnumLength: 'characters in one enum',
}

/** Gives what makes a schema too large for a target, or `undefined`. */
export function overLimit(schema: JsonSchema, limits: Limits): string | undefined {
  const size = measure(schema)
  const over = (Object.keys(WORDS) as (keyof Limits)[]).find((key) => size[key] > (limits[key] ?? Infinity))
  return over && `${size[over]} ${WORDS[over]}, at most ${limits[over]}`
}

/** Counts what is in a schema as it was written. */
function measure(schema: JsonSchema): Record<keyof Limits, number> {
  const size = { properties: 0, optionalProperties: 0, depth: 0, enumValues: 0, textLength: 0, longEnumLength: 0 }

  const visit = (value: unknown, outer: number): void => {
    if (Array.isArray(value)) for (const item of value) visit(item, outer)
    if (!isObject(value)) return
    const properties = keysOf(value['properties'])
    const required = (value['required'] ?? []) as readonly string[]
    const listed = [...((value['enum'] ?? []) as unknown[]), ...('const' in value ? [value['const']] : [])].map(String)
    const depth = [value['type']].flat().includes('object') ? outer + 1 : outer
    const names = [...properties, ...keysOf(value['$defs'])]
    size.properties += properties.length
    size.optionalProperties += properties.filter((name) => !required.includes(name)).length
    size.depth = Math.max(size.depth, depth)
    size.enumValues += listed.length
    size.textLength += [...names, ...listed].join('').length
    if (listed.length > LONG_ENUM) size.longEnumLength = Math.max(size.longEnumLength, listed.join('').length)
    for (const keyword of ['items', 'anyOf']) visit(value[keyword], depth)
    for (const keyword of ['properties', '$defs']) {
      if (isObject(value[keyword])) for (const item of Object.values(value[keyword])) visit(item, depth)
    }
  }
  visit(schema, 0)
  return size
}

function keysOf(value: unknown): readonly string[] {
  return isObject(value) ? Object.keys(value) : []
}
