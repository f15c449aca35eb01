import type { Caller, Gate, View } from '@toolgate/core'
import { type CustomTarget, defineTarget } from '@toolgate/expose'
import { checkShape, type Shape, shapeOf } from '@toolgate/values'
import type { Step } from '@toolgate/core/steps'
import { checkGuardFor } from './shared/guard-options.ts'
import {
  type Answer,
  openProviderRun,
  PROVIDER_KEYS,
  type ProviderCall,
  type ProviderRunOptions,
} from './shared/provider-run.ts'

export type { GuardedCallEvent } from './shared/runs.ts'
export { resultsOf, type UserWords, userTextsOf } from './shared/user-words.ts'

/** A call as the model wrote it. */
export type RunCall = ProviderCall

/** The outcome of a call: `text` for the model, the rest for the adapter. */
export type RunAnswer = Answer

/** A tool as a run offers it without a `target`. */
export interface RunTool {
  /** The name that the model uses, which most providers accept: `web__search` for `web:search`. */
  readonly name: string
  /** The description. Empty if the tool has none. */
  readonly description: string
  /** A JSON Schema. */
  readonly inputSchema: object
}

export interface CreateRunOptions<Tool extends object = RunTool> extends Omit<ProviderRunOptions, 'mode' | 'loaded'> {
  /** The form of the offered tools, made with `defineTarget`. Default: {@link RunTool}. */
  readonly target?: CustomTarget<Tool> | undefined
}

/** A step of a run, with the tools to offer to the model in it. */
export interface RunStep<Tool extends object = RunTool> extends Step {
  readonly tools: readonly Tool[]
}

/** One run of an agent: what an adapter for a framework needs of a gate. */
export interface Run<Tool extends object = RunTool> {
  /** Names the run in the audit. */
  readonly id: string
  /** The upper bound of what the run sees. */
  readonly view: View
  /**
   * Prepares the next request to the model. Availability and locks are read again.
   *
   * @throws {UnknownToolError} for an unknown name in `activeTools`
   */
  next(): Promise<RunStep<Tool>>
  /**
   * Decides, counts, runs and records one call of the current step. Never throws for a mistake of the model: an unknown
   * name and a refusal are answers. With the status `waiting`, a person must approve: make the same call again
   * once they have decided.
   */
  call(call: RunCall): Promise<RunAnswer>
  /**
   * Requests approval for a call and runs nothing, for frameworks that ask before they run a tool. `undefined`: no
   * approval is needed, so make the call, which is then decided again.
   */
  requestApproval(call: RunCall): Promise<RunAnswer | undefined>
}

const { mode: _mode, loaded: _loaded, ...KEYS } = PROVIDER_KEYS
const SHAPE: Shape = shapeOf<CreateRunOptions>({ ...KEYS, target: true })
const CALL: Shape = shapeOf<RunCall>({ name: true, input: true, callId: true, signal: true, context: true }, 'field')

const PLAIN = defineTarget<RunTool>({
  name: 'run',
  shape: ({ name, description = '', input }) => ({ name, description, inputSchema: input }),
})

/**
 * Opens a run for an adapter of your own, in front of any framework.
 *
 * Offer `(await run.next()).tools` to the model in each step, and answer each of its calls with `run.call`. To end a
 * run, abort the option `signal`: calls under way are cancelled, and later ones do not run. Nothing has to be closed.
 *
 * @throws {ConfigError} for an invalid gate, for a missing caller and for an unknown option
 * @throws {ToolgateError} as {@link Gate.view} does
 * @example
 * const run = await createRun(gate, caller)
 * const { tools } = await run.next()
 * const { text } = await run.call({ name: 'search', input: { query: 'hinges' }, callId: 'call_1' })
 */
export async function createRun<Tool extends object = RunTool>(
  gate: Gate,
  caller: Caller,
  options: CreateRunOptions<Tool> = {},
): Promise<Run<Tool>> {
  checkGuardFor(gate, caller, options, SHAPE, 'createRun')
  const { target = PLAIN, ...others } = options
  const run = await openProviderRun(gate, caller, target, others)
  return {
    id: run.id,
    view: run.view,
    async next() {
      const { step, exposure } = await run.next()
      return { ...step, tools: exposure.tools as readonly Tool[] }
    },
    async call(call) {
      checkShape('call', call, CALL)
      return run.call(call)
    },
    async requestApproval(call) {
      checkShape('requestApproval', call, CALL)
      return run.requestApproval(call)
    },
  }
}
