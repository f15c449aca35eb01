import type { AgentExecutionOptions } from '@mastra/core/agent'
import type { RequestContext } from '@mastra/core/request-context'
import { type Caller, ConfigError } from '@toolgate/core'
import { fieldsOf } from '../shared/fields.ts'
import { checkDecision, checkGiven } from '../shared/guard-options.ts'
import { type Guarding, guardingOf } from './guard.ts'
import { PROCESSOR_ID } from './options.ts'

/** A run that waits: the result of `generate`, or the chunk `tool-call-approval` of a stream. */
export interface PausedRun {
  readonly runId: string
  readonly toolCallId: string
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
 * A tool that is hidden by now, from the caller or by `activeTools`, is declined, and the model is told.
 *
 * @throws {ToolgateError} `approval_forbidden` if this person may not decide; the run then still waits
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

/** Returns the call that a run waits for. @throws {ConfigError} if it does not wait for an approval */
export function pausedRun(output: {
  readonly runId?: string | undefined
  readonly suspendPayload?: unknown
}): PausedRun {
  const { runId, suspendPayload } = output
  const { toolCallId, toolName, args } = fieldsOf(suspendPayload)
  if (runId === undefined || typeof toolCallId !== 'string' || typeof toolName !== 'string')
    throw new ConfigError('output', 'is not of a run that waits for an approval')
  return { runId, toolCallId, toolName, args }
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
  const guarding = guardingOf(await agent.resolveProcessorById(PROCESSOR_ID, requestContext))
  if (!guarding) throw new ConfigError('agent', `has no guard: "${agent.name}" was made without ...guard(gate, …)`)
  const call = { name: toolName, input: args, callId: toolCallId }
  const refused = await settle(guarding, { call, requestContext, activeTools, by, decision, reason })
  return {
    resume: { ...options, runId, toolCallId },
    declined: decision === 'reject' ? (reason ?? DECLINED) : refused,
  }
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
