import type { JsonSchema, Tool } from '@toolgate/core'
import { isObject, type JsonObject } from '@toolgate/values/json'
import type { ToolIcon, ToolMeta } from '@toolgate/core/tools'

/** A tool as `tools/list` of MCP shows it. */
export interface ListedTool {
  readonly name: string
  readonly title?: string
  readonly description?: string
  readonly inputSchema: JsonSchema
  readonly outputSchema?: JsonSchema
  readonly annotations?: object
  readonly icons?: readonly ToolIcon[]
  readonly _meta?: ToolMeta
  /** Fields that this package does not know, such as `execution`. */
  readonly [field: string]: unknown
}

/**
 * Returns a tool as `tools/list` shows it, under its name on the wire: with its own texts and schemas, and without the
 * operator's additions. Returns `undefined` for a tool whose input is not an object, since MCP cannot call it.
 *
 * An SDK client rejects the whole list if it cannot read one schema. So the root of each input schema has
 * `type: object`, and boolean properties become the equivalent objects.
 */
export function toListedTool(tool: Tool, name: string): ListedTool | undefined {
  const { title, description, annotations, icons, _meta, fields } = tool
  const inputSchema = toInputSchema(tool.inputSchema)
  if (inputSchema === undefined) return undefined
  return {
    name,
    ...(title === undefined ? {} : { title }),
    ...(description === '' ? {} : { description }),
    inputSchema,
    // Since MCP 2026-07-28, the root of an output schema may have any type.
    ...(tool.outputSchema === undefined ? {} : { outputSchema: withObjects(tool.outputSchema) }),
    ...(Object.keys(annotations).length === 0 ? {} : { annotations }),
    ...(icons && { icons }),
    ...(_meta && { _meta }),
    ...fields,
    ...(fields && isTaskOnly(fields) && { execution: { ...fields['execution'], taskSupport: 'optional' } }),
  }
}

/** Clients without tasks do not call a task-only tool, although a gateway runs the task for them. */
function isTaskOnly(fields: JsonObject): fields is { readonly execution: JsonObject } {
  const { execution } = fields
  return isObject(execution) && execution['taskSupport'] === 'required'
}

function toInputSchema(schema: JsonSchema): JsonSchema | undefined {
  const { type } = schema
  if (type === 'object') return withObjects(schema)
  if (type !== undefined && !(Array.isArray(type) && type.includes('object'))) return undefined
  return withObjects({ ...schema, type: 'object' })
}

/** In JSON Schema `true` is `{}` and `false` is `{ "not": {} }`. */
function withObjects(schema: JsonSchema): JsonSchema {
  const { properties } = schema
  if (typeof properties !== 'object' || properties === null) return schema
  if (!Object.values(properties).some((one) => typeof one === 'boolean')) return schema
  const objects = Object.entries(properties).map(([name, one]: [string, unknown]): [string, unknown] => [
    name,
    one === true ? {} : one === false ? { not: {} } : one,
  ])
  return { ...schema, properties: Object.fromEntries(objects) }
}
