import { type Approval, type Caller, type FaultCode, type Gate, type Tool, ToolgateError } from '@toolgate/core'
import { toWireName } from '@toolgate/expose'
import { checkShape, type Shape, shapeOf } from '@toolgate/values'
import type { ModelMessage } from 'ai'
import { fieldsOf } from '../shared/fields.ts'
import { inputHashOf } from '../shared/input-hash.ts'

export interface ApplyApprovalsOptions {
  /** The caller whose calls they are. Default: `person`. */
  readonly requester?: Caller | undefined
  /** The run that asked, if it had an id. */
  readonly runId?: string | undefined
}

const SHAPE: Shape = shapeOf<ApplyApprovalsOptions>({ requester: true, runId: true })

/** The result of applying one answer in the messages. */
export interface AppliedApproval {
  readonly toolCallId: string
  readonly tool: string
  /** The approval as it was decided. */
  readonly approval: Approval | undefined
  /** Why nothing was decided: no matching approval waits, or this person may not decide it. */
  readonly problem: FaultCode | undefined
}

type Desk = Pick<Gate, 'catalog' | 'approvals'>

/**
 * Decides, as `person`, what the last message approves or denies. It is for hosts whose user interface sends
 * `tool-approval-response` parts, as `useChat` does. Call it before the run continues.
 *
 * The messages only express a wish. The decision applies to the approval that waits in the gate's store for the same tool,
 * input and requester, and `gate.approvals` checks whether the person may decide it. `person` must be the authenticated
 * user, never a value from the request. If a hook replaces inputs, the messages and the store differ: decide those with
 * `gate.approvals`.
 *
 * @example
 * const messages = await convertToModelMessages(body.messages)
 * await applyApprovals(gate, { user: session.user }, messages)
 */
export async function applyApprovals(
  gate: Desk,
  person: Caller,
  messages: readonly ModelMessage[],
  options: ApplyApprovalsOptions = {},
): Promise<readonly AppliedApproval[]> {
  checkShape('applyApprovals', options, SHAPE)
  const { requester = person, runId } = options
  const applied: AppliedApproval[] = []
  // In order: two answers may concern the same approval.
  for (const answer of answeredCalls(messages)) applied.push(await apply(gate, person, answer, { requester, runId }))
  return applied
}

async function apply(
  gate: Desk,
  person: Caller,
  answer: AnsweredCall,
  { requester, runId }: ApplyApprovalsOptions & { readonly requester: Caller },
): Promise<AppliedApproval> {
  const { toolCallId, toolName, approved, reason } = answer
  const tool = toolNamed(gate, toolName)
  const said = { toolCallId, tool: tool?.id ?? toolName }
  const pending =
    tool &&
    (await gate.approvals.list({ ...filterOf(requester), status: 'pending', tool: tool.id, limit: MAX_PENDING }))
  const hash = tool && inputHashOf(tool, answer.input)
  const waiting = pending?.find(
    (one) =>
      one.inputHash === hash && one.run === runId && one.user === requester.user && one.tenant === requester.tenant,
  )
  if (!waiting) return { ...said, approval: undefined, problem: 'approval_unknown' }
  try {
    const verdict = { decision: approved ? 'approve' : 'reject', reason } as const
    return { ...said, approval: await gate.approvals.decide(person, waiting.id, verdict), problem: undefined }
  } catch (error) {
    if (error instanceof ToolgateError) return { ...said, approval: undefined, problem: error.code }
    throw error
  }
}

/** The maximum number of waiting approvals that are searched. One user may leave many. */
const MAX_PENDING = 1000

function filterOf({ user, tenant }: Caller) {
  return { ...(user === undefined ? {} : { user }), ...(tenant === undefined ? {} : { tenant }) }
}

function toolNamed({ catalog }: Desk, name: string): Tool | undefined {
  return catalog.get(name) ?? catalog.snapshot().tools.find((tool) => toWireName(tool) === name)
}

/** A person's answer to a call, read from messages. Anyone can write messages. */
interface AnsweredCall {
  readonly toolCallId: string
  readonly toolName: string
  /** The input as the model wrote it, before the tool's schema transforms it. */
  readonly input: unknown
  readonly approved: boolean
  readonly reason: string | undefined
}

type MessagePart = ReturnType<typeof fieldsOf>

/**
 * Returns the calls that the last message answers. The SDK reads that message in the same way, and runs or denies these
 * calls before the next step.
 */
export function answeredCalls(messages: readonly unknown[] | undefined): readonly AnsweredCall[] {
  const last = messages?.at(-1)
  const responses = partsOf(last, 'tool').filter(({ type }) => type === 'tool-approval-response')
  if (!messages || responses.length === 0) return NONE
  const parts = messages.flatMap((message) => partsOf(message, 'assistant'))
  const requests = by(parts, 'tool-approval-request', 'approvalId')
  const calls = by(parts, 'tool-call', 'toolCallId')
  const results = by(partsOf(last, 'tool'), 'tool-result', 'toolCallId')
  return responses.flatMap(({ approvalId, approved, reason }) => {
    const request = requests.get(approvalId)
    const call = calls.get(request?.['toolCallId'])
    if (!request || !call || isOver(results.get(call['toolCallId']), approved)) return []
    return [
      {
        toolCallId: textOf(call['toolCallId']) ?? '',
        toolName: textOf(call['toolName']) ?? '',
        input: 'inputSchemaInput' in request ? request['inputSchemaInput'] : call['input'],
        approved: approved === true,
        reason: textOf(reason),
      },
    ]
  })
}

/** A call with a result was answered earlier. Only a denial may have its own result beside it. */
function isOver(result: MessagePart | undefined, approved: unknown): boolean {
  if (!result) return false
  return approved === true || fieldsOf(result['output'])['type'] !== 'execution-denied'
}

const NONE: readonly AnsweredCall[] = []

function partsOf(message: unknown, role: string): readonly MessagePart[] {
  const { role: its, content } = fieldsOf(message)
  return its === role && Array.isArray(content) ? content.map(fieldsOf) : []
}

/** In a Map, because the model and the client choose the ids. */
function by(parts: readonly MessagePart[], type: string, key: string): ReadonlyMap<unknown, MessagePart> {
  return new Map(parts.filter((part) => part['type'] === type).map((part) => [part[key], part]))
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}
