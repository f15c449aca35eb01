import { guard } from '@toolgate/adapters/ai-sdk'
import type { CallOutcome } from '@toolgate/core'
import { toWireName } from '@toolgate/expose'
import { holdsBigint, readOwnJson, toJsonText } from '@toolgate/values/json'
import { messageOf, outputText } from '@toolgate/values'
import type { StreamTextTransform, TextStreamPart, ToolSet } from 'ai'
import { isInputRequest } from '../ask-for-input.ts'
import { toDecided } from '../events.ts'
import { contextOf, type Scope } from '../run/scope.ts'
import { type StepToolResult, type ToolResultOutput, withResults } from '../run/step.ts'
import type { Conversation, PendingState } from './state.ts'

/** The result of settling waiting calls: the messages have their results, or they wait again. */
type SettledCalls = Pick<Conversation, 'messages' | 'pending'> & {
  /** The outcomes of ended calls, for a stream. */
  readonly parts: readonly ResumedPart[]
  readonly calls: readonly { readonly tool: string; readonly callId: string; readonly status: CallOutcome['status'] }[]
}

/**
 * Makes the calls that waited when a run paused. Each goes through the gate like any other, with the current view and
 * approvals: a call of a tool that was hidden meanwhile is refused, whoever approved it.
 */
export async function settle(conversation: Conversation, scope: Scope): Promise<SettledCalls> {
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
  readonly result?: StepToolResult
  readonly part?: ResumedPart
  /** The call's state, if it waits again. */
  readonly again?: PendingState
}

/** The scope in which calls are settled, and the SDK's tools by wire name. */
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
  // A hidden tool's call is refused and recorded here. Nothing runs.
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
    case 'input_required':
      return failedCall(pending, 'failed', outcome.text)
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
    // A broken stream has ended its call in the audit. The model gets a text, as for any failed tool.
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

/** Returns the output for the model. The call has run, so the run continues even if the tool's `toModelOutput` throws. */
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

/**
 * Runs work for one approval at a time. An approval is for one call, so other calls with the same approval wait again
 * rather than being refused.
 */
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
  // A call that a person was asked about needs an approval, even if no policy asks any longer.
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
    run: { id: shared.runId, ...shared.words, step: step?.stepNumber, model: step?.model },
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

function toResult({ callId, name }: PendingState, output: ToolResultOutput): StepToolResult {
  return { type: 'tool-result', toolCallId: callId, toolName: name, output }
}

/** Returns an output as the SDK sends it. An output without JSON, which ends a run of the SDK, becomes a text. */
function jsonOutput(output: unknown): ToolResultOutput {
  if (typeof output === 'string') return { type: 'text', value: output }
  try {
    const text: string | undefined = toJsonText(output)
    const value = text === undefined ? null : readOwnJson(text, 'exact')
    // A provider cannot serialise a bigint.
    return holdsBigint(value) ? { type: 'text', value: text ?? '' } : { type: 'json', value: value as null }
  } catch {
    return { type: 'text', value: outputText(output) }
  }
}

/** Returns the last item of a stream. */
async function lastOf(output: unknown): Promise<unknown> {
  if (typeof output !== 'object' || output === null || !(Symbol.asyncIterator in output)) return output
  let last: unknown
  for await (const item of output as AsyncIterable<unknown>) last = item
  return last
}

/** The end of a waiting call, as a part of the SDK's stream. */
export type ResumedPart = Extract<TextStreamPart<ToolSet>, { type: 'tool-result' | 'tool-error' }>

function resumedResult({ callId, name, input }: PendingState, output: unknown): ResumedPart {
  return { type: 'tool-result', toolCallId: callId, toolName: name, input, output, dynamic: true }
}

function resumedError({ callId, name, input }: PendingState, error: string): ResumedPart {
  return { type: 'tool-error', toolCallId: callId, toolName: name, input, error, dynamic: true }
}

/**
 * Returns a transform that puts the ends of waiting calls before the first step, as the SDK does for calls that its own
 * approvals allowed: a page that shows the call as waiting is updated. The step's own content follows, so no message
 * contains these ends twice.
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
