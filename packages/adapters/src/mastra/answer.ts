import type { AgentExecutionOptions } from '@mastra/core/agent'
import type { RequestContext } from '@mastra/core/request-context'
import { type Caller, ConfigError } from '@toolgate/core'
import type { MaybePromise } from '@toolgate/core/internal'
import { fieldsOf, isFunction } from '../shared/fields.ts'
import { checkDecision, checkGiven } from '../shared/guard-options.ts'
import { type Guarding, guardingOf } from './guard.ts'
import { PROCESSOR_ID } from './options.ts'

/** A run that waits: from the result of `generate`, or the chunk `tool-call-approval` of a stream. */
export interface PausedRun {
  readonly runId: string
  /** The call of the run itself. If a sub-agent waits, this is the call that started it. */
  readonly toolCallId: string
  /** The tool that waits, also in a sub-agent. */
  readonly toolName: string
  readonly args: unknown
}

type ExecutionOptions = AgentExecutionOptions<undefined>

/** The options with which Mastra resumes a run. */
interface ResumeRequest extends ExecutionOptions {
  runId: string
  toolCallId?: string
}

/** An agent that was made with `guard`. */
interface GuardedAgent {
  readonly name: string
  resolveProcessorById(id: string, requestContext?: RequestContext): Promise<object | null>
  /** Returns its sub-agents. */
  listAgents?(options: { requestContext: RequestContext }): MaybePromise<Readonly<Record<string, object>>>
}

interface GeneratingAgent<Output> extends GuardedAgent {
  approveToolCallGenerate(resume: ResumeRequest): Promise<Output>
  declineToolCallGenerate(resume: ResumeRequest & { reason?: string }): Promise<Output>
}

interface StreamingAgent<Output> extends GuardedAgent {
  approveToolCall(resume: ResumeRequest): Promise<Output>
  declineToolCall(resume: ResumeRequest & { reason?: string }): Promise<Output>
}

/** A person's answer, and options for Mastra's resume. */
export interface ToolCallAnswer extends Omit<ExecutionOptions, 'requestContext' | 'runId'> {
  /** The person who decides, as an authenticated caller. */
  readonly by: Caller
  readonly decision: 'approve' | 'reject'
  readonly reason?: string | undefined
  /** The context of the run's own caller. */
  readonly requestContext: RequestContext
}

/**
 * Applies a person's answer to the gate's approval, which alone decides, and to the paused run, which continues.
 *
 * If a sub-agent waits, its call is answered. A tool that is hidden by now, from the caller or by `activeTools`, is
 * declined, and the model is told.
 *
 * @throws {ToolgateError} `approval_forbidden` if this person may not decide; the run then still waits
 * @throws {ConfigError} for a call that no gate decides
 * @example
 * const paused = await agent.generate(prompt, { requestContext })
 * const result = await answerToolCall(agent, pausedRun(paused), { by: person, decision: 'approve', requestContext })
 */
export async function answerToolCall<Output>(
  agent: GeneratingAgent<Output>,
  paused: PausedRun,
  answer: ToolCallAnswer,
): Promise<Output> {
  const { resume, declined } = await decide(agent, paused, answer)
  return declined === undefined
    ? agent.approveToolCallGenerate(resume)
    : agent.declineToolCallGenerate({ ...resume, reason: declined })
}

/** Does the same for a run that streams. */
export async function answerToolCallStream<Output>(
  agent: StreamingAgent<Output>,
  paused: PausedRun,
  answer: ToolCallAnswer,
): Promise<Output> {
  const { resume, declined } = await decide(agent, paused, answer)
  return declined === undefined ? agent.approveToolCall(resume) : agent.declineToolCall({ ...resume, reason: declined })
}

/**
 * Returns the call that a run waits for: the innermost, if a sub-agent waits.
 *
 * @throws {ConfigError} if it does not wait for an approval
 */
export function pausedRun(output: {
  readonly runId?: string | undefined
  readonly suspendPayload?: unknown
}): PausedRun {
  const { runId, suspendPayload } = output
  const outer = suspendedCallOf(suspendPayload)
  if (runId === undefined || !outer) throw new ConfigError('output', 'is not of a run that waits for an approval')
  let waiting = outer
  for (let inner = suspendedCallOf(waiting.suspendPayload); inner; inner = suspendedCallOf(inner.suspendPayload))
    waiting = inner
  return { runId, toolCallId: outer.toolCallId, toolName: waiting.toolName, args: waiting.args }
}

/** A call in the payload of a suspended run. The payload of a sub-agent's run is within that of its calling run. */
function suspendedCallOf(
  payload: unknown,
): (Omit<PausedRun, 'runId'> & { readonly suspendPayload: unknown }) | undefined {
  const { toolCallId, toolName, args, suspendPayload } = fieldsOf(payload)
  if (typeof toolCallId !== 'string' || typeof toolName !== 'string') return undefined
  return { toolCallId, toolName, args, suspendPayload }
}

const DECLINED = 'The person who was asked said no.'

async function decide(
  agent: GuardedAgent,
  { runId, toolCallId, toolName, args }: PausedRun,
  { by, decision, reason, ...options }: ToolCallAnswer,
): Promise<{ resume: ResumeRequest; declined: string | undefined }> {
  checkGiven(by)
  checkDecision({ decision })
  const { requestContext, activeTools } = options
  const guarding = await findGuarding(agent, toolName, requestContext)
  const call = { name: toolName, input: args, callId: toolCallId }
  const refused = await settle(guarding, { call, requestContext, activeTools, by, decision, reason })
  return {
    resume: { ...options, runId, toolCallId },
    declined: decision === 'reject' ? (reason ?? DECLINED) : refused,
  }
}

/**
 * Returns the guard of the tool that waits: the agent's own, or a sub-agent's.
 *
 * @throws {ConfigError} if no guard asks about the tool, so that the answer would decide nothing
 */
async function findGuarding(agent: GuardedAgent, name: string, requestContext: RequestContext): Promise<Guarding> {
  const all = await guardingsOf(agent, requestContext)
  const [first] = all
  if (!first) throw new ConfigError('agent', `has no guard: "${agent.name}" was made without ...guard(gate, …)`)
  const knowing = all.filter(({ calls }) => calls.names().toId(name) !== undefined)
  if (knowing.length > 1) for (const one of knowing) if (await waitsFor(one, name, requestContext)) return one
  const found = knowing[0]
  if (!found && all.some(({ isUngoverned }) => isUngoverned(name)))
    throw new ConfigError(
      'paused',
      `"${name}" runs without a gate, so the answer decides nothing: pass what pausedRun returns, or resume the run with Mastra's own functions`,
    )
  return found ?? first
}

/** Returns the guards of an agent and its sub-agents, one for each gate and guard. */
async function guardingsOf(agent: GuardedAgent, requestContext: RequestContext): Promise<readonly Guarding[]> {
  const agents = new Set<GuardedAgent>([agent])
  const found = new Set<Guarding>()
  // A set also iterates over what is added on the way.
  for (const one of agents) {
    const guarding = guardingOf(await one.resolveProcessorById(PROCESSOR_ID, requestContext))
    if (guarding) found.add(guarding)
    for (const below of Object.values((await one.listAgents?.({ requestContext })) ?? {}))
      if (isAgent(below)) agents.add(below)
  }
  return [...found]
}

function isAgent(value: object): value is GuardedAgent {
  return isFunction(fieldsOf(value)['resolveProcessorById'])
}

async function waitsFor({ gate, requests, calls }: Guarding, name: string, context: RequestContext): Promise<boolean> {
  const { caller } = await requests.current(context)
  const tool = calls.names().toId(name)
  const pending = await gate.approvals.list({ status: 'pending', ...(tool !== undefined && { tool }) })
  return pending.some(({ user, tenant }) => user === caller.user && tenant === caller.tenant)
}

interface SettlingAnswer {
  readonly call: { readonly name: string; readonly input: unknown; readonly callId: string }
  readonly requestContext: RequestContext
  readonly activeTools: readonly string[] | undefined
  readonly by: Caller
  readonly decision: 'approve' | 'reject'
  readonly reason: string | undefined
}

/** Decides the approval that the call waits for. Returns the text for the model if the call can no longer run. */
async function settle(
  { gate, requests, calls }: Guarding,
  { call, requestContext, activeTools, by, decision, reason }: SettlingAnswer,
): Promise<string | undefined> {
  const request = await requests.current(requestContext)
  const asked = calls.toRequest(request, call)
  if (activeTools && !activeTools.includes(call.name)) {
    const { toId } = calls.names()
    // Mastra does not check `activeTools` before it runs a paused call.
    const view = request.view.narrow({ activeTools: activeTools.map((name) => toId(name) ?? name) })
    return (await calls.make(request, { ...call, view })).text
  }
  const outcome = await request.view.requestApproval(asked)
  if (outcome?.status === 'refused') return outcome.text
  if (outcome) await gate.approvals.decide(by, outcome.approval.id, { decision, reason })
  return undefined
}
