import type { ToolCall } from '@langchain/core/messages/tool'
import { type Command, isCommand } from '@langchain/langgraph'
import type { CallFailed, CallOutcome, Gate } from '@toolgate/core'
import { messageOf, outputText } from '@toolgate/core/internal'
import * as langchain from 'langchain'
import { type ToolCallRequest, ToolInvocationError, ToolMessage } from 'langchain'
import { inheritWith } from '../shared/fields.ts'
import { failureText, isStream, lastOf } from '../shared/refused.ts'
import type { GuardedCall } from '../shared/runs.ts'
import { asOwnRuntime, Bubbled } from './import-tools.ts'
import { type AgentRun, callWithin } from './runs.ts'

type Answer = ToolMessage | Command

/** What LangChain's tool node hands to a tool. */
interface ToolConfig {
  readonly signal?: AbortSignal | undefined
}

export interface CallSeat {
  readonly gate: Pick<Gate, 'catalog'>
  readonly run: AgentRun
  /** Of the call as it was when it came: its step, and what that step saw. */
  readonly call: GuardedCall
}

/**
 * Gives what LangChain runs instead of the tool: whatever call comes to it in the end is decided, taken, run and
 * recorded by the gate. Other middlewares may change the call or make it again; each time it is an attempt of its own.
 */
export function sealedTool(
  tool: ToolCallRequest['tool'],
  seat: CallSeat,
): { readonly tool: NonNullable<ToolCallRequest['tool']>; readonly wasAsked: () => boolean } {
  let asked = false
  const invoke = async (toolCall: ToolCall, config: ToolConfig = {}): Promise<Answer> => {
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

/** Gives bad news as LangChain tells a model of it: the text, and nothing more. */
export function refusalOf({ text }: { readonly text: string }, { id, name }: ToolCall): ToolMessage {
  return new ToolMessage({ content: text, tool_call_id: id ?? '', name, status: 'error' })
}

/**
 * Gives what a middleware after the guard, or the tool itself, answered. Before 1.5.4, LangChain ended the run for a tool
 * that throws where there is any middleware around calls: there it becomes a message at once, which those before the
 * guard do not see as an error.
 */
export async function tellFailures(
  toolCall: ToolCall,
  answering: PromiseLike<Answer> | Answer,
  langChainDoes: boolean = TELLS_FAILURES,
): Promise<Answer> {
  if (langChainDoes) return answering
  try {
    return await answering
  } catch (error) {
    const failure = causesOf(error).find((cause) => failures.has(cause))
    if (!failure) throw error
    return refusalOf({ text: failure.message }, toolCall)
  }
}

/** It came with the release in which LangChain began to tell models of such errors whatever stands around a call. */
const TELLS_FAILURES = 'toolErrorMiddleware' in langchain

/** Those that were thrown here. */
const failures = new WeakSet<Error>()

function causesOf(error: unknown): readonly Error[] {
  return error instanceof Error ? [error, ...causesOf(error.cause)] : []
}

/**
 * Gives what came of a call.
 *
 * @throws what stops the graph: a pause, a jump, an abort; and the tool's own error, so that other middlewares may
 * retry it. Nobody else's business, it becomes a message with the outcome's text
 */
export async function answerOf(
  outcome: CallOutcome,
  toolCall: ToolCall,
  signal: AbortSignal | undefined,
): Promise<Answer> {
  switch (outcome.status) {
    case 'refused':
    case 'waiting':
      if (signal?.aborted) throw signal.reason
      return refusalOf(outcome, toolCall)
    case 'failed':
      if (signal?.aborted) throw signal.reason
      throw toFailure(outcome, toolCall)
    case 'done':
      return messageFrom(outcome.output, outcome.text, toolCall)
  }
}

async function messageFrom(output: unknown, text: string, toolCall: ToolCall): Promise<Answer> {
  const { id, name } = toolCall
  if (output instanceof Bubbled) throw output.error
  if (isCommand(output)) return output
  if (ToolMessage.isInstance(output)) {
    // As the model called it, where its own name is not one that every provider takes.
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
 * The tool's own error in every respect but two: it says what the model may be told, and LangChain makes a message of
 * it where no middleware does, as of every error that a model could do something about.
 */
function toFailure({ error, text }: Pick<CallFailed, 'error' | 'text'>, toolCall: ToolCall): Error {
  const own = error instanceof Error ? error : new Error(messageOf(error))
  const { '~brand': brand } = new ToolInvocationError(own, toolCall)
  const fields: Error = Object.create(Object.getPrototypeOf(own), {
    ...Object.getOwnPropertyDescriptors({ '~brand': brand, toolCall, toolError: own }),
    message: { value: text },
  })
  // The rest is read from the error itself: some getters, such as those of a DOMException, work on nothing else.
  const failure = new Proxy(fields, {
    get: (target, key): unknown => Reflect.get(Object.hasOwn(target, key) ? target : own, key),
    has: (target, key) => key in target || key in own,
  })
  failures.add(failure)
  return failure
}
