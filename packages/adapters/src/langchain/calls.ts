import type { ToolCall } from '@langchain/core/messages/tool'
import { type Command, isCommand } from '@langchain/langgraph'
import type { CallFailed, CallOutcome, Gate } from '@toolgate/core'
import { messageOf, outputText } from '@toolgate/values'
import * as langchain from 'langchain'
import { type ToolCallRequest, ToolInvocationError, ToolMessage } from 'langchain'
import { inheritWith } from '../shared/fields.ts'
import { failureText, isStream, lastOf } from '../shared/refused.ts'
import type { GuardedCall } from '../shared/runs.ts'
import { asOwnRuntime, Bubbled } from './import-tools.ts'
import { type AgentRun, callWithin } from './runs.ts'

/** The answer of a node to one call. */
export type CallAnswer = ToolMessage | Command

/** The options that LangChain's tool node passes to a tool. */
interface ToolConfig {
  readonly signal?: AbortSignal | undefined
}

interface CallSeat {
  readonly gate: Pick<Gate, 'catalog'>
  readonly run: AgentRun
  /** The call as it arrived, with its step and the step's view. */
  readonly call: GuardedCall
}

/**
 * Returns the tool that LangChain runs instead: its `invoke` passes the call to the gate. Other middlewares may change the
 * call or repeat it, and the gate records each attempt.
 */
export function sealedTool(
  tool: ToolCallRequest['tool'],
  seat: CallSeat,
): { readonly tool: NonNullable<ToolCallRequest['tool']>; readonly wasAsked: () => boolean } {
  let asked = false
  const invoke = async (toolCall: ToolCall, config: ToolConfig = {}): Promise<CallAnswer> => {
    asked = true
    return answerOf(await callOnce(seat, toolCall, config), toolCall, config.signal)
  }
  return { tool: inheritWith(tool ?? { name: seat.call.name, description: '' }, { invoke }), wasAsked: () => asked }
}

/** A call as a model or the host's own code made it. */
export interface MadeCall extends Pick<ToolCall, 'name' | 'id' | 'type'> {
  readonly args: unknown
}

/** Makes one call through the gate. */
export function callOnce(seat: CallSeat, toolCall: MadeCall, config: ToolConfig): Promise<CallOutcome> {
  const { gate, run, call } = seat
  return callWithin(gate, run.view, () =>
    run.call({
      ...call,
      name: toolCall.name,
      input: toolCall.args,
      callId: toolCall.id,
      signal: config.signal,
      context: asOwnRuntime(config, toolCall.type === 'tool_call' ? 'message' : 'value'),
    }),
  )
}

/** Returns a text as the error message that LangChain shows a model. */
export function refusalOf({ text }: { readonly text: string }, { id, name }: MadeCall): ToolMessage {
  return new ToolMessage({ content: text, tool_call_id: id ?? '', name, status: 'error' })
}

/**
 * Returns the answer of a later middleware or of the tool itself. Before 1.5.4, if any middleware wraps calls,
 * LangChain ends the run when a tool throws. In those versions the error becomes a message here, so earlier middlewares
 * do not see an error.
 */
export async function tellFailures(
  toolCall: ToolCall,
  answering: PromiseLike<CallAnswer> | CallAnswer,
  langChainDoes: boolean = TELLS_FAILURES,
): Promise<CallAnswer> {
  if (langChainDoes) return answering
  try {
    return await answering
  } catch (error) {
    const failure = causesOf(error).find((cause) => failures.has(cause))
    if (!failure) throw error
    return refusalOf({ text: failure.message }, toolCall)
  }
}

/**
 * Whether LangChain shows the model a tool's error even if a middleware wraps the call. The releases that do export
 * `toolErrorMiddleware`.
 */
const TELLS_FAILURES = 'toolErrorMiddleware' in langchain

/** Errors that this module threw. */
const failures = new WeakSet<Error>()

/** Whether an error says that a tool failed, as {@link answerOf} throws it. */
export function isFailure(error: unknown): error is Error {
  return causesOf(error).some((cause) => failures.has(cause))
}

function causesOf(error: unknown): readonly Error[] {
  return error instanceof Error ? [error, ...causesOf(error.cause)] : []
}

/**
 * Returns the answer for a call's outcome.
 *
 * @throws a pause, a jump or an abort, which stop the graph; and the tool's own error, so that other middlewares may
 * retry the call. If none retries, the error becomes a message with the outcome's text
 */
export async function answerOf(
  outcome: CallOutcome,
  toolCall: ToolCall,
  signal: AbortSignal | undefined,
): Promise<CallAnswer> {
  switch (outcome.status) {
    case 'refused':
    case 'waiting':
    case 'input_required':
      if (signal?.aborted) throw signal.reason
      return refusalOf(outcome, toolCall)
    case 'failed':
      if (signal?.aborted) throw signal.reason
      throw toFailure(outcome, toolCall)
    case 'done':
      return messageFrom(outcome.output, outcome.text, toolCall)
  }
}

async function messageFrom(output: unknown, text: string, toolCall: ToolCall): Promise<CallAnswer> {
  const { id, name } = toolCall
  if (output instanceof Bubbled) throw output.error
  if (isCommand(output)) return output
  if (ToolMessage.isInstance(output)) {
    // The name that the model uses, because not every provider accepts the tool's own.
    output.name = name
    return output
  }
  const content = isStream(output) ? outputText(await lastItem(output, toolCall)) : text
  return new ToolMessage({ content, tool_call_id: id ?? '', name })
}

async function lastItem(stream: AsyncIterable<unknown>, toolCall: ToolCall): Promise<unknown> {
  try {
    return await lastOf(stream)
  } catch (error) {
    throw toFailure({ error, text: failureText(toolCall.name, error) }, toolCall)
  }
}

/**
 * Returns the tool's own error with two changes: its message is the text for the model, and LangChain turns it into a
 * tool message if no middleware does, as for every error that a model can correct.
 */
function toFailure({ error, text }: Pick<CallFailed, 'error' | 'text'>, toolCall: ToolCall): Error {
  const own = error instanceof Error ? error : new Error(messageOf(error))
  const { '~brand': brand } = new ToolInvocationError(own, toolCall)
  const fields: Error = Object.create(Object.getPrototypeOf(own), {
    ...Object.getOwnPropertyDescriptors({ '~brand': brand, toolCall, toolError: own }),
    message: { value: text },
  })
  // Other fields are read from the original error: some getters, such as those of a DOMException, work on no other
  // object.
  const failure = new Proxy(fields, {
    get: (target, key): unknown => Reflect.get(Object.hasOwn(target, key) ? target : own, key),
    has: (target, key) => key in target || key in own,
  })
  failures.add(failure)
  return failure
}
