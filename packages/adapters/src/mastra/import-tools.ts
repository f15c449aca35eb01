import { isProviderTool, isVercelTool, type Tool, validateToolInput } from '@mastra/core/tools'
import {
  type CallContext,
  ConfigError,
  type JsonSchema,
  type StandardSchema,
  type ToolAnnotations,
} from '@toolgate/core'
import { mutableCopy } from '@toolgate/values/json'
import type { NativeToolRecord, UnnamedToolDefinition } from '@toolgate/core/tools'
import { checkRecord } from '../shared/check-import.ts'
import { fieldsOf } from '../shared/fields.ts'
import { type Overlay, toNativeRecord } from '../shared/overlay.ts'
import { forParsingTool } from '../shared/parsing-tool.ts'

/** The fields of a Mastra tool that are read here. The others stay unchanged. */
export interface MastraTool {
  readonly id: string
  readonly description: string
  readonly title?: string | undefined
  readonly inputSchema?: unknown
  readonly suspendSchema?: unknown
  readonly mcp?: { readonly annotations?: ToolAnnotations | undefined } | undefined
  readonly mcpMetadata?: unknown
  // oxlint-disable-next-line typescript/no-explicit-any -- `unknown` would reject a tool that reads its input
  readonly execute?: ((input: any, context: any) => Promise<any>) | undefined
  // oxlint-disable-next-line typescript/no-explicit-any -- as above
  readonly onInputAvailable?: ((event: any) => void | PromiseLike<void>) | undefined
}
export type MastraTools = Readonly<Record<string, MastraTool>>

/**
 * Imports tools made with `createTool`: `createGate({ tools: fromMastra({ search, remove }, { remove: { tags: ['danger'] } }) })`.
 *
 * The keys of the map become ids, and the gate validates inputs with the tools' own schemas. `execute` gets Mastra's context
 * with the call's own abort signal. Annotations of an MCP server can only tighten.
 *
 * @throws {ConfigError} for a tool that `createTool` did not make, a tool that the gate cannot run, and an overlay of an
 * unknown tool
 */
export function fromMastra<Tools extends MastraTools>(
  tools: Tools,
  overlay: Overlay<keyof Tools & string> = {},
): NativeToolRecord<Tools> {
  checkRecord(tools, 'tools made with createTool')
  const overlays = new Map(Object.entries(overlay))
  const definitions = new Map<string, UnnamedToolDefinition>()
  for (const [id, tool] of Object.entries(tools)) {
    checkTool(id, tool)
    definitions.set(id, toDefinition(tool, overlays.get(id)?.annotations !== undefined))
  }
  return toNativeRecord<Tools>(definitions, overlay)
}

/** Returns the Mastra tool that a gate tool was imported from, by the gate tool's `execute`. */
export function nativeOf(execute: unknown): MastraTool | undefined {
  return typeof execute === 'function' ? natives.get(execute) : undefined
}

const natives = new WeakMap<object, MastraTool>()

function checkTool(id: string, tool: unknown): asserts tool is MastraTool {
  const refuse = (why: string): never => {
    throw new ConfigError(`tools.${id}`, why, { code: 'tool_invalid' })
  }
  if (typeof tool !== 'object' || tool === null) refuse('must be a tool made with createTool')
  if (isProviderTool(tool)) refuse('runs at the provider, where no gate can stand')
  if (isVercelTool(tool as Parameters<typeof isVercelTool>[0]))
    refuse('is a tool of the AI SDK: import it with fromAiSdk of @toolgate/adapters/ai-sdk')
  if (typeof fieldsOf(tool)['execute'] !== 'function')
    refuse('has no execute, so a client would run it where no gate can stand')
}

function toDefinition(tool: MastraTool, hasTrustedHints: boolean): UnnamedToolDefinition {
  const { title, description, inputSchema, mcp, mcpMetadata } = tool
  const annotations = mcp?.annotations
  const execute = (input: unknown, call: CallContext) => tool.execute?.(input, contextOf(call))
  natives.set(execute, tool)
  return {
    title,
    description,
    inputSchema: inputSchema === undefined ? undefined : schemaForGate(inputSchema),
    annotations,
    hintsTrusted: mcpMetadata === undefined || annotations === undefined || hasTrustedHints,
    execute,
  }
}

/** Returns the context as a plain object, because Mastra copies its fields. */
function contextOf(call: CallContext): object {
  return { ...fieldsOf(call.context), abortSignal: call.signal }
}

/** A schema as Mastra's tools store it, for any schema library. */
export type MastraSchema = NonNullable<Tool['inputSchema']>

/** `createTool` turns every schema into a Standard Schema. */
export function isSchema(schema: unknown): schema is MastraSchema {
  return fieldsOf(schema)['~standard'] !== undefined
}

/**
 * Returns the schema with which the gate checks inputs. It is the tool's own, as tolerant as Mastra is with models: it
 * accepts `null` for an optional field, and an object written as a text. Mastra's tool parses its input again.
 *
 * @throws {ConfigError} for an unknown kind of schema
 */
function schemaForGate(schema: unknown): StandardSchema {
  if (!isSchema(schema)) throw new ConfigError('inputSchema', 'must be a schema as createTool keeps it')
  const { '~standard': standard } = schema
  const parse = (value: unknown): unknown => validateToolInput(schema, mutableCopy(value)).data
  const validate = (came: unknown): unknown => {
    const strict = standard.validate(mutableCopy(came))
    if (strict instanceof Promise) return strict
    if (strict.issues === undefined) return forParsingTool(came, strict.value, parse)
    const { data, error } = validateToolInput(schema, mutableCopy(came))
    return error ? strict : forParsingTool(came, data, parse)
  }
  return { '~standard': { ...standard, validate } }
}

/**
 * Returns a schema that looks the same to the model but accepts any input. The gate refuses and records invalid inputs.
 */
export function schemaForModel(schema: StandardSchema): MastraSchema {
  const validate = (value: unknown) => ({ value })
  return { '~standard': { ...schema['~standard'], validate } } as unknown as MastraSchema
}

/** Returns the same for a JSON Schema. */
export function jsonSchemaForModel(schema: JsonSchema): MastraSchema {
  const read = () => schema
  return schemaForModel({ '~standard': { version: 1, vendor: 'toolgate', jsonSchema: { input: read, output: read } } })
}

export const ANY_SCHEMA: MastraSchema = jsonSchemaForModel({})
