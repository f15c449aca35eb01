import * as sdk from 'ai'
import { RefusedCall } from '../shared/refused.ts'
import { hearLate, needsApproval } from './approval.ts'
import { GUARDED_BY } from './given-tools.ts'
import type { LoopCall, LoopRun } from './loop.ts'
import type { Offered } from './offering.ts'

type Execution = sdk.ToolExecutionOptions<unknown>

/** Before version 7 the SDK has no `toolApproval`, and asks its tools. Since then it would only make each tool dearer. */
const ASKS_TOOLS = !('isStepCount' in sdk)

/** Gives a tool as the SDK's loop gets it: what it runs goes through the gate. */
export function arm(run: LoopRun, offered: Offered, asksTools: boolean = ASKS_TOOLS): object {
  if (!offered.isEnforceable) return offered.definition
  const { definition, name, isGenerator } = offered
  const execute = isGenerator
    ? (input: unknown, execution: Execution) => stream(run, offered, input, execution)
    : (input: unknown, execution: Execution) => settleOnce(run, offered, input, execution)
  const tool = { ...definition, execute, [GUARDED_BY]: run.mark }
  return asksTools ? { ...tool, needsApproval: needsApproval(run, name) } : tool
}

async function settleOnce(run: LoopRun, offered: Offered, input: unknown, execution: Execution): Promise<unknown> {
  const output = await settle(run, offered, input, execution)
  if (!isStream(output)) return output
  // It comes too late to be passed on item by item: the SDK takes the last one for the output.
  let last: unknown
  for await (const item of output) last = item
  return last
}

async function* stream(run: LoopRun, offered: Offered, input: unknown, execution: Execution): AsyncGenerator {
  const output = await settle(run, offered, input, execution)
  if (isStream(output)) yield* output
  else yield output
}

/** The SDK tells the model what an error says of itself. */
async function settle(run: LoopRun, offered: Offered, input: unknown, execution: Execution): Promise<unknown> {
  const call = toCall(run, offered, input, execution)
  const outcome = (await hearLate(run, call, execution)) ?? (await run.call(call))
  if (outcome.status === 'done') return outcome.output
  if (outcome.status === 'failed' && execution.abortSignal?.aborted) throw outcome.error
  throw new RefusedCall(outcome)
}

function toCall({ options: { extend } }: LoopRun, { name }: Offered, input: unknown, execution: Execution): LoopCall {
  const { toolCallId, messages, abortSignal } = execution
  const context = extend ? { ...execution, ...extend(execution) } : execution
  return { toolName: name, toolCallId, input, messages, abortSignal, context }
}

function isStream(value: unknown): value is AsyncIterable<unknown> {
  return typeof value === 'object' && value !== null && Symbol.asyncIterator in value
}
