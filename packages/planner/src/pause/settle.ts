import { guard } from '@toolgate/adapters/ai-sdk'
import type { CallOutcome } from '@toolgate/core'
import { toWireName } from '@toolgate/core/expose'
import { messageOf, outputText } from '@toolgate/core/internal'
import type { StreamTextTransform, TextStreamPart, ToolSet } from 'ai'
import { isInputRequest } from '../ask-for-input.ts'
import { toDecided } from '../events.ts'
import { contextOf, type Scope } from '../run/scope.ts'
import { type ToolResult, type ToolResultOutput, withResults } from '../run/step.ts'
import type { Conversation, PendingState } from './state.ts'

/** What became of the calls that waited: their results stand in the messages, or they wait again. */
type Settled = Pick<Conversation, 'messages' | 'pending'> & {
  /** What the calls that are over came to, for a stream. */
  readonly parts: readonly ResumedPart[]
  readonly calls: readonly { readonly tool: string; readonly callId: string; readonly status: CallOutcome['status'] }[]
}

/**
 * Makes the calls that waited when a run paused. Each goes through the gate as any other, by what the view shows and
 * the store of approvals has now: what was hidden meanwhile is refused, whoever approved it.
 */
export async function settle(conversation: Conversation, scope: Scope): Promise<Settled> {
  const offered = await offeredIn(scope)
  const settled = await Promise.all(
    conversation.pending.map(async (pending) => ({
      pending,
      ...(await settleOne(pending, conversation, { scope, offered })),
    })),
  )
  return {
    messages: withResults(
      conversation.messages,
      settled.flatMap(({ result }) => result ?? []),
    ),
    pending: settled.flatMap(({ again }) => again ?? []),
    parts: settled.flatMap(({ part }) => part ?? []),
    calls: settled.map(({ pending: { tool, callId }, status }) => ({ tool, callId, status })),
  }
}

interface SettledCall {
  readonly status: CallOutcome['status']
  readonly result?: ToolResult
  readonly part?: ResumedPart
  /** It waits again. */
  readonly again?: PendingState
}

/** Where calls are settled: in a scope, with the tools as the SDK knows them, by their names on the wire. */
interface Settling {
  readonly scope: Scope
  readonly offered: ReadonlyMap<string, ToolSet[string]>
}

async function offeredIn({ shared, view }: Scope): Promise<Settling['offered']> {
  const { tools } = await guard(shared.gate, view, { ...shared.offering, onWarning: shared.warn })
  return new Map(Object.entries(tools))
}

async function settleOne(pending: PendingState, conversation: Conversation, settling: Settling): Promise<SettledCall> {
  const { tool } = pending
  const { scope } = settling
  if (pending.kind === 'input' && scope.view.has(tool) && isVisible(scope, tool)) {
    const answer = scope.shared.answers.get(pending)
    return { status: 'done', result: toResult(pending, jsonOutput(answer)), part: resumedResult(pending, answer) }
  }
  // Of a tool that is hidden by now this is refused, and recorded; nothing that is hidden runs.
  const outcome = await inTurn(pending, scope, () => makeCall(pending, conversation, scope))
  const { kind, ...call } = pending
  switch (outcome.status) {
    case 'waiting':
      return { status: 'waiting', again: { ...callOf(call), kind: 'approval', approvalId: outcome.approval.id } }
    case 'done':
      return settleDone(pending, outcome.output, settling)
    case 'refused':
    case 'failed':
      return failedCall(pending, outcome.status, outcome.text)
  }
}

function isVisible({ view }: Scope, tool: string): boolean {
  const { outcome } = view.explain(tool)
  return outcome === 'allow' || outcome === 'ask'
}

async function settleDone(pending: PendingState, given: unknown, { scope, offered }: Settling): Promise<SettledCall> {
  let output: unknown
  try {
    output = await lastOf(given)
  } catch (error) {
    // A stream that breaks off has ended its call on the record; the model is told so as of any tool that fails.
    const text = `${pending.name} failed: ${messageOf(error)}`
    return failedCall(pending, 'failed', text)
  }
  const inside = scope.paused.get(pending.callId)
  scope.paused.delete(pending.callId)
  if (inside) return { status: 'done', again: { ...callOf(pending), kind: 'agent', level: inside } }
  if (isInputRequest(output)) {
    const { question, schema } = output
    return { status: 'done', again: { ...callOf(pending), kind: 'input', question, schema } }
  }
  const result = toResult(pending, await shownOutput(pending, output, offered))
  return { status: 'done', result, part: resumedResult(pending, output) }
}

function failedCall(pending: PendingState, status: 'refused' | 'failed', text: string): SettledCall {
  return { status, result: toResult(pending, { type: 'error-text', value: text }), part: resumedError(pending, text) }
}

/** What the model is shown. The call has run, and the run goes on, whatever the tool's own `toModelOutput` does. */
async function shownOutput(
  { callId: toolCallId, name, input }: PendingState,
  output: unknown,
  offered: Settling['offered'],
): Promise<ToolResultOutput> {
  try {
    return (await offered.get(name)?.toModelOutput?.({ toolCallId, input, output })) ?? jsonOutput(output)
  } catch (error) {
    return { type: 'error-text', value: `${name} has run, but its result cannot be shown: ${messageOf(error)}` }
  }
}

/** An approval is for one call: of several that wait for the same, the others wait anew, and are not refused for haste. */
async function inTurn<T>(pending: PendingState, { shared }: Scope, work: () => Promise<T>): Promise<T> {
  if (pending.kind !== 'approval') return work()
  const { approvalId } = pending
  const mine = (shared.approving.get(approvalId) ?? Promise.resolve()).then(work)
  shared.approving.set(
    approvalId,
    mine.catch(() => undefined),
  )
  return mine
}

async function makeCall(pending: PendingState, conversation: Conversation, scope: Scope): Promise<CallOutcome> {
  const { shared, view, calls, signal, events } = scope
  const { callId, tool, name, input } = pending
  const step = conversation.steps.at(-1)
  const continued = pending.kind === 'agent' ? pending.level : undefined
  const context = {
    toolCallId: callId,
    messages: conversation.messages,
    abortSignal: signal,
    ...contextOf(scope, continued),
  }
  // What a person was asked runs by a person's word, also where policy does not ask any more.
  const asking = pending.kind === 'approval' && view.has(tool) ? view.narrow({ policy: { ask: [tool] } }) : view
  const outcome = await asking.call({
    tool,
    input,
    callId,
    signal,
    context,
    calledAs: name,
    nameOf: (id) => wireNameOf(scope, id),
    hooks: calls.hooks,
    run: { id: shared.runId, step: step?.stepNumber, model: step?.model },
  })
  calls.ended(outcome, { free: scope.paused.has(callId) })
  events.emit(toDecided(tool, step?.stepNumber ?? 0, outcome))
  return outcome
}

function wireNameOf({ view }: Scope, id: string): string {
  const tool = view.get(id)
  return tool ? toWireName(tool) : id
}

function callOf({ callId, tool, name, input }: Omit<PendingState, 'kind'>): Omit<PendingState, 'kind'> {
  return { callId, tool, name, input }
}

function toResult({ callId, name }: PendingState, output: ToolResultOutput): ToolResult {
  return { type: 'tool-result', toolCallId: callId, toolName: name, output }
}

/** As the SDK tells the model of an output. What has no JSON, which the SDK ends a run for, is told as a text. */
function jsonOutput(output: unknown): ToolResultOutput {
  if (typeof output === 'string') return { type: 'text', value: output }
  try {
    const text: string | undefined = JSON.stringify(output)
    return { type: 'json', value: text === undefined ? null : JSON.parse(text) }
  } catch {
    return { type: 'text', value: outputText(output) }
  }
}

/** Of a stream, the last item is the output. */
async function lastOf(output: unknown): Promise<unknown> {
  if (typeof output !== 'object' || output === null || !(Symbol.asyncIterator in output)) return output
  let last: unknown
  for await (const item of output as AsyncIterable<unknown>) last = item
  return last
}

/** The end of a call that waited, as the SDK's stream tells it. */
export type ResumedPart = Extract<TextStreamPart<ToolSet>, { type: 'tool-result' | 'tool-error' }>

function resumedResult({ callId, name, input }: PendingState, output: unknown): ResumedPart {
  return { type: 'tool-result', toolCallId: callId, toolName: name, input, output, dynamic: true }
}

function resumedError({ callId, name, input }: PendingState, error: string): ResumedPart {
  return { type: 'tool-error', toolCallId: callId, toolName: name, input, error, dynamic: true }
}

/**
 * Returns a transform that puts the ends of calls that waited before the first step, where the SDK puts those of the calls
 * that its own approvals let run: a page that shows the call as waiting learns that it is over. A step's own content
 * begins after that, so no message has them twice.
 */
export function withResumed(parts: readonly ResumedPart[]): StreamTextTransform<ToolSet> {
  let told = false
  return () =>
    new TransformStream<TextStreamPart<ToolSet>, TextStreamPart<ToolSet>>({
      transform(part, controller) {
        controller.enqueue(part)
        if (told || part.type !== 'start') return
        told = true
        for (const resumed of parts) controller.enqueue(resumed)
      },
    })
}
