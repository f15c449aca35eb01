import { type Approval, type Caller, type FaultCode, type Gate, type Tool, ToolgateError } from '@toolgate/core'
import { toWireName } from '@toolgate/core/expose'
import { canonicalize, checkShape, sha256Hex, type Shape, shapeOf } from '@toolgate/core/internal'
import type { ModelMessage } from 'ai'
import { fieldsOf } from '../shared/fields.ts'

export interface ApplyApprovalsOptions {
  /** Whose calls they are. Default: the person's own. */
  readonly requester?: Caller | undefined
  /** Of the run that asked, where it was given one. */
  readonly runId?: string | undefined
}

const SHAPE: Shape = shapeOf<ApplyApprovalsOptions>({ requester: true, runId: true })

/** What became of one answer in the messages. */
export interface AppliedApproval {
  readonly toolCallId: string
  readonly tool: string
  /** As it was decided. */
  readonly approval: Approval | undefined
  /** Why nothing was decided: nothing like that waits, or this person may not. */
  readonly problem: FaultCode | undefined
}

type Desk = Pick<Gate, 'catalog' | 'approvals'>

/**
 * Decides, in the name of a person, what the last message approves or denies: for hosts whose user interface sends
 * `tool-approval-response` parts, as `useChat` does. Call it before the run that goes on.
 *
 * The messages say only what the person wants. What is decided is what waits in the gate's store for that tool, input and
 * requester, and `gate.approvals` has the last word on whether this person may: `person` is who is logged in, never
 * something that the request says. Where a hook replaces inputs, the messages have another one than the store: decide
 * those by `gate.approvals`.
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
  // One after the other: two answers may be about the same approval.
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
  const hash = tool && hashOf(tool, answer.input)
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

/** More than one user may leave waiting. */
const MAX_PENDING = 1000

function filterOf({ user, tenant }: Caller) {
  return { ...(user === undefined ? {} : { user }), ...(tenant === undefined ? {} : { tenant }) }
}

function toolNamed({ catalog }: Desk, name: string): Tool | undefined {
  return catalog.get(name) ?? catalog.snapshot().tools.find((tool) => toWireName(tool) === name)
}

/** As the door binds an approval: to the input as its schema makes it. */
function hashOf(tool: Tool, input: unknown): string | undefined {
  try {
    const parsed = tool.parseInput ? tool.parseInput(input) : { value: input }
    return 'value' in parsed ? sha256Hex(canonicalize(parsed.value)) : undefined
  } catch {
    // What no gate would take is what none has asked about.
    return undefined
  }
}

/** What a person has said of a call, as it stands in messages. Anybody can write messages. */
interface AnsweredCall {
  readonly toolCallId: string
  readonly toolName: string
  /** As the model wrote it, where the schema of the tool has made something else of it. */
  readonly input: unknown
  readonly approved: boolean
  readonly reason: string | undefined
}

type Part = ReturnType<typeof fieldsOf>

/** Gives the calls that the last message answers, as the SDK reads it: they run, or are denied, before the next step. */
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

/** What has its result was answered before; only a denial stands beside the result that it is. */
function isOver(result: Part | undefined, approved: unknown): boolean {
  if (!result) return false
  return approved === true || fieldsOf(result['output'])['type'] !== 'execution-denied'
}

const NONE: readonly AnsweredCall[] = []

function partsOf(message: unknown, role: string): readonly Part[] {
  const { role: its, content } = fieldsOf(message)
  return its === role && Array.isArray(content) ? content.map(fieldsOf) : []
}

/** In a Map, as the ids are the model's and the client's. */
function by(parts: readonly Part[], type: string, key: string): ReadonlyMap<unknown, Part> {
  return new Map(parts.filter((part) => part['type'] === type).map((part) => [part[key], part]))
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}
