import { isDeepStrictEqual } from 'node:util'
import type { CallContext } from '@toolgate/core'
import type { RunnableConfig } from '@langchain/core/runnables'
import { DynamicStructuredTool, isRunnableToolLike, StructuredTool } from '@langchain/core/tools'
import { isGraphBubbleUp } from '@langchain/langgraph'
import type { InputOf } from './schema.ts'

/** A tool that LangChain can run: made by `tool()`, or of one of its classes. */
export interface Invokable {
  readonly name: string
  invoke(input: unknown, config?: RunnableConfig): Promise<unknown>
}

/** What a tool did instead of answering: it paused the graph, or sent it elsewhere. LangGraph tells so by a throw. */
export class Bubbled {
  readonly error: unknown

  constructor(error: unknown) {
    this.error = error
  }
}

/** The configurations that LangChain itself gave with a call, and no other host's options: with how it wants the answer. */
const ownRuntimes = new WeakMap<object, 'message' | 'value'>()

export function asOwnRuntime<T extends object>(config: T, answer: 'message' | 'value'): T {
  ownRuntimes.set(config, answer)
  return config
}

/** Gives what runs a tool with an input that was decided: that very input, validated once. */
export function createNativeExecute(
  tool: Invokable,
  parse: InputOf['parse'],
): (input: unknown, call: CallContext) => Promise<unknown> {
  const takesDecided = parse === undefined || isRunnableToolLike(tool)
  const invokable = !takesDecided && isPlain(tool) ? new DecidedTool(tool) : tool
  const parsesAgain = !takesDecided && invokable === tool
  return async (input, call) => {
    if (parsesAgain && !isDeepStrictEqual(parse?.(input), input))
      throw new TypeError(
        `${tool.name} has an invoke of its own, and a schema that changes what it has changed already: it cannot be given the input that was decided`,
      )
    const runtime = runtimeOf(call.context)
    // Frozen for those who decide; a tool may write to what it is given.
    const args = structuredClone(input)
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

/** Answers whether LangChain's own code, and nobody else's, stands between `invoke` and the tool's body. */
function isPlain(tool: Invokable): tool is StructuredTool {
  if (!(tool instanceof StructuredTool) || tool.invoke !== StructuredTool.prototype.invoke) return false
  return tool.call === StructuredTool.prototype.call || tool.call === DynamicStructuredTool.prototype.call
}

/** Anything: the input has been validated. */
const ANY_INPUT = {}

type Body = (input: unknown, manager: unknown, config: unknown) => Promise<unknown>

/** The same tool, but for the schema. A class of LangChain's, so that tracing, events and messages are as ever. */
class DecidedTool extends StructuredTool<typeof ANY_INPUT, unknown, unknown> {
  readonly #body: Body
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
    // Only the compiler calls it protected, and it is asked of the tool itself: its private fields are its own.
    const { _call } = tool as unknown as { _call: Body }
    this.#body = _call.bind(tool)
  }

  static override lc_name(): string {
    return 'DynamicStructuredTool'
  }

  protected override _call(input: unknown, manager?: unknown, config?: unknown): Promise<unknown> {
    return this.#body(input, manager, config)
  }
}
