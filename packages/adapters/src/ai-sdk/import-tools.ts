import { type CallContext, ConfigError, type ToolAnnotations } from '@toolgate/core'
import type { NativeToolRecord, UnnamedToolDefinition } from '@toolgate/core/internal'
import type { FlexibleSchema, Schema, ToolExecutionOptions, ToolSet } from 'ai'
import { type Overlay, toNativeRecord } from '../shared/overlay.ts'
import { importSchema } from './schema.ts'

/** A tool of the SDK, as far as it is looked at here. The rest of it is the SDK's, and stays as it is. */
export interface SdkTool {
  readonly type?: 'function' | 'dynamic' | 'provider' | undefined
  readonly title?: string | undefined
  readonly description?: string | ((options: { readonly context: unknown }) => string) | undefined
  readonly metadata?: { readonly annotations?: unknown } | undefined
  readonly inputSchema?: FlexibleSchema<unknown> | undefined
  readonly isProviderExecuted?: boolean | undefined
  readonly contextSchema?: FlexibleSchema<unknown> | undefined
  readonly needsApproval?: unknown
  execute?(input: unknown, options: ToolExecutionOptions<unknown>): unknown
}

/** What was brought in: the tool as the SDK knows it, and its schema as both sides take it. */
export interface ImportedTool {
  readonly tool: SdkTool
  readonly inputSchema: Schema | undefined
  /** Whether its `execute` is the host's, so that a gate can stand in it. */
  readonly isEnforceable: boolean
}

/**
 * Brings the tools of an AI SDK app in: `createGate({ tools: fromAiSdk({ search, remove }, { remove: { tags: ['danger'] } }) })`.
 *
 * Their names become ids, and the gate validates their inputs by their own schemas. `execute` gets what the SDK gives it,
 * with the call's own abort signal. What an MCP server says of itself (`metadata.annotations`) can only tighten.
 *
 * @throws {ConfigError} for a tool whose schema cannot be used, and for an overlay of a tool that is not there
 */
export function fromAiSdk<Tools extends ToolSet>(
  tools: Tools,
  overlay: Overlay<keyof Tools & string> = {},
): NativeToolRecord<Tools> {
  const definitions = new Map<string, UnnamedToolDefinition>()
  for (const [name, tool] of Object.entries(tools)) {
    if (typeof tool !== 'object' || tool === null)
      throw new ConfigError(`tools.${name}`, 'a tool must be an object', { code: 'tool_invalid' })
    const isOverlaid = new Map(Object.entries(overlay)).get(name)?.annotations !== undefined
    definitions.set(name, toDefinition(name, tool, isOverlaid))
  }
  return toNativeRecord<Tools>(definitions, overlay)
}

/** Gives what a tool of a gate was brought in from, by its `execute`. */
export function importedFrom(execute: unknown): ImportedTool | undefined {
  return typeof execute === 'function' ? imported.get(execute) : undefined
}

const imported = new WeakMap<object, ImportedTool>()

function toDefinition(name: string, tool: SdkTool, hasTrustedHints: boolean): UnnamedToolDefinition {
  const schema =
    tool.type === 'provider' && tool.inputSchema === undefined ? undefined : importSchema(name, tool.inputSchema)
  const isEnforceable = typeof tool.execute === 'function' && tool.isProviderExecuted !== true
  const execute = isEnforceable ? runnerOf(tool, schema?.parseLater) : () => undefined
  imported.set(execute, { tool, inputSchema: schema?.forSdk, isEnforceable })
  const annotations = hintsOf(tool)
  return {
    title: tool.title,
    description: descriptionOf(tool),
    inputSchema: schema?.forGate,
    annotations,
    hintsTrusted: annotations === undefined || hasTrustedHints,
    execute,
  }
}

function runnerOf(tool: SdkTool, parseLater: ((input: unknown) => Promise<unknown> | undefined) | undefined) {
  const run = (input: unknown, call: CallContext): unknown => tool.execute?.(input, executionOf(call))
  if (!parseLater) return run
  return (input: unknown, call: CallContext): unknown => {
    const parsed = parseLater(input)
    return parsed === undefined ? run(input, call) : parsed.then((value) => run(value, call))
  }
}

/** What the SDK's tool gets: what the SDK gave, and the abort signal of the call. */
function executionOf(call: CallContext): ToolExecutionOptions<unknown> {
  return new Execution(call) as unknown as ToolExecutionOptions<unknown>
}

/** A class, so that a signal is made only for a tool that looks at it. */
class Execution {
  readonly toolCallId: string
  readonly messages: readonly unknown[]
  readonly #call: CallContext

  constructor(call: CallContext) {
    this.toolCallId = call.callId
    this.messages = []
    this.#call = call
    const { abortSignal: _, ...given } = (call.context ?? {}) as ToolExecutionOptions<unknown>
    Object.assign(this, given)
  }

  get abortSignal(): AbortSignal {
    return this.#call.signal
  }
}

/** A description that depends on the tool's context is the model's; the gate keeps what it is without one. */
function descriptionOf({ description }: SdkTool): string | undefined {
  if (typeof description !== 'function') return description
  try {
    return description({ context: undefined })
  } catch {
    return undefined
  }
}

function hintsOf({ metadata }: SdkTool): ToolAnnotations | undefined {
  const annotations = metadata?.annotations
  return typeof annotations === 'object' && annotations !== null ? annotations : undefined
}
