import { asSchema, type ToolApprovalStatus } from 'ai'
import type { ApprovalQuestion, LoopRun } from './loop.ts'

/** What is asked of a person, or of nobody: never the SDK's short forms. */
export type ApprovalStatus = Exclude<ToolApprovalStatus, string | undefined>

type Answer = ToolApprovalStatus | PromiseLike<ToolApprovalStatus>
type AskForAll = (question: ApprovalQuestion) => Answer
type AskForOne = (input: unknown, options: object) => Answer

/** Gives what your `toolApproval`, or what your tool's own `needsApproval`, says of a call, as the SDK would ask it. */
export async function yourApproval(run: LoopRun, question: ApprovalQuestion): Promise<ApprovalStatus | undefined> {
  const status = await ask(run, question)
  if (status === undefined || status === 'not-applicable') return undefined
  if (typeof status !== 'string') return status.type === 'not-applicable' ? undefined : status
  return { type: status }
}

function ask(run: LoopRun, question: ApprovalQuestion): Answer {
  const { toolApproval } = run.options
  if (typeof toolApproval === 'function') return (toolApproval as unknown as AskForAll)(question)
  const { toolName, input } = question.toolCall
  const ofTools = new Map<string, unknown>(Object.entries(toolApproval ?? {}))
  const ofTool = ofTools.get(toolName) ?? ofTools.get(run.offered(toolName)?.id ?? toolName)
  if (typeof ofTool === 'function') return askOne(run, question, ofTool as AskForOne)
  if (ofTool !== undefined && ofTool !== null) return ofTool as ToolApprovalStatus
  const needs = run.offered(toolName)?.imported?.tool.needsApproval
  return typeof needs === 'function' ? askTool(run, question, needs as AskTool, input) : toStatus(needs)
}

async function askOne(run: LoopRun, question: ApprovalQuestion, one: AskForOne): Promise<ToolApprovalStatus> {
  const { toolCall, messages, runtimeContext } = question
  const toolContext = await contextOf(run, question)
  return one(toolCall.input, { toolCallId: toolCall.toolCallId, messages, toolContext, runtimeContext })
}

type AskTool = (input: unknown, options: object) => boolean | PromiseLike<boolean>

async function askTool(
  run: LoopRun,
  question: ApprovalQuestion,
  needs: AskTool,
  input: unknown,
): Promise<ToolApprovalStatus> {
  const { toolCall, messages } = question
  const context = await contextOf(run, question)
  const { toolCallId } = toolCall
  return toStatus(await needs(input, { toolCallId, messages, context, experimental_context: context }))
}

function toStatus(needs: unknown): ToolApprovalStatus {
  return needs ? 'user-approval' : undefined
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
