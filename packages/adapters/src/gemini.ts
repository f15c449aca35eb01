import type { Caller, ExposedTools, ExposeOptions, Gate, Step, View } from '@toolgate/core'
import { openProviderRun, type ProviderRunOptions } from './shared/provider-run.ts'

export type { ProviderRunOptions } from './shared/provider-run.ts'

/** A call as Gemini gives it: in a part, or in the response's `functionCalls`. */
export interface FunctionCall {
  readonly id?: string | undefined
  readonly name?: string | undefined
  readonly args?: Readonly<Record<string, unknown>> | undefined
}

/** The part that answers it, for the next content of the user. */
export interface FunctionResponsePart {
  functionResponse: { id?: string; name: string; response: { output: string } | { error: string } }
}

export interface GeminiRunOptions<Name extends string = string>
  extends ProviderRunOptions<Name>, Pick<ExposeOptions, 'schemas'> {}

export interface GeminiRequest {
  /** To be merged into the request's own `config`, where it has one. */
  config?: {
    tools: ExposedTools['gemini']
    /** With `mask`: the names of this step. */
    toolConfig?: { functionCallingConfig: { mode: never; allowedFunctionNames?: string[] } }
  }
}

/** One run of an agent whose loop is the host's own. */
export interface GeminiRun {
  /** Names the run in the audit. */
  readonly id: string
  readonly view: View
  /** The step under way, with its instructions, model and options. */
  readonly step: Step | undefined
  /**
   * Prepares the next step, and gives what to spread into its request. Availability and locks are those of now.
   *
   * @throws {UnknownToolError} for a name in `activeTools` that the catalog has never seen
   */
  next(): Promise<GeminiRequest>
  /** Takes a call of the model through the gate, and gives what answers it. Never throws for what the model did. */
  execute(call: FunctionCall): Promise<FunctionResponsePart>
}

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
  const run = await openProviderRun(gate, caller, 'gemini', options)
  return {
    id: run.id,
    view: run.view,
    get step() {
      return run.step
    },
    next: () => run.next(),
    async execute({ id, name = '', args }) {
      const { text, ok } = await run.call({ name, input: args, callId: id })
      const response = ok ? { output: text } : { error: text }
      return { functionResponse: { ...(id !== undefined && { id }), name, response } }
    },
  }
}
