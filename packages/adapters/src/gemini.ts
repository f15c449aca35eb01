import type { Caller, Gate } from '@toolgate/core'
import type { ExposedTools, ExposeOptions } from '@toolgate/expose'
import { type Shape, shapeOf } from '@toolgate/values'
import { checkGuardFor } from './shared/guard-options.ts'
import {
  type GuardedLoop,
  openProviderRun,
  PROVIDER_KEYS,
  type ProviderRunOptions,
  toGuardedLoop,
} from './shared/provider-run.ts'

export type { GuardedLoop, ProviderRunOptions } from './shared/provider-run.ts'
export type { GuardedCallEvent } from './shared/runs.ts'

/** A function call of Gemini: in a part, or in the response's `functionCalls`. */
export interface FunctionCall {
  readonly id?: string | undefined
  readonly name?: string | undefined
  readonly args?: Readonly<Record<string, unknown>> | undefined
}

/** The part that answers a call, for the user's next content. */
export interface FunctionResponsePart {
  functionResponse: { id?: string; name: string; response: { output: string } | { error: string } }
}

export interface GeminiRunOptions<Name extends string = string>
  extends ProviderRunOptions<Name>, Pick<ExposeOptions, 'schemas'> {}

const SHAPE: Shape = shapeOf<GeminiRunOptions>({ ...PROVIDER_KEYS, schemas: true })

export interface GeminiRequest {
  /** The tools of the step. Merge it into the request's own `config` if it has one. */
  config?: {
    tools: ExposedTools['gemini']
    /** Set with `mask`: the names of this step's tools. */
    toolConfig?: { functionCallingConfig: { mode: never; allowedFunctionNames?: string[] } }
  }
}

export type GeminiRun = GuardedLoop<GeminiRequest, FunctionCall, FunctionResponsePart>

/**
 * Guards a loop over the plain `@google/genai` SDK.
 *
 * @throws {ToolgateError} as {@link Gate.view} does
 * @example
 * const run = await guard(gate, caller)
 * const { functionCalls = [] } = await ai.models.generateContent({ model, contents, ...(await run.next()) })
 * const parts = await Promise.all(functionCalls.map(run.execute))
 */
export async function guard(gate: Gate, caller: Caller, options: GeminiRunOptions = {}): Promise<GeminiRun> {
  checkGuardFor(gate, caller, options, SHAPE)
  const run = await openProviderRun(gate, caller, 'gemini', options)
  return toGuardedLoop(run, async ({ id, name = '', args }) => {
    const { text, ok } = await run.call({ name, input: args, callId: id })
    const response = ok ? { output: text } : { error: text }
    return { functionResponse: { ...(id !== undefined && { id }), name, response } }
  })
}
