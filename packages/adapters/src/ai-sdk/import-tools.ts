import { type CallContext, ConfigError, type ToolAnnotations } from '@toolgate/core'
import type { NativeToolRecord, UnnamedToolDefinition } from '@toolgate/core/tools'
import type { FlexibleSchema, ToolExecutionOptions, ToolSet } from 'ai'
import { checkRecord } from '../shared/check-import.ts'
import { fieldsOf } from '../shared/fields.ts'
import { type Overlay, toNativeRecord } from '../shared/overlay.ts'
import { type ImportedSchema, importSchema } from './schemas.ts'

/** The fields of an SDK tool that are read here. The others stay unchanged. */
interface ImportedSdkTool {
  readonly type?: 'function' | 'dynamic' | 'provider' | undefined
  readonly title?: string | undefined
  readonly description?: string | ((options: { readonly context: unknown }) => string) | undefined
  readonly metadata?: { readonly annotations?: unknown } | undefined
  readonly inputSchema?: FlexibleSchema<unknown> | undefined
  readonly isProviderExecuted?: boolean | undefined
  readonly contextSchema?: FlexibleSchema<unknown> | undefined
  readonly needsApproval?: unknown
  readonly onInputAvailable?: unknown
  readonly toModelOutput?: unknown
  execute?(input: unknown, options: ToolExecutionOptions<unknown>): unknown
}

/** An imported tool: the SDK's tool, and its schema for the gate and for the SDK. */
export interface ImportedTool {
  readonly tool: ImportedSdkTool
  readonly schema: ImportedSchema | undefined
  /** Whether the host runs the tool's `execute`, so that a gate can stop it. */
  readonly isEnforceable: boolean
}

/**
 * Imports the tools of an AI SDK app: `createGate({ tools: fromAiSdk({ search, remove }, { remove: { tags: ['danger'] } }) })`.
 *
 * Their names become ids, and the gate validates inputs with the tools' own schemas. `execute` gets the SDK's options with
 * the call's own abort signal. Annotations of an MCP server (`metadata.annotations`) can only tighten.
 *
 * @throws {ConfigError} for an invalid schema, and for an overlay of an unknown tool
 */
export function fromAiSdk<Tools extends ToolSet>(
  tools: Tools,
  overlay: Overlay<keyof Tools & string> = {},
): NativeToolRecord<Tools> {
  checkRecord(tools, 'tools')
  const definitions = new Map<string, UnnamedToolDefinition>()
  for (const [name, tool] of Object.entries(tools)) {
    if (typeof tool !== 'object' || tool === null)
      throw new ConfigError(`tools.${name}`, 'a tool must be an object', { code: 'tool_invalid' })
    const isOverlaid = new Map(Object.entries(overlay)).get(name)?.annotations !== undefined
    definitions.set(name, toDefinition(name, tool, isOverlaid))
  }
  return toNativeRecord<Tools>(definitions, overlay)
}

/** Returns the imported tool behind a gate tool's `execute`. */
export function importedFrom(execute: unknown): ImportedTool | undefined {
  return typeof execute === 'function' ? imported.get(execute) : undefined
}

const imported = new WeakMap<object, ImportedTool>()

function toDefinition(name: string, tool: ImportedSdkTool, hasTrustedHints: boolean): UnnamedToolDefinition {
  const schema =
    tool.type === 'provider' && tool.inputSchema === undefined ? undefined : importSchema(name, tool.inputSchema)
  const isEnforceable = typeof tool.execute === 'function' && tool.isProviderExecuted !== true
  const execute = isEnforceable ? runnerOf(tool, schema?.parseLater) : () => undefined
  imported.set(execute, { tool, schema, isEnforceable })
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

function runnerOf(tool: ImportedSdkTool, parseLater: ((input: unknown) => Promise<unknown> | undefined) | undefined) {
  const run = (input: unknown, call: CallContext): unknown => tool.execute?.(input, new ImportedExecution(call))
  if (!parseLater) return run
  return (input: unknown, call: CallContext): unknown => {
    const parsed = parseLater(input)
    return parsed === undefined ? run(input, call) : parsed.then((value) => run(value, call))
  }
}

/** The options of the SDK's tool, with the call's signal. A getter makes the signal only if it is read. */
class ImportedExecution implements ToolExecutionOptions<unknown> {
  readonly toolCallId: string
  readonly messages: ToolExecutionOptions<unknown>['messages']
  readonly context: unknown
  readonly #call: CallContext

  constructor(call: CallContext) {
    this.toolCallId = call.callId
    this.messages = []
    this.#call = call
    const { abortSignal: _, ...given } = fieldsOf(call.context)
    Object.assign(this, given)
  }

  get abortSignal(): AbortSignal {
    return this.#call.signal
  }
}

/** Returns the description without a context, which the gate stores. The model gets the description for its context. */
function descriptionOf({ description }: ImportedSdkTool): string | undefined {
  if (typeof description !== 'function') return description
  try {
    return description({ context: undefined })
  } catch {
    return undefined
  }
}

function hintsOf({ metadata }: ImportedSdkTool): ToolAnnotations | undefined {
  const annotations = metadata?.annotations
  return typeof annotations === 'object' && annotations !== null ? annotations : undefined
}
