import { ConfigError } from '../errors.ts'
import { toNamedMap, shapeOf } from '../util/shape.ts'
import { defineTool, isTool, type Tool, type ToolDefinition, type ToolAnnotations } from './tool.ts'

/** What a record of tools holds: tools, definitions, or definitions that the key names. */
export type RecordTool = Tool | ToolDefinition | UnnamedToolDefinition
export type UnnamedToolDefinition = Omit<ToolDefinition, 'name' | 'namespace'> & {
  readonly name?: undefined
  readonly namespace?: undefined
}

/** Tools by their ids, so that the ids are known to the compiler. */
export type ToolRecord<Name extends string = string> = Readonly<Record<Name, RecordTool>>

/**
 * Tools that an adapter has brought in from a framework, by their ids, with the type of the framework's own map: a
 * gate made of them gives it back with its types. The key exists for the compiler only.
 */
export type NativeToolRecord<Native> = ToolRecord<keyof Native & string> & { readonly '~native': Native }

/** @throws {ConfigError} `tool_invalid` for a key that is not the id of its tool, and for what is no tool */
export function toolsOfRecord(record: ToolRecord): readonly Tool[] {
  return [...toNamedMap('tools', record)].map(([key, value]) => {
    const tool = toTool(key, value)
    if (tool.id !== key)
      throw new ConfigError(`tools.${key}`, `the key must be the id of the tool, which is "${tool.id}"`, {
        code: 'tool_invalid',
      })
    return tool
  })
}

function toTool(key: string, value: RecordTool): Tool {
  if (isTool(value)) return value
  if (typeof value !== 'object' || value === null)
    throw new ConfigError(`tools.${key}`, 'a tool must be an object', { code: 'tool_invalid' })
  return defineTool(value.name === undefined ? { ...value, ...partsOf(key) } : value)
}

function partsOf(id: string): { name: string; namespace?: string } {
  const colon = id.indexOf(':')
  return colon === -1 ? { name: id } : { namespace: id.slice(0, colon), name: id.slice(colon + 1) }
}

/** What a host says of somebody else's tool, beside what the tool says of itself. */
export interface ToolOverlay {
  readonly tags?: readonly string[] | undefined
  readonly category?: string | undefined
  /** A caller must hold all of them. */
  readonly requiredScopes?: readonly string[] | undefined
  /** Groups of the gate that it joins. */
  readonly groups?: readonly string[] | undefined
  readonly annotations?: ToolAnnotations | undefined
}

export const OVERLAY = shapeOf<ToolOverlay>(
  { tags: true, category: true, requiredScopes: true, groups: true, annotations: true },
  'field',
)
