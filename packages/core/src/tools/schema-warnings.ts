import { dialectOf, findSkipped, type SchemaWarning } from '@toolgate/values/json-schema'
import type { Tool } from './tool.ts'

const NONE: readonly SchemaWarning[] = Object.freeze([])
/** The most warnings for one schema. */
const MAX_WARNINGS = 20

const known = new WeakMap<object, readonly SchemaWarning[]>()

/**
 * Returns the unchecked keywords of a tool's input schema, each with the reason. The rest of the schema is checked. Returns
 * none for a Standard Schema, which validates by itself.
 */
export function schemaWarningsOf({ inputSchema, parseInput }: Tool): readonly SchemaWarning[] {
  if (parseInput) return NONE
  let warnings = known.get(inputSchema)
  if (!warnings) known.set(inputSchema, (warnings = findWarnings(inputSchema)))
  return warnings
}

function findWarnings(schema: object): readonly SchemaWarning[] {
  if (!mentionsAny(schema)) return NONE
  return findSkipped(schema, dialectOf(schema)).warnings.slice(0, MAX_WARNINGS)
}

/** Most schemas have no keyword that can be skipped. */
const SKIPPABLE: ReadonlySet<string> = new Set([
  '$schema',
  '$ref',
  '$dynamicRef',
  '$recursiveRef',
  'pattern',
  'patternProperties',
])

function mentionsAny(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  for (const [key, item] of Object.entries(value)) if (SKIPPABLE.has(key) || mentionsAny(item)) return true
  return false
}
