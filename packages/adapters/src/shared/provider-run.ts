import { type Caller, type CallOutcome, ConfigError, type Gate, type View } from '@toolgate/core'
import {
  expose,
  type ExposedNames,
  type ExposeOptions,
  type ExposeTarget,
  type ExposeWarning,
  type Exposure,
} from '@toolgate/core/expose'
import { messageOf, outputText } from '@toolgate/core/internal'
import { createSteps, type PrepareStep, type Step } from '@toolgate/core/steps'
import { RUN_KEYS, type RunOptions, viewFor } from './guard-options.ts'
import { failureText, isStream, lastOf } from './refused.ts'
import { createOnCall, createWarn, GuardedRun } from './runs.ts'
import { createUnawaited, type Unawaited } from './unawaited.ts'

/** The options of `guard` for a plain provider SDK, where the host runs the loop. */
export interface ProviderRunOptions<Name extends string = string>
  extends RunOptions<Name>, Pick<ExposeOptions, 'mode' | 'strict' | 'loaded' | 'tokenizer'> {
  /** Narrows and instructs each step; see the guide's page about steps. */
  readonly prepareStep?: PrepareStep | undefined
  readonly instructions?: string | undefined
  readonly state?: unknown
  readonly context?: unknown
  /** The provider's name of the model, for the audit. */
  readonly model?: string | undefined
  readonly signal?: AbortSignal | undefined
}

/** The fields of `ProviderRunOptions`, for the shapes of the providers. */
export const PROVIDER_KEYS = {
  ...RUN_KEYS,
  mode: true,
  strict: true,
  loaded: true,
  tokenizer: true,
  prepareStep: true,
  instructions: true,
  state: true,
  context: true,
  model: true,
  signal: true,
} as const satisfies Record<keyof ProviderRunOptions, true>

/** One run whose loop the host runs, in the shapes of one provider. */
export interface GuardedLoop<Request, Call, Answered> {
  /** Names the run in the audit. */
  readonly id: string
  readonly view: View
  /** The current step, with its instructions, model and options. */
  readonly step: Step | undefined
  /**
   * Prepares the next step, and returns the fields to spread into its request. Availability and locks are read again.
   *
   * @throws {UnknownToolError} for an unknown name in `activeTools`
   */
  next(): Unawaited<Request, 'tools' | 'config'>
  /** Passes a call of the model to the gate, and returns its answer. Never throws for a mistake of the model. */
  execute(call: Call): Promise<Answered>
}

/** Converts a run to the shapes of a provider. */
export function toGuardedLoop<Request, Call, Answered>(
  run: ProviderRun,
  execute: (call: Call) => Promise<Answered>,
): GuardedLoop<Request, Call, Answered> {
  return {
    id: run.id,
    view: run.view,
    get step() {
      return run.step
    },
    next: () => unawaited(run.next() as Promise<Request>),
    execute,
  }
}

const unawaited = createUnawaited('run.next()', ['tools', 'config'])

/** One run with any provider. */
export interface ProviderRun {
  readonly id: string
  /** The upper bound of what the run sees. */
  readonly view: View
  /** The current step; `undefined` before the first. */
  readonly step: Step | undefined
  /** Prepares the next step, and returns the fields of its request. */
  next(): Promise<Readonly<Record<string, unknown>>>
  /** Passes one call of the model to the gate. Never throws for a mistake of the model. */
  call(call: ProviderCall): Promise<Answer>
}

/** A call as the model wrote it. */
export interface ProviderCall {
  readonly name: string
  readonly callId: string | undefined
  /** The input, or its JSON if the provider sends a text. */
  readonly input: unknown
}

/** The text for the model, and whether the call succeeded. */
export interface Answer {
  readonly text: string
  readonly ok: boolean
}

/** Opens a run for a loop that the host runs. */
export async function openProviderRun(
  gate: Gate,
  caller: Caller,
  target: ExposeTarget,
  options: ProviderRunOptions & ExposeOptions = {},
): Promise<ProviderRun> {
  const view = await viewFor(gate, caller, options)
  const { prepareStep, instructions, state, context, runId } = options
  const steps = createSteps(view, { prepareStep, instructions, state, context })
  const warn = createWarn(options.onWarning)
  let step: Step | undefined
  let exposure: Exposure | undefined
  const names: ExposedNames = {
    toId: (name) => exposure?.names.toId(name),
    toName: (tool) => exposure?.names.toName(tool),
  }
  const run = new GuardedRun({ gate, view, names, id: runId, onCall: createOnCall(options.onCall, warn) })

  return {
    id: run.id,
    view,
    get step() {
      return step
    },
    async next() {
      step = await steps.next()
      exposure = exposeStep(view, step.view, target, options)
      for (const warning of step.warnings) warn(warning)
      for (const warning of exposure.warnings) warn(describeWarning(warning))
      for (const error of exposure.errors) warn(describeError(error))
      return exposure.request
    },
    async call({ name, callId, input }) {
      if (!step || !exposure)
        throw new ConfigError('run', 'call next() and send what it returns before you execute a call')
      const id = exposure.names.toId(name)
      const parsed = typeof input === 'string' ? parseJson(input) : { value: input }
      const outcome = await run.call({
        name,
        callId,
        ...('problem' in parsed
          ? { input: undefined, malformed: parsed.problem }
          : { input: id === undefined ? parsed.value : exposure.toInput(id, parsed.value) }),
        signal: options.signal,
        view: step.view,
        step: step.stepNumber,
        model: options.model,
      })
      const answer = await toAnswer(outcome, name)
      steps.record({ tool: id ?? name, callId: outcome.callId, status: outcome.status })
      return answer
    },
  }
}

/** With `mask`, the list is that of the whole run, so that the provider's cache keeps hitting. */
function exposeStep(
  view: View,
  step: View,
  target: ExposeTarget,
  { mode, strict, loaded, tokenizer, search, schemas }: ExposeOptions,
): Exposure {
  const options = { mode, strict, loaded, tokenizer, search, schemas }
  if (mode === 'mask') return expose(view.narrow({}), target, { ...options, step })
  return expose(step, target, options)
}

function describeWarning({ tool, path, feature, from, to, action }: ExposeWarning): string {
  return `${tool || 'the tools'}${path && ` at ${path}`}: ${feature} ${from} was ${action}${to === undefined ? '' : ` to ${to}`}`
}

function describeError({ tool, message }: { readonly tool: string; readonly message: string }): string {
  return `${tool} is not offered: it ${message}`
}

function parseJson(text: string): { readonly value: unknown } | { readonly problem: string } {
  try {
    // Providers write a call without arguments as an empty text.
    const value: unknown = text.trim() === '' ? {} : JSON.parse(text)
    return { value }
  } catch (error) {
    return { problem: `the arguments are not JSON: ${messageOf(error)}` }
  }
}

/** A provider takes one answer: the last item of a stream. */
async function toAnswer(outcome: CallOutcome, name: string): Promise<Answer> {
  const { status } = outcome
  if (status !== 'done' || !isStream(outcome.output)) return { text: outcome.text, ok: status === 'done' }
  try {
    return { text: outputText(await lastOf(outcome.output)), ok: true }
  } catch (error) {
    return { text: failureText(name, error), ok: false }
  }
}
