import {
  defineToolInputGuardrail,
  ToolGuardrailFunctionOutputFactory,
  type ToolInputGuardrailDefinition,
} from '@openai/agents'
import { readArguments } from './input.ts'
import type { Runs } from './runs.ts'

type AnyGuardrail = ToolInputGuardrailDefinition
const { allow, rejectContent } = ToolGuardrailFunctionOutputFactory

/**
 * Refuses a call whose arguments are no JSON object, with a record and the gate's words.
 *
 * The SDK would have a person approve such a call, as it cannot ask `needsApproval` about it; with
 * `toolExecution.preApprovalInputGuardrails` it asks here first.
 */
export function refuseMalformed(name: string, runs: Runs): AnyGuardrail {
  return defineToolInputGuardrail({
    name: 'toolgate',
    async run({ context, toolCall }) {
      const { malformed } = readArguments(toolCall.arguments)
      if (malformed === undefined) return allow()
      const run = await runs.of(context)
      const outcome = await run.call({ name, input: undefined, malformed, callId: toolCall.callId })
      return rejectContent(outcome.text)
    },
  })
}

/** A guardrail of the tool's own, whose refusals leave a record like the gate's. */
export function recorded(guardrail: AnyGuardrail, name: string, runs: Runs): AnyGuardrail {
  return {
    ...guardrail,
    async run(data) {
      const answer = await guardrail.run(data)
      if (answer.behavior.type === 'allow') return answer
      const { input, malformed } = readArguments(data.toolCall.arguments)
      const reason = `guardrail ${guardrail.name}`
      const hooks = { beforeToolCall: () => ({ allow: false, reason }) }
      const run = await runs.of(data.context)
      await run.call({ name, input, malformed, callId: data.toolCall.callId, hooks })
      return answer
    },
  }
}
