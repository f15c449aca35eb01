import { type Caller, ConfigError, type Gate } from '@toolgate/core'
import type { ExposedTools, ExposeTarget } from '@toolgate/expose'
import { type Shape, shapeOf } from '@toolgate/values'
import { checkGuardFor } from './shared/guard-options.ts'
import {
  type GuardedLoop,
  openProviderRun,
  PROVIDER_KEYS,
  type ProviderRun,
  type ProviderRunOptions,
  toGuardedLoop,
} from './shared/provider-run.ts'

export type { GuardedLoop, ProviderRunOptions } from './shared/provider-run.ts'
export type { GuardedCallEvent } from './shared/runs.ts'

/** A function call in the output of the Responses API. */
export interface ResponsesCall {
  readonly type: 'function_call'
  readonly name: string
  readonly arguments: string
  readonly call_id: string
}

/** The input item that answers a call. */
export interface ResponsesOutput {
  type: 'function_call_output'
  call_id: string
  output: string
}

/** A function call among the `tool_calls` of a Chat Completions message. */
export interface ChatCall {
  readonly type: 'function'
  readonly id: string
  readonly function: { readonly name: string; readonly arguments: string }
}

/** The message that answers a call. */
export interface ChatOutput {
  role: 'tool'
  tool_call_id: string
  content: string
}

export interface OpenAIApis {
  responses: { call: ResponsesCall; output: ResponsesOutput; tools: ExposedTools['openai-responses'] }
  chat: { call: ChatCall; output: ChatOutput; tools: ExposedTools['openai-chat'] }
}
export type OpenAIApi = keyof OpenAIApis

export interface OpenAIRunOptions<Name extends string = string> extends ProviderRunOptions<Name> {
  /** The OpenAI interface that the requests are for. Default `responses`. */
  readonly api?: OpenAIApi | undefined
}

const SHAPE: Shape = shapeOf<OpenAIRunOptions>({ ...PROVIDER_KEYS, api: true })

/** The fields of a request that carry the tools. Empty if no tool is visible. */
export interface OpenAIRequest<Api extends OpenAIApi> {
  tools?: OpenAIApis[Api]['tools']
  /** Set with `mask`: the tools of this step. */
  tool_choice?: OpenAIToolChoice[Api]
}

interface OpenAIToolChoice {
  responses: 'none' | { type: 'allowed_tools'; mode: 'auto'; tools: { type: 'function'; name: string }[] }
  chat:
    | 'none'
    | {
        type: 'allowed_tools'
        allowed_tools: { mode: 'auto'; tools: { type: 'function'; function: { name: string } }[] }
      }
}

export type OpenAIRun<Api extends OpenAIApi> = GuardedLoop<
  OpenAIRequest<Api>,
  OpenAIApis[Api]['call'],
  OpenAIApis[Api]['output']
>

const TARGETS = { responses: 'openai-responses', chat: 'openai-chat' } as const

/**
 * Guards a loop over the plain `openai` SDK.
 *
 * @throws {ToolgateError} as {@link Gate.view} does
 * @example
 * const run = await guard(gate, caller)
 * const { output } = await client.responses.create({ model, input, ...(await run.next()) })
 * for (const call of output) if (call.type === 'function_call') input.push(call, await run.execute(call))
 */
export function guard(
  gate: Gate,
  caller: Caller,
  options?: OpenAIRunOptions & { readonly api?: 'responses' | undefined },
): Promise<OpenAIRun<'responses'>>
export function guard(
  gate: Gate,
  caller: Caller,
  options: OpenAIRunOptions & { readonly api: 'chat' },
): Promise<OpenAIRun<'chat'>>
export async function guard(gate: Gate, caller: Caller, options: OpenAIRunOptions = {}): Promise<OpenAIRun<OpenAIApi>> {
  checkGuardFor(gate, caller, options, SHAPE)
  const { api = 'responses' } = options
  const target = new Map<string, ExposeTarget>(Object.entries(TARGETS)).get(api)
  if (target === undefined) throw new ConfigError('api', `must be one of ${Object.keys(TARGETS).join(', ')}`)
  const run = await openProviderRun(gate, caller, target, options)
  // The API decides, not the call's `type`: servers that imitate OpenAI leave it out.
  return api === 'chat'
    ? toGuardedLoop(run, (call: ChatCall) => executeChat(run, call))
    : toGuardedLoop(run, (call: ResponsesCall) => executeResponses(run, call))
}

async function executeChat(run: ProviderRun, { id, function: called }: Partial<ChatCall>): Promise<ChatOutput> {
  const { text } = await run.call({ name: called?.name ?? '', input: called?.arguments, callId: id })
  return { role: 'tool', tool_call_id: id ?? '', content: text }
}

async function executeResponses(run: ProviderRun, call: ResponsesCall): Promise<ResponsesOutput> {
  const { name, arguments: input, call_id: callId } = call
  const { text } = await run.call({ name, input, callId })
  return { type: 'function_call_output', call_id: callId, output: text }
}
