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
import { createWireNames, toWireName } from '@toolgate/expose'
import type { UnnamedToolDefinition } from '@toolgate/core/tools'
import { checkList } from '../shared/check-import.ts'
import { fieldsOf, isName } from '../shared/fields.ts'
import { type Overlay, toNativeRecord } from '../shared/overlay.ts'
import { HarnessExecution, partsOfName, type SdkTool, toHarnessName, toServerPrefix } from './harness.ts'
import { checkToolName } from './tool-names.ts'

/** The gate's id for a tool of the SDK. */
export type ClaudeAgentToolId<T> = T extends string
  ? T extends `mcp__${infer Server}__${infer Name}`
    ? `${Server}:${Name}`
    : T
  : T extends { readonly name: infer Name extends string }
    ? Name
    : never

/**
 * Imports tools of the Claude Agent SDK into a gate.
 *
 * A name stands for a tool that the harness runs itself: a built-in such as `Bash`, whose id is its name, or
 * `mcp__github__create_issue` of another MCP server, whose id is `github:create_issue`. The gate runs the tools that the
 * SDK's `tool()` made. Every other tool is unknown to the gate, and refused.
 *
 * @throws {ConfigError} for a tool that is named twice or invalid, for a permission rule such as `Bash(git:*)`, and for
 * an overlay of an unknown tool
 * @example
 * const gate = createGate({ tools: fromClaudeAgent(['Read', 'Bash', lookUp], { Bash: { tags: ['danger'] } }) })
 */
export function fromClaudeAgent<const T extends readonly (string | SdkTool)[]>(
  tools: T,
  overlay: Overlay<ClaudeAgentToolId<T[number]>> = {},
): ToolRecord<ClaudeAgentToolId<T[number]>> {
  const definitions = new Map<string, UnnamedToolDefinition>()
  checkList(
    tools,
    'names of tools and results of tool(): the gate must know each tool by its name, so no preset is one',
  )
  for (const tool of tools) {
    checkTool(tool)
    const id = typeof tool === 'string' ? toId(tool) : tool.name
    if (definitions.has(id)) throw new ConfigError(`tool "${id}"`, 'is imported twice')
    definitions.set(id, typeof tool === 'string' ? toHarnessTool(tool) : toOwnTool(tool))
  }
  return toNativeRecord<Record<ClaudeAgentToolId<T[number]>, unknown>>(definitions, overlay)
}

/** Returns the name by which the harness runs a tool; `undefined` for a tool that the gate runs. */
export function harnessNameOf(tool: Tool): string | undefined {
  return tool.execute && harnessNames.get(tool.execute)
}

const harnessNames = new WeakMap<object, string>()

function checkTool(tool: string | SdkTool): void {
  if (typeof tool === 'string') return checkToolName(tool)
  const { name, handler } = fieldsOf(tool)
  if (!isName(name) || typeof handler !== 'function')
    throw new ConfigError('tools', 'each must be the name of a tool, or what tool() returned', { code: 'tool_invalid' })
}

function toId(name: string): string {
  const parts = partsOfName(name)
  return parts ? `${parts.server}:${parts.tool}` : name
}

function toHarnessTool(name: string): UnnamedToolDefinition {
  const execute = (input: unknown, call: CallContext): Promise<unknown> => {
    if (call.context instanceof HarnessExecution) return call.context.begin(input, call)
    throw new Error('Claude Code runs it, so only its query can call it')
  }
  harnessNames.set(execute, name)
  const annotations = READ_ONLY.get(name)
  return { execute, ...(annotations ? { annotations } : {}) }
}

const LOOKS_AROUND: ToolAnnotations = { readOnlyHint: true, openWorldHint: false }
const LOOKS_OUT: ToolAnnotations = { readOnlyHint: true, openWorldHint: true }

/** The built-ins that change nothing. The others have MCP's defaults: they may be destructive. */
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

/** Returns one schema for all fields, as the SDK builds it. */
function toSchema(name: string, shape: object): StandardSchema {
  if (!Object.values(shape).every(isSchema))
    throw new ConfigError(`tool "${name}".inputSchema`, 'must be zod schemas by field name')
  const schema = objectFromShape(shape as ZodRawShapeCompat)
  const input = (): Record<string, unknown> => toJsonSchemaCompat(schema, { pipeStrategy: 'input' })
  return { '~standard': { ...(schema as StandardSchema)['~standard'], jsonSchema: { input, output: input } } }
}

function isSchema(value: unknown): boolean {
  return typeof value === 'object' && value !== null && '~standard' in value
}

/** The harness's names for the tools of a gate: its own, and those of the gate's server. */
export interface HarnessNames {
  /** Returns a tool's id. Hidden tools are included, so that their calls are recorded by id. */
  toId(name: string): string | undefined
  toName(id: string): string | undefined
  /** Whether the gate's own server runs the tool. `server` is the server in the harness's name. */
  isOwn(name: string, server?: ServerOfTool): boolean
  /** Returns the name on the gate's server for a name of the harness. */
  toOwnName(name: string): string
  fromOwnName(name: string): string
}

export interface ServerOfTool {
  readonly name: string
  readonly source: string
}

/** @throws {ConfigError} if another server with imported tools has the name of the gate's own */
export function createNames(tools: Iterable<Tool>, serverName: string): HarnessNames {
  const prefix = toServerPrefix(serverName)
  const wire = createWireNames(tools, (tool) => {
    const harnessName = harnessNameOf(tool)
    if (harnessName?.startsWith(prefix))
      throw new ConfigError(
        'serverName',
        `"${serverName}" is the name of another server, which has the tool "${tool.id}"`,
      )
    return harnessName ?? `${prefix}${toWireName(tool)}`
  })
  return {
    toId: wire.toId,
    toName: wire.toName,
    // `mcp__gate___x` may be tool `_x` of server `gate`, or tool `x` of server `gate_`.
    isOwn: (name, server) =>
      name.startsWith(prefix) &&
      (server === undefined ? wire.toId(name) !== undefined : server.source === 'sdk' && server.name === serverName),
    toOwnName: (name) => name.slice(prefix.length),
    fromOwnName: (name) => `${prefix}${name}`,
  }
}

/** Whether a tool belongs to the server in its name. One name may match several servers. */
export function isOfItsServer(name: string, server: ServerOfTool | undefined): boolean {
  return server === undefined || partsOfName(name)?.server === toHarnessName(server.name)
}
