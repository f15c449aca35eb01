import type { JsonSchema } from '@toolgate/core'
import { isObject, type JsonObject, toJsonText } from '@toolgate/values/json'
import type { ListedTool, McpResult } from '@toolgate/mcp'

/**
 * Returns a listed tool in a form that clients of revisions before 2026-07-28 can read.
 *
 * In those revisions the root of an output schema is an object. Any other schema becomes the schema of the object's
 * only property, `result`, as in the official SDK (SEP-2106).
 */
export function toEarlierTool(tool: ListedTool): ListedTool {
  const { outputSchema } = tool
  return outputSchema === undefined || hasObjectRoot(outputSchema)
    ? tool
    : { ...tool, outputSchema: wrapSchema(outputSchema) }
}

/** Returns the result of a tool so that it matches the output schema that {@link toEarlierTool} lists. */
export function toEarlierResult(result: McpResult, outputSchema: JsonSchema | undefined): McpResult {
  const { structuredContent } = result
  if (structuredContent === undefined) return result
  const isWrapped = outputSchema !== undefined && !hasObjectRoot(outputSchema)
  if (isObject(structuredContent))
    return isWrapped ? { ...result, structuredContent: { result: structuredContent } } : result
  const { content = [] } = result
  const hasText = content.some((block) => isObject(block) && block['type'] === 'text')
  return {
    ...result,
    content: hasText ? content : [...content, { type: 'text', text: toJsonText(structuredContent) }],
    structuredContent: { result: structuredContent },
  }
}

function hasObjectRoot({ type }: JsonSchema): boolean {
  return type === 'object'
}

/** Keywords whose values are data. A `$ref` in them is not a reference. */
const DATA: ReadonlySet<string> = new Set(['const', 'enum', 'default', 'examples'])
/** Keywords whose values map names to schemas. Such a name may equal a keyword. */
const NAMED: ReadonlySet<string> = new Set([
  'properties',
  'patternProperties',
  '$defs',
  'definitions',
  'dependentSchemas',
  'dependencies',
])

function wrapSchema(schema: JsonSchema): JsonSchema {
  const { $schema, $id } = schema
  const isRecursive = isDialect2019($schema) && schema['$recursiveAnchor'] !== true
  const inner = isOwnBase($id) ? schema : moveReferences(schema, isRecursive)
  return {
    ...(typeof $schema === 'string' && { $schema }),
    type: 'object',
    properties: { result: inner },
    required: ['result'],
  }
}

const ROOT = '#/properties/result'

/** Rewrites references within the document, whose root has moved. Parts with their own `$id` are left as they are. */
function moveReferences(value: unknown, isRecursive: boolean, areNames: boolean = false): unknown {
  if (Array.isArray(value)) return value.map((item) => moveReferences(item, isRecursive))
  if (!isObject(value) || (!areNames && isOwnBase(value['$id']))) return value
  const moved: [string, unknown][] = []
  let recurses = false
  for (const [key, part] of Object.entries(value)) {
    if (areNames) moved.push([key, moveReferences(part, isRecursive)])
    else if ((key === '$ref' || key === '$dynamicRef') && typeof part === 'string') moved.push([key, movePointer(part)])
    else if (key === '$recursiveRef' && part === '#' && isRecursive) recurses = true
    else if (DATA.has(key)) moved.push([key, part])
    else moved.push([key, moveReferences(part, isRecursive, NAMED.has(key))])
  }
  const schema: JsonObject = Object.fromEntries(moved)
  if (!recurses) return schema
  if (!Object.hasOwn(schema, '$ref')) return { ...schema, $ref: ROOT }
  const { allOf } = schema
  return { ...schema, allOf: [...(Array.isArray(allOf) ? allOf : []), { $ref: ROOT }] }
}

function movePointer(pointer: string): string {
  if (pointer === '#') return ROOT
  return pointer.startsWith('#/') ? `${ROOT}${pointer.slice(1)}` : pointer
}

/** Whether an `$id` changes the base of references. A fragment alone does not (draft-07's anchor). */
function isOwnBase(id: unknown): boolean {
  return id !== undefined && !(typeof id === 'string' && id.startsWith('#'))
}

function isDialect2019($schema: unknown): boolean {
  return typeof $schema === 'string' && /^https?:\/\/json-schema\.org\/draft\/2019-09\/schema#?$/.test($schema)
}
