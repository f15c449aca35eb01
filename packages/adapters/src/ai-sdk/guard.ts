import { type Caller, ConfigError, type Gate, type View } from '@toolgate/core'
import { createToolApproval } from './approval.ts'
import type { AnyGate, Guarded, GuardOptions, ToolsOf } from './options.ts'
import { createPrepareStep } from './prepare-step.ts'
import { createRepair } from './repair.ts'
import { openLoopRun } from './run.ts'

/**
 * Gives what one run of the AI SDK needs, to be spread into `generateText`, `streamText`, a `ToolLoopAgent` or what its
 * `prepareCall` gives.
 *
 * The model is sent what the caller sees and nothing else, and what it calls goes through the gate: that stands in the
 * tools' `execute`, so no option that comes after the spread can take it away.
 *
 * @throws {ToolgateError} as `gate.view` does
 * @example
 * await generateText({ model, prompt, ...(await guard(gate, caller)) })
 */
export async function guard<Name extends string, Native>(
  gate: Gate<Name, Native>,
  callerOrView: Caller | View<NoInfer<Name>>,
  options: GuardOptions<ToolsOf<Native>> = {},
): Promise<Guarded<ToolsOf<Native>>> {
  const loose = options as GuardOptions
  const view = await viewOf(gate, callerOrView, loose)
  const run = openLoopRun(gate, view, loose)
  const repairToolCall = createRepair(run)
  return {
    tools: run.tools,
    prepareStep: createPrepareStep(run),
    toolApproval: createToolApproval(run),
    repairToolCall,
    experimental_repairToolCall: repairToolCall,
  } as unknown as Guarded<ToolsOf<Native>>
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
  if (visibility !== undefined || app !== undefined)
    throw new ConfigError('guard', 'visibility and app are given when a view is made, and here it is made already')
  return activeTools === undefined ? callerOrView : callerOrView.narrow({ activeTools })
}

function isView(callerOrView: Caller | View): callerOrView is View {
  return typeof (callerOrView as Partial<View>).narrow === 'function'
}
