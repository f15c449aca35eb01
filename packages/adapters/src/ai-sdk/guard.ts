import { type Caller, ConfigError, type Gate, type View } from '@toolgate/core'
import { isView, isViewOf, type Shape, shapeOf } from '@toolgate/core/internal'
import * as sdk from 'ai'
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
  extend: true,
  acceptUnenforceable: true,
})
const unawaited = createUnawaited('guard(gate, caller)', ['tools', 'prepareStep', 'toolApproval'])

/**
 * Gives what one run of the AI SDK needs, to be spread into `generateText`, `streamText`, a `ToolLoopAgent` or what its
 * `prepareCall` gives.
 *
 * The model is sent what the caller sees and nothing else, and what it calls goes through the gate: that stands in the
 * tools' `execute`. Await it before you spread it, and write no `tools` after the spread: both are errors.
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
    // By its older name, so that an `onStart` of the host's is the one that the SDK calls.
    experimental_onStart: createOnStart(run),
  }
}

function narrowed(gate: AnyGate, view: View, { visibility, activeTools, app }: GuardOptions): View {
  if (!isViewOf(gate, view))
    throw new ConfigError(
      'guard.view',
      'is of another gate: give the view to the gate that made it, or to the gate that it is a fork of',
    )
  if (visibility !== undefined || app !== undefined)
    throw new ConfigError('guard', 'visibility and app are given when a view is made, and this view is already made')
  return activeTools === undefined ? view : view.narrow({ activeTools })
}

type Execution = sdk.ToolExecutionOptions<unknown>

/** Before version 7 the SDK has no `toolApproval`, and asks its tools. Since then it would only make each tool dearer. */
const ASKS_TOOLS = !('isStepCount' in sdk)

/** Gives a tool as the SDK's loop gets it: what it runs goes through the gate. */
export function wrapExecute(run: LoopRun, offered: WireTool, asksTools: boolean = ASKS_TOOLS): object {
  if (!offered.isEnforceable) return offered.definition
  const { definition, name, isGenerator } = offered
  const execute = isGenerator
    ? (input: unknown, execution: Execution) => stream(run, offered, input, execution)
    : (input: unknown, execution: Execution) => settleOnce(run, offered, input, execution)
  const tool = { ...definition, execute, [GUARDED_BY]: run.mark }
  return asksTools ? { ...tool, needsApproval: needsApproval(run, name) } : tool
}

async function settleOnce(run: LoopRun, offered: WireTool, input: unknown, execution: Execution): Promise<unknown> {
  const output = await settle(run, offered, input, execution)
  // It is too late to pass a stream on item by item: the SDK takes its last item.
  return isStream(output) ? lastOf(output) : output
}

async function* stream(run: LoopRun, offered: WireTool, input: unknown, execution: Execution): AsyncGenerator {
  const output = await settle(run, offered, input, execution)
  if (isStream(output)) yield* output
  else yield output
}

/** The SDK tells the model what an error says of itself. */
async function settle(run: LoopRun, offered: WireTool, input: unknown, execution: Execution): Promise<unknown> {
  const call = toCall(run, offered, input, execution)
  const outcome = (await askHostLate(run, call, execution)) ?? (await run.call(call))
  if (outcome.status === 'done') return outcome.output
  if (outcome.status === 'failed' && execution.abortSignal?.aborted) throw outcome.error
  throw new RefusedCall(outcome)
}

function toCall({ options: { extend } }: LoopRun, { name }: WireTool, input: unknown, execution: Execution): LoopCall {
  const { toolCallId, messages, abortSignal } = execution
  const context = extend ? { ...execution, ...extend(execution) } : execution
  return { toolName: name, toolCallId, input, messages, abortSignal, context }
}
