import type { ToolCall } from '@langchain/core/messages/tool'
import type { RunnableConfig } from '@langchain/core/runnables'
import { StructuredTool } from '@langchain/core/tools'
import { getConfig } from '@langchain/langgraph'
import type { Gate, Tool } from '@toolgate/core'
import { isObject } from '@toolgate/values/json'
import { type Shape, shapeOf } from '@toolgate/values'
import { fieldsOf } from '../shared/fields.ts'
import { checkGuard, GUARD_KEYS } from '../shared/guard-options.ts'
import { RefusedCall } from '../shared/refused.ts'
import { createOnCall } from '../shared/runs.ts'
import { answerOnce } from './answers.ts'
import { pauseForApproval, pausesFor } from './approvals.ts'
import { answerOf, callOnce, type MadeCall, refusalOf } from './calls.ts'
import type { GuardOptions } from './guard.ts'
import { nativeOf } from './import-tools.ts'
import { createNames } from './offer.ts'
import { type GuardRuntime, LangChainRuns } from './runs.ts'

/** The tools of a gate for your own graphs, which have no middleware. */
export interface GuardedTools {
  /** The tools, for `new ToolNode(tools)`. The gate decides each call for the run that makes it. */
  readonly tools: StructuredTool[]
  /** The tools that this run may see now, for `model.bindTools(…)`. Pass the configuration of the calling node. */
  visible(config?: RunnableConfig): Promise<StructuredTool[]>
}

/** The options of `guard`, except those about an agent's other tools. */
type GuardToolsOptions<Name extends string = string> = Omit<GuardOptions<Name>, 'onWarning' | 'ungoverned'>

const { onWarning: _onWarning, ungoverned: _ungoverned, ...KEYS } = GUARD_KEYS
const SHAPE: Shape = shapeOf<GuardToolsOptions>({ ...KEYS, approvals: true })

/**
 * Returns a gate's tools for a graph with its own `ToolNode`. The gate refuses calls of hidden tools.
 *
 * The node itself answers calls of unknown names, so those leave no record.
 *
 * @example
 * const guarded = guardTools(gate, { caller: (runtime) => runtime.context.caller })
 * graph.addNode('tools', new ToolNode(guarded.tools))
 * graph.addNode('model', async (state, config) => ({
 *   messages: [await model.bindTools(await guarded.visible(config)).invoke(state.messages)],
 * }))
 */
export function guardTools<Name extends string, Native>(
  gate: Gate<Name, Native>,
  options: GuardToolsOptions<NoInfer<Name>>,
): GuardedTools {
  checkGuard(gate, options, SHAPE)
  const { approvals } = options
  const names = createNames(gate)
  const onCall = createOnCall(options.onCall, (warning) => process.emitWarning(warning, 'ToolgateWarning'))
  const runs = new LangChainRuns({ gate, names, options, binds: () => false, onCall })
  const made = new WeakMap<Tool, StructuredTool>()

  const call: Perform = async (toolCall, config) => {
    const runtime = runtimeOf(config)
    const run = await runs.of(undefined, runtime)
    const asked = { name: toolCall.name, input: toolCall.args, callId: toolCall.id, signal: config.signal }
    const refused = pausesFor(approvals, runtime) ? await pauseForApproval(gate, run, asked) : undefined
    return refused ? run.report(asked, refused) : callOnce({ gate, run, call: asked }, toolCall, config)
  }
  const guarded = (tool: Tool): StructuredTool => {
    let known = made.get(tool)
    if (!known) made.set(tool, (known = new GuardedTool(names.toName(tool.id) ?? tool.id, tool, call)))
    return known
  }
  return {
    get tools() {
      return gate.catalog.snapshot().tools.map(guarded)
    },
    async visible(config = {}) {
      const { view } = await runs.of(undefined, runtimeOf(config))
      return view.narrow({}).tools.map(guarded)
    },
  }
}

type Perform = (toolCall: MadeCall, config: RunnableConfig) => ReturnType<typeof callOnce>

/**
 * Returns the runtime of a tool call. The node passes most of the configuration to its tools; the rest comes from the
 * graph's configuration.
 */
function runtimeOf(config: RunnableConfig): GuardRuntime {
  return { ...getConfig(), ...config } as GuardRuntime
}

/** A subclass of LangChain's tool, so that nodes and models accept it. */
class GuardedTool extends StructuredTool {
  override name: string
  override description: string
  override schema: StructuredTool['schema']
  readonly #call: Perform

  constructor(name: string, tool: Tool, call: Perform) {
    const native = nativeOf(tool)
    const { metadata, extras, schema } = fieldsOf(native)
    super({
      ...(isObject(metadata) && { metadata: { ...metadata } }),
      ...(isObject(extras) && { extras: { ...extras } }),
    })
    this.name = name
    this.description = tool.description
    this.schema = (schema ?? tool.inputSchema) as StructuredTool['schema']
    this.#call = call
  }

  static override lc_name(): string {
    return 'GuardedTool'
  }

  /** Returns a message for a node, and the tool's output for a direct call. */
  override async invoke(input: unknown, config: RunnableConfig = {}): Promise<never> {
    return this.#invoke(input, config) as Promise<never>
  }

  async #invoke(input: unknown, config: RunnableConfig): Promise<unknown> {
    if (!isToolCall(input)) {
      const outcome = await this.#call({ name: this.name, args: input }, config)
      if (outcome.status === 'done') return outcome.output
      throw new RefusedCall(outcome)
    }
    return answerOnce(runtimeOf(config), input, async () => {
      const outcome = await this.#call(input, config)
      // A node has its own texts for errors. It gets pauses and aborts; other errors become a message here.
      if (outcome.status === 'failed' && !config.signal?.aborted) return refusalOf(outcome, input)
      return answerOf(outcome, input, config.signal)
    })
  }

  protected override _call(): never {
    throw new TypeError('this tool is run by its gate only')
  }
}

function isToolCall(input: unknown): input is ToolCall {
  return fieldsOf(input)['type'] === 'tool_call'
}
