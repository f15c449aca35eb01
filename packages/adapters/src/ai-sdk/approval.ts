import { type CallOutcome, ConfigError } from '@toolgate/core'
import { asSchema, type ToolApprovalStatus } from 'ai'
import { fieldsOf, isFunction } from '../shared/fields.ts'
import { answeredCalls } from './apply-approvals.ts'
import { isImpostor } from './given-tools.ts'
import type { ApprovalQuestion, LoopCall, LoopRun } from './run.ts'

/**
 * Gives the SDK's `toolApproval` of a run: the stricter of the host's and of the gate.
 *
 * A call that a person must approve waits in the gate's store, and the SDK pauses. When it goes on, the store says
 * whether anybody has approved; what messages say does not count, and neither does it for what the host leaves to a person.
 */
export function createToolApproval(run: LoopRun): (question: ApprovalQuestion) => Promise<ToolApprovalStatus> {
  return async (question) => {
    const host = await hostApproval(run, question)
    const { toolName, toolCallId, input, providerExecuted } = question.toolCall
    // The provider has run it by now.
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

/** Gives `needsApproval` of a tool: how version 6 of the SDK asks. */
export function needsApproval(run: LoopRun, toolName: string): NeedsApproval {
  return async (input, execution) => {
    const { toolCallId, messages } = execution
    // One that messages say is approved is about to be made, and is asked about there.
    if (isAnswered(messages, toolCallId)) return true
    const call: LoopCall = { toolName, toolCallId, input, messages }
    const host = await hostApproval(run, toQuestion(call, execution))
    // What the host denies is refused where it is made.
    if (host?.type === 'denied') return false
    note(run, call, host)
    return (await ask(run, call))?.status === 'waiting' && !onlyTells(run)
  }
}

/** Whether a call that waits ends with what the model is told, as one that is refused does. */
function onlyTells({ options }: LoopRun): boolean {
  return options.approvals === 'tell'
}

type NeedsApproval = (input: unknown, execution: ExecutionContext) => Promise<boolean>

interface ExecutionContext {
  readonly toolCallId: string
  readonly messages: readonly unknown[]
  readonly context?: unknown
  /** Its name before version 7. */
  readonly experimental_context?: unknown
}

/** Asks the host where the SDK has not, as its version or the other options have it: gives why the call is refused. */
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

/** What the host leaves to a person runs only with the word of one. */
function note(run: LoopRun, call: LoopCall, host: ApprovalStatus | undefined): void {
  run.setHostApproval(call, { mustBeAsked: host?.type === 'user-approval' })
}

function toQuestion(call: LoopCall, { messages, context, experimental_context }: ExecutionContext): ApprovalQuestion {
  const own = context ?? experimental_context
  return { toolCall: call, tools: undefined, toolsContext: { [call.toolName]: own }, runtimeContext: own, messages }
}

function isAnswered(messages: readonly unknown[], toolCallId: string): boolean {
  return answeredCalls(messages).some((answered) => answered.toolCallId === toolCallId)
}

/** A tool that the host has put beside those of the guard is its own. One that is nowhere was hidden meanwhile. */
function isHosts({ tools, toolCall }: ApprovalQuestion): boolean {
  return tools !== undefined && Object.hasOwn(tools, toolCall.toolName)
}

/** What the client executes is handed over by a call that does nothing: it is decided, counted and recorded here. */
function ask(run: LoopRun, call: LoopCall): Promise<CallOutcome | undefined> {
  return run.offered(call.toolName)?.isEnforceable === false ? run.call(call) : run.requestApproval(call)
}

/** The text is the host's, unless the gate would have refused the call before it came to the host. */
function denied(outcome: CallOutcome, host: ApprovalStatus | undefined): ApprovalStatus {
  const isOfHost = host && outcome.status === 'refused' && outcome.decision.reasons[0]?.code === 'hook_denied'
  const text = isOfHost ? host.reason : outcome.text
  return { type: 'denied', ...(text === undefined ? {} : { reason: text }) }
}

/** What is asked of a person, or of nobody: never the SDK's short forms. */
type ApprovalStatus = Exclude<ToolApprovalStatus, string | undefined>

/**
 * Returns the answer of the host's `toolApproval`, or of the tool's own `needsApproval`, asked as the SDK asks it.
 *
 * @throws {ConfigError} for an unknown answer, which must not count as an approval
 */
async function hostApproval(run: LoopRun, question: ApprovalQuestion): Promise<ApprovalStatus | undefined> {
  const status = await askHost(run, question)
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

type Ask = (input: unknown, options: object) => unknown

async function askOne(run: LoopRun, question: ApprovalQuestion, one: Ask): Promise<unknown> {
  const { toolCall, messages, runtimeContext } = question
  const toolContext = await contextOf(run, question)
  return one(toolCall.input, { toolCallId: toolCall.toolCallId, messages, toolContext, runtimeContext })
}

async function askTool(run: LoopRun, question: ApprovalQuestion, needs: Ask, input: unknown): Promise<unknown> {
  const { toolCall, messages } = question
  const context = await contextOf(run, question)
  const { toolCallId } = toolCall
  const isNeeded = await needs(input, { toolCallId, messages, context, experimental_context: context })
  return isNeeded ? 'user-approval' : undefined
}

/** The tool's own context, as its `contextSchema` makes it. */
async function contextOf(run: LoopRun, { toolCall: { toolName }, toolsContext }: ApprovalQuestion): Promise<unknown> {
  const context = new Map<string, unknown>(Object.entries(toolsContext ?? {})).get(toolName)
  const schema = run.offered(toolName)?.imported?.tool.contextSchema
  const checked = schema && (await asSchema(schema).validate?.(context))
  if (!checked) return context
  if (!checked.success) throw checked.error
  return checked.value
}
