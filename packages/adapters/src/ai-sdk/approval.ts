import { type CallOutcome, ConfigError } from '@toolgate/core'
import { asSchema, type ToolApprovalStatus } from 'ai'
import { fieldsOf, isFunction } from '../shared/fields.ts'
import { answeredCalls } from './apply-approvals.ts'
import { isImpostor } from './given-tools.ts'
import type { ApprovalQuestion, LoopCall, LoopRun } from './run.ts'

/**
 * Returns the SDK's `toolApproval` of a run: the stricter of the host's answer and the gate's.
 *
 * A call that needs approval waits in the gate's store, and the SDK pauses. When the run continues, the store decides.
 * Approvals in the messages do not count, even for calls that only the host wants approved.
 */
export function createToolApproval(run: LoopRun): (question: ApprovalQuestion) => Promise<ToolApprovalStatus> {
  return async (question) => {
    const host = await hostApproval(run, question)
    const { toolName, toolCallId, input, providerExecuted } = question.toolCall
    // The provider has already run it.
    if (providerExecuted === true) return host
    const call: LoopCall = { toolName, toolCallId, input, messages: question.messages }
    if (isImpostor(run, toolName, question.tools)) return denied(await run.refuseUnsent(call), undefined)
    if (!run.offered(toolName)) return isHosts(question) ? host : denied(await run.refuseUnsent(call), undefined)
    if (host?.type === 'denied') return denied(await run.refuse(call, 'toolApproval', host.reason), host)
    note(run, call, host)
    const outcome = await ask(run, call)
    if (!outcome || outcome.status === 'done') return host?.type === 'user-approval' ? undefined : host
    if (outcome.status !== 'waiting' || onlyTells(run) || isAnswered(question.messages, toolCallId))
      return { type: 'denied', reason: outcome.text }
    return { type: 'user-approval', reason: host?.reason ?? outcome.text }
  }
}

/** Returns `needsApproval` of a tool, which version 6 of the SDK calls. */
export function needsApproval(run: LoopRun, toolName: string): NeedsApproval {
  return async (input, execution) => {
    const { toolCallId, messages } = execution
    // If the messages approve this call, it is made next, and the gate decides then.
    if (isAnswered(messages, toolCallId)) return true
    const call: LoopCall = { toolName, toolCallId, input, messages }
    const host = await hostApproval(run, toQuestion(call, execution))
    // A call that the host denies is refused when it is made.
    if (host?.type === 'denied') return false
    note(run, call, host)
    return (await ask(run, call))?.status === 'waiting' && !onlyTells(run)
  }
}

/** Whether the model gets a text about a waiting call, instead of a pause. */
function onlyTells({ options }: LoopRun): boolean {
  return options.approvals === 'tell'
}

type NeedsApproval = (input: unknown, execution: ExecutionContext) => Promise<boolean>

interface ExecutionContext {
  readonly toolCallId: string
  readonly messages: readonly unknown[]
  readonly context?: unknown
  /** The context under its name in version 6. */
  readonly experimental_context?: unknown
}

/** Asks the host about a call that the SDK did not ask the host about. Returns the outcome if the host denies. */
export async function askHostLate(
  run: LoopRun,
  call: LoopCall,
  execution: ExecutionContext,
): Promise<CallOutcome | undefined> {
  const hasOwn = run.options.toolApproval ?? run.offered(call.toolName)?.imported?.tool.needsApproval
  if (hasOwn === undefined || run.hostApprovalOf(call) !== undefined) return undefined
  const host = await hostApproval(run, toQuestion(call, execution))
  if (host?.type === 'denied') return run.refuse(call, 'toolApproval', host.reason)
  note(run, call, host)
  return undefined
}

/** A call that the host leaves to a person runs only with an approval. */
function note(run: LoopRun, call: LoopCall, host: SdkApprovalStatus | undefined): void {
  run.setHostApproval(call, { mustBeAsked: host?.type === 'user-approval' })
}

function toQuestion(call: LoopCall, { messages, context, experimental_context }: ExecutionContext): ApprovalQuestion {
  const own = context ?? experimental_context
  return { toolCall: call, tools: undefined, toolsContext: { [call.toolName]: own }, runtimeContext: own, messages }
}

function isAnswered(messages: readonly unknown[], toolCallId: string): boolean {
  return answeredCalls(messages).some((answered) => answered.toolCallId === toolCallId)
}

/** Whether the host added this tool beside the guard's. A tool missing from `tools` was hidden after it was sent. */
function isHosts({ tools, toolCall }: ApprovalQuestion): boolean {
  return tools !== undefined && Object.hasOwn(tools, toolCall.toolName)
}

/** A call that the client executes runs nothing here, but is decided, counted and recorded. */
function ask(run: LoopRun, call: LoopCall): Promise<CallOutcome | undefined> {
  return run.offered(call.toolName)?.isEnforceable === false ? run.call(call) : run.requestApproval(call)
}

/** Uses the host's text, unless the gate itself refuses the call. */
function denied(outcome: CallOutcome, host: SdkApprovalStatus | undefined): SdkApprovalStatus {
  const isOfHost = host && outcome.status === 'refused' && outcome.decision.reasons[0]?.code === 'hook_denied'
  const text = isOfHost ? host.reason : outcome.text
  return { type: 'denied', ...(text === undefined ? {} : { reason: text }) }
}

/** An answer without the SDK's short forms. */
type SdkApprovalStatus = Exclude<ToolApprovalStatus, string | undefined>

/**
 * Returns the answer of the host's `toolApproval`, or of the tool's own `needsApproval`, asked as the SDK asks it.
 *
 * @throws {ConfigError} for an unknown answer, which must not count as an approval
 */
async function hostApproval(run: LoopRun, question: ApprovalQuestion): Promise<SdkApprovalStatus | undefined> {
  const status = await askHost(run, await withParsedInput(run, question))
  if (status === undefined || status === null) return undefined
  const { type = status, reason } = fieldsOf(status)
  switch (type) {
    case 'not-applicable':
      return undefined
    case 'approved':
    case 'denied':
    case 'user-approval':
      return typeof reason === 'string' ? { type, reason } : { type }
    default:
      throw new ConfigError('toolApproval', 'must return "approved", "denied", "user-approval" or "not-applicable"')
  }
}

/** Returns the question with the input as the tool's schema returned it, as the host's functions expect it. */
async function withParsedInput(run: LoopRun, question: ApprovalQuestion): Promise<ApprovalQuestion> {
  const { toolCall } = question
  const input = await run.offered(toolCall.toolName)?.imported?.schema?.asParsed(toolCall.input)
  return input === undefined || input === toolCall.input ? question : { ...question, toolCall: { ...toolCall, input } }
}

function askHost(run: LoopRun, question: ApprovalQuestion): unknown {
  const toolApproval: unknown = run.options.toolApproval
  if (isFunction(toolApproval)) return toolApproval(question)
  const { toolName, input } = question.toolCall
  const ofTools = new Map<string, unknown>(Object.entries(toolApproval ?? {}))
  const ofTool = ofTools.get(toolName) ?? ofTools.get(run.offered(toolName)?.id ?? toolName)
  if (isFunction(ofTool)) return askOne(run, question, ofTool)
  if (ofTool !== undefined && ofTool !== null) return ofTool
  const needs = run.offered(toolName)?.imported?.tool.needsApproval
  if (isFunction(needs)) return askTool(run, question, needs, input)
  return needs ? 'user-approval' : undefined
}

type ApprovalAsk = (input: unknown, options: object) => unknown

async function askOne(run: LoopRun, question: ApprovalQuestion, one: ApprovalAsk): Promise<unknown> {
  const { toolCall, messages, runtimeContext } = question
  const toolContext = await contextOf(run, question)
  return one(toolCall.input, { toolCallId: toolCall.toolCallId, messages, toolContext, runtimeContext })
}

async function askTool(run: LoopRun, question: ApprovalQuestion, needs: ApprovalAsk, input: unknown): Promise<unknown> {
  const { toolCall, messages } = question
  const context = await contextOf(run, question)
  const { toolCallId } = toolCall
  const isNeeded = await needs(input, { toolCallId, messages, context, experimental_context: context })
  return isNeeded ? 'user-approval' : undefined
}

/** Returns the tool's context, parsed by its `contextSchema`. */
async function contextOf(run: LoopRun, { toolCall: { toolName }, toolsContext }: ApprovalQuestion): Promise<unknown> {
  const context = new Map<string, unknown>(Object.entries(toolsContext ?? {})).get(toolName)
  const schema = run.offered(toolName)?.imported?.tool.contextSchema
  const checked = schema && (await asSchema(schema).validate?.(context))
  if (!checked) return context
  if (!checked.success) throw checked.error
  return checked.value
}
