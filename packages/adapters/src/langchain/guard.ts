import { getConfig, getCurrentTaskInput } from '@langchain/langgraph'
import type { Gate } from '@toolgate/core'
import type { ExposedNames } from '@toolgate/expose'
import { type Shape, shapeOf } from '@toolgate/values'
import {
  type AgentMiddleware,
  AIMessage,
  createMiddleware,
  HumanMessage,
  type ModelRequest,
  type ToolCallRequest,
} from 'langchain'
import { z } from 'zod'
import { fieldsOf } from '../shared/fields.ts'
import {
  checkGuard,
  createUngoverned,
  GUARD_KEYS,
  type GuardOptions as SharedOptions,
} from '../shared/guard-options.ts'
import { createOnCall, createWarn, type GuardedCall } from '../shared/runs.ts'
import { answerOnce } from './answers.ts'
import { type ApprovalMode, canPause, pauseForApproval, pausesFor, withdrawApprovals } from './approvals.ts'
import { answerOf, sealedTool, tellFailures } from './calls.ts'
import { type LangChainTool, nameOfTool } from './import-tools.ts'
import { answerOpenCalls } from './open-calls.ts'
import { createNames, Offers, watchModel } from './offer.ts'
import { type AgentRun, type GivenStep, type GuardRuntime, LangChainRuns, type SavedRun } from './runs.ts'

export interface GuardOptions<Name extends string = string> extends SharedOptions<Name, GuardRuntime> {
  /**
   * The handling of a call that a person must approve. Default: `interrupt` if the agent has a checkpointer, as for
   * LangChain's own approvals, else `tell`, because it cannot pause.
   */
  readonly approvals?: ApprovalMode | undefined
  /**
   * Names, or globs such as `write_*`, of tools that run without the gate. Without this option, the tools of other
   * middlewares are neither sent nor run.
   */
  readonly ungoverned?: readonly string[] | undefined
  /** Called with notes for the developer. Default: a process warning. */
  readonly onWarning?: ((warning: string) => void) | undefined
}

const SHAPE: Shape = shapeOf<GuardOptions>({ ...GUARD_KEYS, approvals: true })

/**
 * The key of the run in the graph's state. The underscore keeps it out of an invocation's input and output. Streams and
 * snapshots, which LangGraph's server returns, include it, so it contains no tool names.
 */
const SAVED = '_toolgate'
const STATE = z.object({
  [SAVED]: z.object({ run: z.string(), ceiling: z.array(z.string()) }).optional(),
})

/**
 * Returns the middleware that puts a gate around an agent. Models get the tools that a run may see, and nothing else. Every
 * call is decided, run and recorded by the gate. One agent may serve any number of callers at once.
 *
 * Put it first: middlewares before it see all of the agent's tools.
 *
 * @example
 * createAgent({ model, tools, middleware: [guard(gate, { caller: (runtime) => runtime.context.caller })] })
 */
export function guard<Name extends string, Native>(
  gate: Gate<Name, Native>,
  options: GuardOptions<NoInfer<Name>>,
): AgentMiddleware {
  checkGuard(gate, options, SHAPE)
  const { approvals } = options
  const names = createNames(gate)
  const onWarning = createWarn(options.onWarning ?? ((warning) => process.emitWarning(warning, 'ToolgateWarning')))
  const isUngoverned = createUngoverned(options.ungoverned)
  const offers = new Offers(gate, { names, isUngoverned, onWarning })
  const runs = new LangChainRuns({
    gate,
    names,
    options,
    binds: (runtime) => approvals !== 'tell' && canPause(runtime),
    onCall: createOnCall(options.onCall, onWarning),
  })

  return createMiddleware({
    name: 'Toolgate',
    stateSchema: STATE,
    tools: offers.registered,
    async beforeAgent({ messages, [SAVED]: earlier }, runtime) {
      const given = withContext(runtime)
      const saved = toState(await runs.begin(given))
      const closed = await answerOpenCalls(messages, getConfig())
      if (closed.length > 0 && earlier)
        await withdrawApprovals(gate, (await runs.of(saved, given)).view.caller, earlier.run)
      return { [SAVED]: saved, ...(closed.length > 0 && { messages: closed }) }
    },
    async wrapModelCall(request, handler) {
      const run = await runs.of(savedOf(request.state), request.runtime)
      const now = run.view.narrow({ facts: await run.facts() })
      const offered = offers.offer(request.tools, now)
      let bound = offered
      const onBound = (tools: readonly LangChainTool[]) => (bound = offers.admit(tools, offered))
      const { toolChoice: _, ...rest } = request
      const answer = await handler({
        ...rest,
        ...choiceOf(request, offered),
        model: watchModel(request.model, onBound),
        tools: [...offered],
      })
      const messages = answersOf(answer)
      const step = {
        view: narrowTo(now, bound, names),
        number: stepNumber(request.messages),
        model: nameOfModel(request.model),
      }
      run.stepped(
        step,
        messages.flatMap((message) => message.tool_calls ?? []).map(({ id }) => id),
      )
      await recordMalformed(run, step, messages)
      return answer
    },
    async wrapToolCall(request, handler) {
      if (offers.isUngoverned(request.toolCall.name)) return handler(request)
      if (approvals === undefined && isBefore1235(request.runtime)) onWarning(BEFORE_1_2_35)
      const run = await runs.of(savedOf(request.state), request.runtime)
      const call = callOf(run, request)
      const { toolCall, runtime } = request
      return answerOnce(runtime, toolCall, async () => {
        const seen = call.view ?? run.view
        // Other middlewares do not see a call of a hidden tool. The gate refuses and records it.
        if (!seen.has(names.toId(call.name) ?? call.name)) {
          return answerOf(await run.call(call), toolCall, runtime.signal)
        }
        const refused = pausesFor(approvals, runtime) ? await pauseForApproval(gate, run, call) : undefined
        if (refused) return answerOf(run.report(call, refused), toolCall, runtime.signal)
        const sealed = sealedTool(request.tool, { gate, run, call })
        const answer = await tellFailures(toolCall, handler({ ...request, tool: sealed.tool }))
        if (!sealed.wasAsked())
          onWarning(`a call of "${call.name}" was answered by another middleware, and did not reach the gate`)
        return answer
      })
    },
  }) as AgentMiddleware
}

/**
 * Whether LangChain is older than 1.2.35. Those versions do not pass the checkpointer to a call, so the guard cannot
 * pause for an approval.
 */
function isBefore1235(runtime: GuardRuntime): boolean {
  return !('configurable' in runtime)
}

const BEFORE_1_2_35 =
  'this LangChain is older than 1.2.35: it does not say whether a run can pause, so a call that a person must approve does not interrupt. Update langchain, or give approvals: "interrupt" or "tell"'

/**
 * Returns the runtime with the agent's context from the configuration. The context of a node hook is limited to the
 * hook's own schema.
 */
function withContext(runtime: GuardRuntime): GuardRuntime {
  return { ...runtime, context: getConfig().context }
}

/**
 * Returns the saved run. The task's own state comes first: LangChain 1.2 gives overlapping runs of one agent the state
 * of the run that began last.
 */
function savedOf(given: { readonly [SAVED]?: SavedRun | undefined }): SavedRun | undefined {
  return taskInput()?.[SAVED] ?? given[SAVED]
}

function taskInput(): { readonly [SAVED]?: SavedRun | undefined } | undefined {
  try {
    return getCurrentTaskInput()
  } catch {
    // Called outside of a graph.
    return undefined
  }
}

function toState({ run, ceiling }: SavedRun): { run: string; ceiling: string[] } {
  return { run, ceiling: [...ceiling] }
}

/** Removes a `toolChoice` that names a tool that is not sent. It would disclose the name, and providers reject it. */
function choiceOf(
  { toolChoice }: Pick<ModelRequest, 'toolChoice'>,
  offered: readonly LangChainTool[],
): Pick<ModelRequest, 'toolChoice'> {
  if (toolChoice === undefined || offered.length === 0) return {}
  if (typeof toolChoice === 'string') return { toolChoice }
  return offered.some((tool) => nameOfTool(tool) === toolChoice.function.name) ? { toolChoice } : {}
}

function narrowTo(view: GivenStep['view'], bound: readonly LangChainTool[], names: ExposedNames): GivenStep['view'] {
  const ids = new Set(bound.map((tool) => names.toId(nameOfTool(tool) ?? '')))
  const activeTools = view.ids.filter((id) => ids.has(id))
  return activeTools.length === view.size ? view : view.narrow({ activeTools })
}

/** Returns the model's messages, which middlewares and structured answers wrap in different ways. */
function answersOf(answer: unknown): readonly AIMessage[] {
  if (AIMessage.isInstance(answer)) return [answer]
  const { messages } = fieldsOf(answer)
  return Array.isArray(messages) ? messages.filter((message) => AIMessage.isInstance(message)) : []
}

/** Returns the step's number, counted from the user's last message. A resumed run continues the count. */
function stepNumber(messages: ModelRequest['messages']): number {
  const last = messages.findLastIndex((message) => HumanMessage.isInstance(message))
  return messages.slice(last + 1).filter((message) => AIMessage.isInstance(message)).length
}

function nameOfModel(model: object): string | undefined {
  const { model: name } = fieldsOf(model)
  return typeof name === 'string' ? name : undefined
}

function callOf(
  run: AgentRun,
  { toolCall, state, runtime }: Pick<ToolCallRequest, 'toolCall' | 'state' | 'runtime'>,
): GuardedCall {
  const step = run.stepOf(toolCall.id)
  return {
    name: toolCall.name,
    input: toolCall.args,
    callId: toolCall.id,
    signal: runtime.signal,
    view: step?.view,
    step: step?.number ?? Math.max(0, stepNumber(state.messages) - 1),
    model: step?.model,
  }
}

/** Records calls whose arguments are not JSON. LangChain's tools never see them. */
async function recordMalformed(
  run: AgentRun,
  { view, number, model }: GivenStep,
  messages: readonly AIMessage[],
): Promise<void> {
  for (const { name = '', id, error } of messages.flatMap((message) => message.invalid_tool_calls ?? []))
    await run.call({
      name,
      input: undefined,
      callId: id,
      malformed: `the arguments are not JSON${error === undefined ? '' : `: ${error}`}`,
      view,
      step: number,
      model,
    })
}
