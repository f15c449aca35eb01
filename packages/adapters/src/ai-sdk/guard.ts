import { type Caller, ConfigError, type Gate, type View } from '@toolgate/core'
import { isView, isViewOf, type Shape, shapeOf } from '@toolgate/core/internal'
import { checkGuardFor, RUN_KEYS } from '../shared/guard-options.ts'
import { createUnawaited } from '../shared/unawaited.ts'
import { createToolApproval } from './approval.ts'
import { createOnStart } from './given-tools.ts'
import type { AnyGate, Guarded, GuardedPromise, GuardOptions, ToolsOf } from './options.ts'
import { createPrepareStep } from './prepare-step.ts'
import { createRepair } from './repair.ts'
import { openLoopRun } from './run.ts'

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
  onCall: true,
  onWarning: true,
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
  const view = await viewOf(gate, callerOrView, options)
  const run = openLoopRun(gate, view, options)
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

async function viewOf(
  gate: AnyGate,
  callerOrView: Caller | View,
  { visibility, activeTools, app }: GuardOptions,
): Promise<View> {
  if (!isView(callerOrView)) {
    const isPlain = visibility === undefined && activeTools === undefined && app === undefined
    return isPlain ? gate.view(callerOrView) : gate.view(callerOrView, { visibility, activeTools, app })
  }
  if (!isViewOf(gate, callerOrView))
    throw new ConfigError(
      'guard.view',
      'is of another gate: give the view to the gate that made it, or to the gate that it is a fork of',
    )
  if (visibility !== undefined || app !== undefined)
    throw new ConfigError('guard', 'visibility and app are given when a view is made, and this view is already made')
  return activeTools === undefined ? callerOrView : callerOrView.narrow({ activeTools })
}
