import type { RunConfig, ToolErrorFormatter } from '@openai/agents'
import type { CallOutcome } from '@toolgate/core'
import type { Runs } from './runs.ts'

/** What a run needs so that the model is told of refusals and goes on. It takes nothing from what the gate enforces. */
export type GuardedRunConfig = Required<
  Pick<RunConfig, 'toolNotFoundBehavior' | 'toolErrorFormatter' | 'toolExecution'>
>

/** Gives it, for `new Runner(…)` and as options of `run`. */
export function createRunConfig(runs: Runs, ownFormatter: ToolErrorFormatter | undefined): GuardedRunConfig {
  return {
    toolNotFoundBehavior: 'return_error_to_model',
    toolExecution: { preApprovalInputGuardrails: true },
    async toolErrorFormatter(args) {
      const { kind, toolType, toolName: name, callId, runContext, defaultMessage } = args
      if (toolType !== 'function') return ownFormatter?.(args)
      const run = await runs.of(runContext)
      const malformed = kind === 'tool_not_found' ? defaultMessage : 'was rejected before the call'
      const outcome = await run.call({ name, input: undefined, malformed, callId })
      if (kind === 'tool_not_found' && !isSeen(outcome)) return outcome.text
      return ownFormatter?.(args)
    },
  }
}

/** Whether the gate would have let the model have the tool: then only the SDK can say what is wrong with the call. */
function isSeen(outcome: CallOutcome): boolean {
  return outcome.status === 'refused' && outcome.decision.reasons[0]?.code === 'input_invalid'
}
