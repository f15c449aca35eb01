import type { Tool } from '@toolgate/core'
import { RefusedCall } from '../shared/refused.ts'
import { readArguments } from './input.ts'
import { Invocation } from './invocation.ts'
import type { AnyHandoff } from './sdk-types.ts'
import { isRestoring } from './restoring.ts'
import type { Runs } from './runs.ts'

/**
 * Gives a handoff that asks the gate. The SDK has no way to refuse one and go on: what is refused after it was offered
 * throws, and ends the run.
 */
export function guardHandoff(tool: Tool, own: AnyHandoff, runs: Runs): AnyHandoff {
  return own.clone({
    async isEnabled({ runContext, agent }) {
      if (!(await own.isEnabled({ runContext, agent }))) return false
      return isRestoring() || runs.sees(runContext, agent, tool.id)
    },
    async onInvokeHandoff(runContext, text) {
      const run = await runs.of(runContext)
      const context = new Invocation(runContext, undefined)
      const { input, malformed } = readArguments(text === '' ? '{}' : text)
      const outcome = await run.call({ name: own.toolName, input, malformed, context })
      if (outcome.status === 'done' && context.target) return context.target
      if (outcome.status === 'failed') throw outcome.error
      throw outcome.status === 'done' ? new TypeError('the handoff gave no agent') : new RefusedCall(outcome)
    },
  })
}
