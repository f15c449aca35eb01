import { ConfigError, shapeOf, toNamedMap } from '@toolgate/values'
import { defineTool, isTool, type Tool, type ToolDefinition, type ToolAnnotations } from './tool.ts'

/** A value of a record of tools: a tool, a definition, or a definition that takes its name from the key. */
export type RecordTool = Tool | ToolDefinition | UnnamedToolDefinition
export type UnnamedToolDefinition = Omit<ToolDefinition, 'name' | 'namespace'> & {
  readonly name?: undefined
  readonly namespace?: undefined
}

/** Tools by id, so that the compiler knows the ids. */
export type ToolRecord<Name extends string = string> = Readonly<Record<Name, RecordTool>>

/**
 * Tools that an adapter imported from a framework, by id, with the type of the framework's map: a gate with these tools
 * returns the map with its types. The key exists for the compiler only.
 */
export type NativeToolRecord<Native> = ToolRecord<keyof Native & string> & { readonly '~native': Native }

/**
 * Returns the tools of a record. @throws {ConfigError} `tool_invalid` for a key that differs from its tool's id, and for an
 * invalid tool
 */
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

/** Tags, category, scopes and annotations that a host adds to another party's tool. */
export interface ToolOverlay {
  readonly tags?: readonly string[] | undefined
  readonly category?: string | undefined
  /** The caller must have all of these. */
  readonly requiredScopes?: readonly string[] | undefined
  /** Groups of the gate that the tool joins. */
  readonly groups?: readonly string[] | undefined
  /** Labels that its output carries, such as `private`. */
  readonly labels?: readonly string[] | undefined
  /** `true` if the output is trusted. Otherwise it is `untrusted`. */
  readonly trusted?: boolean | undefined
  /** The input fields that name recipients, such as `to`. */
  readonly addressees?: readonly string[] | undefined
  readonly annotations?: ToolAnnotations | undefined
}

export const OVERLAY = shapeOf<ToolOverlay>(
  {
    tags: true,
    category: true,
    requiredScopes: true,
    groups: true,
    labels: true,
    trusted: true,
    addressees: true,
    annotations: true,
  },
  'field',
)
