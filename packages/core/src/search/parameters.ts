import type { JsonSchema } from '../tools/tool.ts'

const MAX_NAMES = 128
const MAX_SCHEMAS = 512
const MAX_DEPTH = 8

/** The keywords below which there are schemas: whether one or a list of them, or some by name. */
const KEYWORDS: ReadonlyMap<string, 'plain' | 'named'> = new Map([
  ...['items', 'prefixItems', 'additionalProperties', 'allOf', 'anyOf', 'oneOf', 'if', 'then', 'else', 'not'].map(
    (keyword) => [keyword, 'plain'] as const,
  ),
  ...['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas'].map(
    (keyword) => [keyword, 'named'] as const,
  ),
])

/**
 * Gives the names of a schema's parameters, nested ones too, each once: at most 128, the outer ones first.
 *
 * By name and not as they were written, so that the order of keys changes nothing where the bound cuts.
 */
export function parameterNames(schema: JsonSchema): readonly string[] {
  const names = new Set<string>()
  let level: readonly unknown[] = [schema]
  let visited = 0
  for (let depth = 0; depth < MAX_DEPTH && level.length > 0; depth++) {
    const next: unknown[] = []
    for (const at of level) {
      if (!isObject(at)) continue
      if (++visited > MAX_SCHEMAS) return [...names]
      for (const name of sortedKeys(at['properties'])) {
        if (names.size >= MAX_NAMES) return [...names]
        names.add(name)
      }
      addBelow(next, at)
    }
    level = next
  }
  return [...names]
}

function addBelow(next: unknown[], schema: Readonly<Record<string, unknown>>): void {
  for (const keyword of sortedKeys(schema)) {
    const kind = KEYWORDS.get(keyword)
    const below = schema[keyword]
    if (kind === 'named') for (const name of sortedKeys(below)) next.push((below as Record<string, unknown>)[name])
    else if (kind === 'plain')
      next.push(...(Array.isArray(below) ? (below as unknown[]).slice(0, MAX_SCHEMAS) : [below]))
  }
}

function sortedKeys(value: unknown): readonly string[] {
  if (!isObject(value)) return []
  const keys = Object.keys(value)
  return keys.length > 1 ? keys.toSorted() : keys
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
