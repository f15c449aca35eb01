import { Runnable, type RunnableConfig } from '@langchain/core/runnables'
import {
  type ClientTool,
  DynamicStructuredTool,
  isRunnableToolLike,
  type ServerTool,
  StructuredTool,
  Tool as TextTool,
} from '@langchain/core/tools'
import { toJsonSchema } from '@langchain/core/utils/json_schema'
import { interopSafeParse, type InteropZodType, isInteropZodSchema } from '@langchain/core/utils/types'
import { isGraphBubbleUp } from '@langchain/langgraph'
import {
  type CallContext,
  ConfigError,
  type JsonSchema,
  type StandardSchema,
  type Tool,
  type ToolDefinition,
} from '@toolgate/core'
import { FOR_TOOL } from '@toolgate/core/internal'
import { isObject, mutableCopy } from '@toolgate/values/json'
import type { NativeToolRecord, UnnamedToolDefinition } from '@toolgate/core/tools'
import { checkList } from '../shared/check-import.ts'
import { fieldsOf, hasFields, isFunction, isName } from '../shared/fields.ts'
import { type Overlay, toNativeRecord, type ToolOverlay } from '../shared/overlay.ts'
import { asItCame, forParsingTool, type ParsedAnswer } from '../shared/parsing-tool.ts'

/**
 * A tool as `createAgent` takes it: a tool that LangChain runs, or the description of a tool that the provider runs.
 */
export type LangChainTool = ClientTool | ServerTool

/** LangChain's tools by name. */
export type NativeTools<Tools extends readonly LangChainTool[]> = { readonly [T in Tools[number] as NativeName<T>]: T }
type NativeName<T> = T extends { readonly name: infer Name extends string } ? Name : string

/**
 * Returns LangChain's tools for a gate. Their names become ids, and the gate validates once with their zod or JSON schemas.
 *
 * Annotations in `metadata.annotations`, which MCP servers send, can only tighten. Hints that loosen belong in the
 * overlay.
 *
 * @throws {ConfigError} for two tools of one name, an invalid tool, and an overlay of an unknown tool
 * @example
 * const gate = createGate({ tools: fromLangChain([search, remove], { remove: { tags: ['danger'] } }) })
 */
export function fromLangChain<const Tools extends readonly LangChainTool[]>(
  tools: Tools,
  overlay: Overlay<keyof NativeTools<Tools> & string> = {},
): NativeToolRecord<NativeTools<Tools>> {
  const definitions = new Map<string, UnnamedToolDefinition>()
  const overlays = new Map<string, ToolOverlay | undefined>(Object.entries(overlay))
  checkList(tools, 'LangChain tools')
  for (const tool of tools) {
    if (typeof tool === 'string') throw new ConfigError('tools', `"${String(tool)}" is a name: pass the tool itself`)
    const name = nameOfTool(tool)
    if (name === undefined) throw new ConfigError('tools', 'a tool of LangChain must have a name')
    if (definitions.has(name))
      throw new ConfigError(`tools.${name}`, 'two tools have this name', { code: 'tool_invalid' })
    definitions.set(name, definitionOf(tool, overlays.get(name)))
  }
  return toNativeRecord(definitions, overlay)
}

/** Returns the name by which a tool is sent. A provider's tool without a name is known by its type. */
export function nameOfTool(tool: LangChainTool): string | undefined {
  const { name, type, function: described } = fieldsOf(tool)
  return [name, fieldsOf(described)['name'], type].find(isName)
}

/** Whether LangChain runs the tool, rather than the provider. */
export function isRun(tool: LangChainTool): tool is ClientTool {
  return Runnable.isRunnable(tool)
}

const natives = new WeakMap<NonNullable<Tool['execute']>, ClientTool>()

/** Returns LangChain's own tool if the gate's tool was imported from it. */
export function nativeOf({ execute }: Pick<Tool, 'execute'>): ClientTool | undefined {
  return execute && natives.get(execute)
}

function definitionOf(tool: LangChainTool, overlay: ToolOverlay | undefined): UnnamedToolDefinition {
  const description = typeof tool.description === 'string' ? tool.description : undefined
  if (!isRun(tool)) return { description }
  const { inputSchema, unparsed } = inputOf(tool)
  const execute = createNativeExecute(tool, unparsed)
  natives.set(execute, tool)
  const annotations = overlay?.annotations === undefined ? annotationsOf(tool) : undefined
  return { description, inputSchema, execute, ...(annotations && { annotations, hintsTrusted: false }) }
}

function annotationsOf(tool: ClientTool): UnnamedToolDefinition['annotations'] {
  const { annotations } = fieldsOf(fieldsOf(tool)['metadata'])
  return isObject(annotations) ? annotations : undefined
}

/** The input schema of a LangChain tool. */
interface LangChainInput {
  readonly inputSchema: NonNullable<ToolDefinition['inputSchema']>
  /** The inputs that the tool must parse itself, as its schema is asynchronous. `undefined`: its schema parses nothing. */
  readonly unparsed: WeakSet<object> | undefined
}

const TEXT_INPUT: JsonSchema = {
  type: 'object',
  properties: { input: { type: 'string' } },
  additionalProperties: false,
}

/**
 * Returns the schema by which a gate validates: the tool's own zod schema if it has one, with the JSON Schema that
 * LangChain shows to models.
 */
function inputOf(tool: ClientTool): LangChainInput {
  // These tools turn the object into a text. The gate decides on the object.
  if (tool instanceof TextTool) return { inputSchema: TEXT_INPUT, unparsed: undefined }
  const { schema } = tool
  if (!isInteropZodSchema(schema)) return { inputSchema: fieldsOf(schema), unparsed: undefined }
  const unparsed = new WeakSet<object>()
  return { inputSchema: standardOf(schema, parsesItself(tool), unparsed), unparsed }
}

function standardOf(schema: InteropZodType, parses: boolean, unparsed: WeakSet<object>): StandardSchema {
  const jsonSchema = () => ({ ...toJsonSchema(schema) })
  return {
    '~standard': {
      version: 1,
      vendor: 'zod',
      validate(value) {
        const parsed = interopSafeParse(schema, value)
        if (!parsed.success) return isAsynchronous(parsed.error) ? later(value) : { issues: parsed.error.issues }
        return parses
          ? forParsingTool(value, parsed.data, (again) => interopSafeParse(schema, again).data)
          : { value: parsed.data }
      },
      jsonSchema: { input: jsonSchema, output: jsonSchema },
    },
  }

  /** The gate cannot wait. The tool finishes an asynchronous validation before it runs. */
  function later(came: unknown): ParsedAnswer {
    const answer = asItCame(came, came)
    const { input } = answer[FOR_TOOL] ?? {}
    if (hasFields(input)) unparsed.add(input)
    return answer
  }
}

/** Whether zod could not parse an input, as only an asynchronous parse can. */
function isAsynchronous(error: unknown): boolean {
  return error instanceof Error && error.message.includes('synchronous parse')
}

/** A tool that LangChain can run: made by `tool()`, or an instance of one of its classes. */
interface Invokable {
  readonly name: string
  invoke(input: unknown, config?: RunnableConfig): Promise<unknown>
}

/** The output of a tool that paused the graph or jumped to another node. LangGraph signals both by throwing. */
export class Bubbled {
  readonly error: unknown

  constructor(error: unknown) {
    this.error = error
  }
}

/** The configurations that LangChain itself passed with a call, and whether it wants a message or a value. */
const ownRuntimes = new WeakMap<object, 'message' | 'value'>()

export function asOwnRuntime<T extends object>(config: T, answer: 'message' | 'value'): T {
  ownRuntimes.set(config, answer)
  return config
}

/** Returns the function that runs a tool with the input that was decided. The input is validated once. */
function createNativeExecute(
  tool: Invokable,
  unparsed: LangChainInput['unparsed'],
): (input: unknown, call: CallContext) => Promise<unknown> {
  const decided: Invokable = unparsed && isPlain(tool) ? new DecidedTool(tool) : tool
  return async (input, call) => {
    const runtime = runtimeOf(call.context)
    const invokable = hasFields(input) && unparsed?.has(input) ? tool : decided
    // The decided input is frozen. The tool gets a copy, which it may change.
    const args = mutableCopy(input)
    const config = { ...runtime, signal: call.signal, runName: runtime?.runName ?? tool.name }
    const wantsMessage = runtime && ownRuntimes.get(runtime) === 'message' && !isRunnableToolLike(tool)
    const asked = wantsMessage ? { type: 'tool_call', id: call.callId, name: tool.name, args } : args
    try {
      return await invokable.invoke(asked, config)
    } catch (error) {
      if (isGraphBubbleUp(error)) return new Bubbled(error)
      throw error
    }
  }
}

function runtimeOf(context: unknown): RunnableConfig | undefined {
  return typeof context === 'object' && context !== null && ownRuntimes.has(context) ? context : undefined
}

/** Whether a tool parses its input before it runs, so that the gate cannot give it a parsed one. */
function parsesItself(tool: Invokable): boolean {
  return !isPlain(tool) && !isRunnableToolLike(tool)
}

/** Whether no code but LangChain's runs between `invoke` and the tool's body. */
function isPlain(tool: Invokable): tool is StructuredTool {
  if (!(tool instanceof StructuredTool) || tool.invoke !== StructuredTool.prototype.invoke) return false
  return tool.call === StructuredTool.prototype.call || tool.call === DynamicStructuredTool.prototype.call
}

/** A schema that accepts anything, because the input has been validated. */
const ANY_INPUT = {}

type ToolFunction = (input: unknown, manager: unknown, config: unknown) => Promise<unknown>

/** An imported tool without its schema. It is a LangChain class, so tracing, events and messages stay the same. */
class DecidedTool extends StructuredTool<typeof ANY_INPUT, unknown, unknown> {
  readonly #body: ToolFunction
  override name: string
  override description: string
  override schema: typeof ANY_INPUT = ANY_INPUT

  constructor(tool: StructuredTool) {
    const { callbacks, tags, metadata, verbose, responseFormat, defaultConfig, extras, verboseParsingErrors } = tool
    super({
      callbacks,
      tags,
      metadata,
      verbose,
      responseFormat,
      defaultConfig,
      extras,
      verboseParsingErrors,
    } as ConstructorParameters<typeof StructuredTool>[0])
    this.name = tool.name
    this.description = tool.description
    // Only the types protect this method. It is called on the tool itself, which has its own private fields.
    const body = fieldsOf(tool)['_call']
    this.#body = async (...args) => (isFunction(body) ? body.apply(tool, args) : undefined)
  }

  static override lc_name(): string {
    return 'DynamicStructuredTool'
  }

  protected override _call(input: unknown, manager?: unknown, config?: unknown): Promise<unknown> {
    return this.#body(input, manager, config)
  }
}
