import { isObject, type JsonObject } from '@toolgate/values/json'
import { toHeaderValue } from './protocol.ts'

/** An argument that the header `Mcp-Param-<name>` repeats, for proxies in front of the server. */
export interface ParamHeader {
  readonly path: readonly string[]
  readonly name: string
}

const KEYWORD = 'x-mcp-header'
/** A header name (RFC 9110, 5.6.2). */
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
const TYPES: ReadonlySet<unknown> = new Set(['string', 'integer', 'boolean'])
/** Keywords whose subschemas apply only to some calls. */
const ELSEWHERE: ReadonlySet<string> = new Set(
  (
    'items prefixItems contains additionalProperties unevaluatedProperties unevaluatedItems propertyNames ' +
    'patternProperties dependentSchemas oneOf anyOf allOf not if then else $defs definitions'
  ).split(' '),
)

/**
 * Returns the arguments that a tool expects in headers (MCP 2026-07-28, Streamable HTTP, "Custom Headers from Tool
 * Parameters"), or a text that describes the problem with its schema.
 */
export function findParamHeaders(schema: JsonObject): readonly ParamHeader[] | string {
  const found: ParamHeader[] = []
  if (Object.hasOwn(schema, KEYWORD)) return `${KEYWORD} is set on the whole input`
  const problem = visitProperties(schema, [], found)
  if (problem !== undefined) return problem
  const names = new Set(found.map(({ name }) => name.toLowerCase()))
  return names.size < found.length ? `${KEYWORD} gives two arguments one name` : found
}

const known = new WeakMap<JsonObject, readonly ParamHeader[] | undefined>()

/** Returns the arguments that a checked schema expects in headers, if any. The result is cached. */
export function paramHeadersOf(schema: JsonObject): readonly ParamHeader[] | undefined {
  if (known.has(schema)) return known.get(schema)
  const headers = findParamHeaders(schema)
  const found = typeof headers !== 'string' && headers.length > 0 ? headers : undefined
  known.set(schema, found)
  return found
}

/** Returns the headers of one call, as alternating names and values. */
export function toParamHeaders(headers: readonly ParamHeader[], input: unknown): readonly string[] {
  return headers.flatMap(({ path, name }) => {
    const value = path.reduce(
      (node: unknown, key) => (isObject(node) && Object.hasOwn(node, key) ? node[key] : undefined),
      input,
    )
    const usable = typeof value === 'string' || typeof value === 'boolean' || Number.isSafeInteger(value)
    return usable ? [`mcp-param-${name}`, toHeaderValue(String(value))] : []
  })
}

function visitProperties(schema: JsonObject, path: readonly string[], found: ParamHeader[]): string | undefined {
  if (hidesHeader(schema)) return `${KEYWORD} is set where it does not hold for every call`
  for (const [key, child] of Object.entries(isObject(schema['properties']) ? schema['properties'] : {})) {
    if (!isObject(child)) continue
    const here = [...path, key]
    if (Object.hasOwn(child, KEYWORD)) {
      const name = child[KEYWORD]
      if (typeof name !== 'string' || !TOKEN.test(name)) return `${KEYWORD} of "${key}" is not a name for a header`
      if (!TYPES.has(child['type'])) return `${KEYWORD} of "${key}" needs the type string, integer or boolean`
      found.push({ path: here, name })
    }
    const problem = visitProperties(child, here, found)
    if (problem !== undefined) return problem
  }
  return undefined
}

function hidesHeader(schema: JsonObject): boolean {
  return Object.entries(schema).some(([key, value]) => ELSEWHERE.has(key) && mentions(value))
}

/** Whether a value contains the keyword. Its depth is bounded by that of the message. */
function mentions(value: unknown): boolean {
  if (Array.isArray(value)) return value.some(mentions)
  return isObject(value) && (Object.hasOwn(value, KEYWORD) || Object.values(value).some(mentions))
}
