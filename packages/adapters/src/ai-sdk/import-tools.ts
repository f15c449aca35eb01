import {
  type CallContext,
  ConfigError,
  type JsonSchema,
  type StandardSchema,
  type ToolAnnotations,
} from '@toolgate/core'
import { isObject } from '@toolgate/values/json'
import { isThenable } from '@toolgate/values'
import type { NativeToolRecord, UnnamedToolDefinition } from '@toolgate/core/tools'
import { asSchema, type FlexibleSchema, type Schema, type ToolExecutionOptions, type ToolSet } from 'ai'
import { fieldsOf, hasFields } from '../shared/fields.ts'
import { type Overlay, toNativeRecord } from '../shared/overlay.ts'

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
  execute?(input: unknown, options: ToolExecutionOptions<unknown>): unknown
}

/** An imported tool: the SDK's tool, and its schema for the gate and for the SDK. */
export interface ImportedTool {
  readonly tool: ImportedSdkTool
  readonly inputSchema: Schema | undefined
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

/** The answer of an SDK schema to an input. */
type Validation = Awaited<ReturnType<NonNullable<Schema['validate']>>>

/** An input schema for the gate and for the SDK. */
interface ImportedSchema {
  /** The schema with which the gate validates. */
  readonly forGate: StandardSchema | JsonSchema
  /** The schema for the SDK. It is computed once; the SDK would compute it in each step. */
  readonly forSdk: Schema
  /** Finishes an asynchronous validation. The gate's own validation is synchronous. */
  readonly parseLater: ((input: unknown) => Promise<unknown> | undefined) | undefined
}

/**
 * Returns the schema of a tool (zod, another Standard Schema or the SDK's own) for the gate and for the SDK.
 *
 * @throws {ConfigError} `schema_invalid` if it has no JSON Schema, or only a promise of one
 */
function importSchema(name: string, schema: FlexibleSchema<unknown> | undefined): ImportedSchema {
  const { json, validate } = read(name, schema)
  if (!validate) return { forGate: json, forSdk: toSchema(json), parseLater: undefined }
  let isAsync = false
  const check = (value: unknown): unknown => {
    const answer = standardOf(schema)?.validate?.(value) ?? validate(value)
    if (!isThenable(answer)) return toAnswer(answer)
    // The gate cannot wait. The tool finishes an asynchronous validation before it runs.
    isAsync = true
    void Promise.resolve(answer).catch(() => {})
    return { value }
  }
  const forGate: StandardSchema = {
    '~standard': {
      version: 1,
      vendor: standardOf(schema)?.vendor ?? 'ai',
      validate: check,
      jsonSchema: { input: () => json, output: () => json },
    },
  }
  return {
    forGate,
    forSdk: toSchema(json, (value) => remember(value, validate(value))),
    parseLater: (input) => (isAsync ? parse(validate, input) : undefined),
  }
}

async function parse(validate: NonNullable<Schema['validate']>, input: unknown): Promise<unknown> {
  return valueOf(toAnswer(await validate(input)))
}

/**
 * Returns an input as the model wrote it. The SDK passes on the schema's output, which may not be a valid input again.
 */
export function asWritten(input: unknown): unknown {
  return hasFields(input) && written.has(input) ? written.get(input) : input
}

const written = new WeakMap<object, unknown>()

async function remember(value: unknown, answer: Validation | PromiseLike<Validation>): Promise<Validation> {
  const checked = await answer
  if (checked.success && hasFields(checked.value) && checked.value !== value) written.set(checked.value, value)
  return checked
}

function read(
  name: string,
  schema: FlexibleSchema<unknown> | undefined,
): { readonly json: JsonSchema; readonly validate: Schema['validate'] } {
  const problem = (text: string, cause?: unknown) =>
    new ConfigError(`tool "${name}"`, `inputSchema ${text}`, { code: 'schema_invalid', cause })
  let json: unknown
  let validate: Schema['validate']
  try {
    const own = asSchema(schema)
    validate = own.validate
    json = own.jsonSchema
  } catch (error) {
    throw problem(`has no JSON Schema: ${error instanceof Error ? error.message : String(error)}`, error)
  }
  if (isThenable(json))
    throw problem('returns a promise of its JSON Schema: await it, and make the schema of the result')
  if (!isObject(json)) throw problem('has no JSON Schema')
  return { json, validate }
}

/** Returns a schema like the SDK's own `jsonSchema(…)`, with a document that is already computed. */
export function toSchema(json: JsonSchema, validate?: Schema['validate']): Schema {
  // The type has this property under a symbol that the SDK does not export.
  return { [SCHEMA]: true, [VALIDATOR]: true, _type: undefined, jsonSchema: json, validate } as unknown as Schema
}

/** The SDK's marks of a schema. They are registered symbols, so copies of the SDK recognise each other's. */
const SCHEMA = Symbol.for('vercel.ai.schema')
const VALIDATOR = Symbol.for('vercel.ai.validator')

/** Converts an answer to Standard Schema 1. The gate refuses anything else. */
function toAnswer(answer: unknown): unknown {
  const { success, value, error } = fieldsOf(answer)
  if (success === undefined) return answer
  return success ? { value } : { issues: issuesOf(error) }
}

function issuesOf(error: unknown): readonly unknown[] {
  const { issues } = fieldsOf(error)
  if (Array.isArray(issues) && issues.length > 0) return issues
  return [{ message: error instanceof Error ? error.message : 'is not valid' }]
}

function valueOf(answer: unknown): unknown {
  const { value, issues } = fieldsOf(answer)
  if ('value' in fieldsOf(answer)) return value
  const { message } = fieldsOf(fieldsOf(issues)[0])
  throw new TypeError(`invalid input: ${typeof message === 'string' ? message : 'is not valid'}`)
}

function standardOf(schema: unknown): StandardSchema['~standard'] | undefined {
  return isStandard(schema) ? schema['~standard'] : undefined
}

function isStandard(schema: unknown): schema is StandardSchema {
  return fieldsOf(schema)['~standard'] !== undefined
}
