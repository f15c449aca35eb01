import { type Approval, type Caller, type CallOutcome, ConfigError, type Gate, type View } from '@toolgate/core'
import {
  type CustomTarget,
  expose,
  type ExposedNames,
  type ExposeOptions,
  type ExposeTarget,
  type ExposeWarning,
  type Exposure,
} from '@toolgate/expose'
import { messageOf, outputText } from '@toolgate/values'
import { readModelJson } from './model-json.ts'
import { createSteps, type PrepareStep, type Step } from '@toolgate/core/steps'
import { RUN_KEYS, type RunOptions, viewFor } from './guard-options.ts'
import { failureText, isStream, lastOf } from './refused.ts'
import { createOnCall, createWarn, type GuardedCall, GuardedRun } from './runs.ts'
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

/** The fields of `ProviderRunOptions`, for other option shapes. */
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

/** One run whose loop the host runs, in the format of one provider. */
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

/** Converts a run to the format of a provider. */
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
    next: () => unawaited(run.next().then(({ exposure }) => exposure.request as Request)),
    execute,
  }
}

const unawaited = createUnawaited('run.next()', ['tools', 'config'])

/** The tools of a step, in the format of a provider or of a host's own target. */
type StepExposure = Omit<Exposure, 'target' | 'tools'> & { readonly tools: object }

/** A step, and its tools in the format of the run's target. */
interface PreparedStep {
  readonly step: Step
  readonly exposure: StepExposure
}

/** One run with any provider. */
export interface ProviderRun {
  readonly id: string
  /** The upper bound of what the run sees. */
  readonly view: View
  /** The current step; `undefined` before the first. */
  readonly step: Step | undefined
  /** Prepares the next step. */
  next(): Promise<PreparedStep>
  /** Passes one call of the model to the gate. Never throws for a mistake of the model. */
  call(call: ProviderCall): Promise<Answer>
  /** Asks a person to approve a call, and runs nothing. `undefined`: no approval is needed, so make the call. */
  requestApproval(call: ProviderCall): Promise<Answer | undefined>
}

/** A call as the model wrote it. */
export interface ProviderCall {
  readonly name: string
  readonly callId?: string | undefined
  /** The input, or its JSON text if the provider sends a text. */
  readonly input: unknown
  /** Cancels this call. The run's own signal cancels it, too. */
  readonly signal?: AbortSignal | undefined
  /** The framework's own options of the execution, for the tool. */
  readonly context?: unknown
}

/** The outcome of a call, for the model and for the loop. */
export interface Answer {
  /** The text for the model. */
  readonly text: string
  /** Whether the tool ran to its end. */
  readonly ok: boolean
  readonly status: CallOutcome['status']
  /** The output of the tool. For a stream: its last item. `undefined` unless `ok`. */
  readonly output: unknown
  /** The approval that the call waits for. */
  readonly approval: Approval | undefined
}

/** Opens a run for a loop that the host runs. */
export async function openProviderRun(
  gate: Gate,
  caller: Caller,
  target: ExposeTarget | CustomTarget,
  options: ProviderRunOptions & ExposeOptions = {},
): Promise<ProviderRun> {
  const view = await viewFor(gate, caller, options)
  const { prepareStep, instructions, state, context, runId, userWords, earlierResults } = options
  const steps = createSteps(view, { prepareStep, instructions, state, context })
  const warn = createWarn(options.onWarning)
  let current: PreparedStep | undefined
  const names: ExposedNames = {
    toId: (name) => current?.exposure.names.toId(name),
    toName: (tool) => current?.exposure.names.toName(tool),
  }
  const words = { userWords, earlierResults }
  const run = new GuardedRun({ gate, view, names, id: runId, words, onCall: createOnCall(options.onCall, warn) })
  const toCall = (call: ProviderCall): GuardedCall => toGuardedCall(call, current, options)

  return {
    id: run.id,
    view,
    get step() {
      return current?.step
    },
    async next() {
      const step = await steps.next({ facts: await run.facts() })
      const exposure = exposeStep(view, step.view, target, options)
      for (const warning of step.warnings) warn(warning)
      for (const warning of exposure.warnings) warn(describeWarning(warning))
      for (const error of exposure.errors) warn(describeError(error))
      return (current = { step, exposure })
    },
    async call(call) {
      const tool = names.toId(call.name) ?? call.name
      const outcome = await run.call(toCall(call))
      const answer = await toAnswer(outcome, call.name)
      steps.record({ tool, callId: outcome.callId, status: outcome.status })
      return answer
    },
    async requestApproval(call) {
      const asked = await run.requestApproval(toCall(call))
      return asked && toAnswer(asked, call.name)
    },
  }
}

function toGuardedCall(
  { name, input, callId, signal, context }: ProviderCall,
  current: PreparedStep | undefined,
  options: ProviderRunOptions,
): GuardedCall {
  if (!current) throw new ConfigError('run', 'call next() and send what it returns before you execute a call')
  const { step, exposure } = current
  const id = exposure.names.toId(name)
  const parsed = typeof input === 'string' ? parseJson(input) : { value: input }
  return {
    name,
    callId,
    ...('problem' in parsed
      ? { input: undefined, malformed: parsed.problem }
      : { input: id === undefined ? parsed.value : exposure.toInput(id, parsed.value) }),
    signal: signal && options.signal ? AbortSignal.any([signal, options.signal]) : (signal ?? options.signal),
    context,
    view: step.view,
    step: step.stepNumber,
    model: options.model,
  }
}

/**
 * Returns the tools of a step. With `mask` the list is that of the whole run, so that the provider's prompt cache keeps
 * hitting.
 */
function exposeStep(
  view: View,
  step: View,
  target: ExposeTarget | CustomTarget,
  { mode, strict, loaded, tokenizer, search, schemas }: ExposeOptions,
): StepExposure {
  const options = { mode, strict, loaded, tokenizer, search, schemas }
  if (typeof target === 'object') return expose(step, target, options)
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
    if (text.trim() === '') return { value: {} }
    const read = readModelJson(text)
    return 'problem' in read ? { problem: `the input ${read.problem}` } : read
  } catch (error) {
    return { problem: `the arguments are not JSON: ${messageOf(error)}` }
  }
}

/** Converts an outcome. A provider takes one answer, so a stream becomes its last item. */
async function toAnswer(outcome: CallOutcome, name: string): Promise<Answer> {
  const { status, text } = outcome
  const approval = status === 'waiting' ? outcome.approval : undefined
  if (status !== 'done') return { text, ok: false, status, output: undefined, approval }
  if (!isStream(outcome.output)) return { text, ok: true, status, output: outcome.output, approval }
  try {
    const output = await lastOf(outcome.output)
    return { text: outputText(output), ok: true, status, output, approval }
  } catch (error) {
    return { text: failureText(name, error), ok: false, status: 'failed', output: undefined, approval }
  }
}
