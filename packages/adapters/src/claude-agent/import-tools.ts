import { objectFromShape, type ZodRawShapeCompat } from '@modelcontextprotocol/sdk/server/zod-compat.js'
import { toJsonSchemaCompat } from '@modelcontextprotocol/sdk/server/zod-json-schema-compat.js'
import {
  type CallContext,
  ConfigError,
  type StandardSchema,
  type Tool,
  type ToolAnnotations,
  type ToolRecord,
} from '@toolgate/core'
import { createWireNames, toWireName } from '@toolgate/core/expose'
import type { UnnamedToolDefinition } from '@toolgate/core/internal'
import { type Overlay, toNativeRecord } from '../shared/overlay.ts'
import { HarnessExecution, partsOfName, type SdkTool, toHarnessName, toServerPrefix } from './harness.ts'

/** The id in the gate of what the SDK names so. */
export type ClaudeAgentToolId<T> = T extends string
  ? T extends `mcp__${infer Server}__${infer Name}`
    ? `${Server}:${Name}`
    : T
  : T extends { readonly name: infer Name extends string }
    ? Name
    : never

/**
 * Brings tools of the Claude Agent SDK into a gate.
 *
 * A name stands for a tool that the harness runs itself: a built-in such as `Bash`, whose id is its name, or
 * `mcp__github__create_issue` of another MCP server, whose id is `github:create_issue`. What `tool()` of the SDK gives is
 * run by the gate. What is not brought in is unknown to the gate, and so refused.
 *
 * @throws {ConfigError} for a tool that is named twice, or cannot be used, and for a name of the overlay that is none
 * @example
 * const gate = createGate({ tools: fromClaudeAgent(['Read', 'Bash', lookUp], { Bash: { tags: ['danger'] } }) })
 */
export function fromClaudeAgent<const T extends readonly (string | SdkTool)[]>(
  tools: T,
  overlay: Overlay<ClaudeAgentToolId<T[number]>> = {},
): ToolRecord<ClaudeAgentToolId<T[number]>> {
  const definitions = new Map<string, UnnamedToolDefinition>()
  for (const tool of tools) {
    const id = typeof tool === 'string' ? toId(tool) : tool.name
    if (definitions.has(id)) throw new ConfigError(`tool "${id}"`, 'is brought in twice')
    definitions.set(id, typeof tool === 'string' ? toHarnessTool(tool) : toOwnTool(tool))
  }
  return toNativeRecord<Record<ClaudeAgentToolId<T[number]>, unknown>>(definitions, overlay)
}

/** Gives the name by which the harness runs a tool; `undefined` for a tool that the gate runs. */
export function harnessNameOf(tool: Tool): string | undefined {
  return tool.execute && harnessNames.get(tool.execute)
}

const harnessNames = new WeakMap<object, string>()

function toId(name: string): string {
  const parts = partsOfName(name)
  return parts ? `${parts.server}:${parts.tool}` : name
}

function toHarnessTool(name: string): UnnamedToolDefinition {
  const execute = (input: unknown, call: CallContext): Promise<unknown> => {
    if (call.context instanceof HarnessExecution) return call.context.begin(input, call)
    throw new Error('it is run by Claude Code itself, so only a query of that can call it')
  }
  harnessNames.set(execute, name)
  const annotations = READ_ONLY.get(name)
  return { execute, ...(annotations ? { annotations } : {}) }
}

const LOOKS_AROUND: ToolAnnotations = { readOnlyHint: true, openWorldHint: false }
const LOOKS_OUT: ToolAnnotations = { readOnlyHint: true, openWorldHint: true }

/** The built-ins that change nothing. Of the others nothing is said, so MCP's defaults hold: they may destroy. */
const READ_ONLY: ReadonlyMap<string, ToolAnnotations> = new Map([
  ['Glob', LOOKS_AROUND],
  ['Grep', LOOKS_AROUND],
  ['LSP', LOOKS_AROUND],
  ['Read', LOOKS_AROUND],
  ['ToolSearch', LOOKS_AROUND],
  ['WebFetch', LOOKS_OUT],
  ['WebSearch', LOOKS_OUT],
])

function toOwnTool({ name, description, inputSchema, annotations, _meta, handler }: SdkTool): UnnamedToolDefinition {
  const execute = (input: unknown, call: CallContext): Promise<object> => handler(input, call.context)
  return { description, inputSchema: toSchema(name, inputSchema), annotations, _meta, execute }
}

/** One schema of those of the fields, as the SDK makes it. */
function toSchema(name: string, shape: object): StandardSchema {
  if (!Object.values(shape).every(isSchema))
    throw new ConfigError(`tool "${name}".inputSchema`, 'must be zod schemas by the names of the fields')
  const schema = objectFromShape(shape as ZodRawShapeCompat)
  const input = (): Record<string, unknown> => toJsonSchemaCompat(schema, { pipeStrategy: 'input' })
  return { '~standard': { ...(schema as StandardSchema)['~standard'], jsonSchema: { input, output: input } } }
}

function isSchema(value: unknown): boolean {
  return typeof value === 'object' && value !== null && '~standard' in value
}

/** The names by which the harness calls the tools of a gate: its own, and those of the gate's server. */
export interface HarnessNames {
  /** Of hidden tools too, so that a call of one is recorded as that. */
  toId(name: string): string | undefined
  toName(id: string): string | undefined
  /** Whether the tool is run by the gate's own server. `server` is the one that the harness says it is of. */
  isOwn(name: string, server?: ServerOfTool): boolean
  /** The name for the gate's server, from that for the harness. */
  toOwnName(name: string): string
  fromOwnName(name: string): string
}

export interface ServerOfTool {
  readonly name: string
  readonly source: string
}

/** @throws {ConfigError} where another server is brought in by the name of the gate's own */
export function createNames(tools: Iterable<Tool>, serverName: string): HarnessNames {
  const prefix = toServerPrefix(serverName)
  const wire = createWireNames(tools, (tool) => {
    const harnessName = harnessNameOf(tool)
    if (harnessName?.startsWith(prefix))
      throw new ConfigError('serverName', `"${serverName}" is a server of its own, of which "${tool.id}" is a tool`)
    return harnessName ?? `${prefix}${toWireName(tool)}`
  })
  return {
    toId: wire.toId,
    toName: wire.toName,
    // `mcp__gate___x` may be `_x` of the gate's server, and `x` of one named `gate_`.
    isOwn: (name, server) =>
      name.startsWith(prefix) &&
      (server === undefined ? wire.toId(name) !== undefined : server.source === 'sdk' && server.name === serverName),
    toOwnName: (name) => name.slice(prefix.length),
    fromOwnName: (name) => `${prefix}${name}`,
  }
}

/** Whether a tool is of the server that its name says. A name can be read as more than one server's. */
export function isOfItsServer(name: string, server: ServerOfTool | undefined): boolean {
  return server === undefined || partsOfName(name)?.server === toHarnessName(server.name)
}
