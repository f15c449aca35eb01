import { type Caller, ConfigError, type Gate, type View } from '@toolgate/core'
import { isView, isViewOf } from '@toolgate/core/call'
import { type Shape, shapeOf } from '@toolgate/values'
import type { ToolExecutionOptions } from 'ai'
import { checkGuardFor, RUN_KEYS, viewFor } from '../shared/guard-options.ts'
import { isStream, lastOf, RefusedCall } from '../shared/refused.ts'
import { createUnawaited } from '../shared/unawaited.ts'
import { askHostLate, createToolApproval, needsApproval } from './approval.ts'
import { createOnStart, GUARDED_BY } from './given-tools.ts'
import type { WireTool } from './offering.ts'
import type { AnyGate, Guarded, GuardedPromise, GuardOptions, ToolsOf } from './options.ts'
import { createPrepareStep } from './prepare-step.ts'
import { createRepair } from './repair.ts'
import { type LoopCall, LoopRun } from './run.ts'

const SHAPE: Shape = shapeOf<GuardOptions>({
  ...RUN_KEYS,
  prepareStep: true,
  toolApproval: true,
  approvals: true,
  repairToolCall: true,
  mode: true,
  provider: true,
  hooks: true,
  resumed: true,
  extend: true,
  acceptUnenforceable: true,
})
const unawaited = createUnawaited('guard(gate, caller)', ['tools', 'prepareStep', 'toolApproval'])

/**
 * Returns the options of one AI SDK run. Spread them into `generateText`, `streamText`, a `ToolLoopAgent` or the result
 * of its `prepareCall`.
 *
 * The model gets the tools that the caller sees, and nothing else. Each tool's `execute` passes the call to the gate.
 * Await it before you spread it, and write no `tools` after the spread: both are errors.
 *
 * @throws {ToolgateError} as `gate.view` does
 * @throws {ConfigError} for an unknown option, and for a view of another gate
 * @example
 * await generateText({ model, prompt, ...(await guard(gate, caller)) })
 */
export function guard<Name extends string, Native>(
  gate: Gate<Name, Native>,
  callerOrView: Caller | View<NoInfer<Name>>,
  options: GuardOptions<ToolsOf<Native>> = {},
): GuardedPromise<ToolsOf<Native>> {
  const opening = open(gate, callerOrView, options as GuardOptions) as unknown as Promise<Guarded<ToolsOf<Native>>>
  return unawaited(opening)
}

async function open(gate: AnyGate, callerOrView: Caller | View, options: GuardOptions): Promise<object> {
  checkGuardFor(gate, callerOrView, options, SHAPE)
  const view = isView(callerOrView) ? narrowed(gate, callerOrView, options) : await viewFor(gate, callerOrView, options)
  const run = new LoopRun({ gate, view, options, wrap: wrapExecute })
  const repairToolCall = createRepair(run)
  return {
    tools: run.tools,
    prepareStep: createPrepareStep(run),
    toolApproval: createToolApproval(run),
    repairToolCall,
    experimental_repairToolCall: repairToolCall,
    // The older name of this option lets the SDK also call the host's own `onStart`.
    experimental_onStart: createOnStart(run),
  }
}

function narrowed(gate: AnyGate, view: View, { visibility, activeTools, app }: GuardOptions): View {
  if (!isViewOf(gate, view))
    throw new ConfigError(
      'guard.view',
      'is of another gate: pass the view to the gate that made it, or to the gate that it is a fork of',
    )
  if (visibility !== undefined || app !== undefined)
    throw new ConfigError('guard', 'visibility and app are set when a view is made, and this view already exists')
  return activeTools === undefined ? view : view.narrow({ activeTools })
}

type SdkExecution = ToolExecutionOptions<unknown>

/**
 * Returns a tool for the SDK's loop. Its `execute` passes the call to the gate.
 *
 * Version 6 and `WorkflowAgent` ask each tool for `needsApproval`. Version 7 asks it only if nothing answers
 * `toolApproval` for the call.
 */
export function wrapExecute(run: LoopRun, offered: WireTool): object {
  if (!offered.isEnforceable) return offered.definition
  const { definition, name, isGenerator } = offered
  const execute = isGenerator
    ? (input: unknown, execution: SdkExecution) => stream(run, offered, input, execution)
    : (input: unknown, execution: SdkExecution) => settleOnce(run, offered, input, execution)
  return { ...definition, execute, needsApproval: needsApproval(run, name), [GUARDED_BY]: run.mark }
}

async function settleOnce(run: LoopRun, offered: WireTool, input: unknown, execution: SdkExecution): Promise<unknown> {
  const output = await settle(run, offered, input, execution)
  // The SDK needs a stream before `execute` resolves, so a late stream becomes its last item, as in the SDK.
  return isStream(output) ? lastOf(output) : output
}

async function* stream(run: LoopRun, offered: WireTool, input: unknown, execution: SdkExecution): AsyncGenerator {
  const output = await settle(run, offered, input, execution)
  if (isStream(output)) yield* output
  else yield output
}

/** Converts an outcome to a result or an error. The SDK shows the model the error's text. */
async function settle(run: LoopRun, offered: WireTool, input: unknown, execution: SdkExecution): Promise<unknown> {
  const call = toCall(run, offered, input, execution)
  const outcome = (await askHostLate(run, call, execution)) ?? (await run.call(call))
  if (outcome.status === 'done') return outcome.output
  if (outcome.status === 'failed' && execution.abortSignal?.aborted) throw outcome.error
  throw new RefusedCall(outcome)
}

function toCall(
  { options: { extend } }: LoopRun,
  { name }: WireTool,
  input: unknown,
  execution: SdkExecution,
): LoopCall {
  const { toolCallId, messages, abortSignal } = execution
  const context = extend ? { ...execution, ...extend(execution) } : execution
  return { toolName: name, toolCallId, input, messages, abortSignal, context }
}
