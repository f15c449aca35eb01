import { type McpResult, outputText } from '@toolgate/core/internal'

/** What clients refuse a block of content without, by its type. */
const BLOCKS: ReadonlyMap<unknown, readonly string[]> = new Map([
  ['text', ['text']],
  ['image', ['data', 'mimeType']],
  ['audio', ['data', 'mimeType']],
  ['resource_link', ['name', 'uri']],
  ['resource', []],
])
const FIELDS: ReadonlySet<string> = new Set(['content', 'structuredContent', 'isError', '_meta', 'resultType'])

/**
 * Whether a tool has answered with a result of MCP's: a list of content blocks makes one; an empty one only beside
 * nothing that a result has not.
 */
export function isMcpResult(output: unknown): output is McpResult {
  if (!isPlainObject(output)) return false
  const { content, resultType, isError, _meta: meta } = output
  if (resultType === 'input_required') return true
  if (!Array.isArray(content) || (isError !== undefined && typeof isError !== 'boolean')) return false
  if (meta !== undefined && !isPlainObject(meta)) return false
  if (content.length === 0) return Object.keys(output).every((field) => FIELDS.has(field))
  return content.every(isBlock)
}

function isBlock(block: unknown): boolean {
  if (!isPlainObject(block)) return false
  const { type, resource } = block
  if (type === 'resource' && !isPlainObject(resource)) return false
  return BLOCKS.get(type)?.every((field) => typeof block[field] === 'string') ?? false
}

/** Gives what can be sent of a value: of what JSON cannot say, the SDKs send nothing at all, and their client waits. */
export function toSendable<Value>(value: Value): Value {
  try {
    JSON.stringify(value)
    return value
  } catch {
    return jsonOf(outputText(value)) as Value
  }
}

/** Gives what a text says in JSON; `undefined` where it is none. */
export function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}

export function isPlainObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
