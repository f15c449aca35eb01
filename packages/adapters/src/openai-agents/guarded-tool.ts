import type { Tool } from '@toolgate/core'
import { recorded, refuseMalformed } from './guardrails.ts'
import { readArguments } from './input.ts'
import { toolNameOf } from './names.ts'
import { Invocation } from './invocation.ts'
import { isHandoff, nativeOf } from './natives.ts'
import type { AnyFunctionTool } from './sdk-types.ts'
import { isRestoring } from './restoring.ts'
import { toldBy, toResult } from './results.ts'
import type { Runs } from './runs.ts'

/**
 * Gives a function tool that asks the gate before it does anything. It is what the SDK lists, asks for approvals and
 * calls, and reaches the tool that it guards through the gate only.
 */
export function guardTool(tool: Tool, runs: Runs): AnyFunctionTool {
  const native = nativeOf(tool)
  const own = native && !isHandoff(native) ? native : ownTool(tool)
  const name = toolNameOf(tool)
  const guardrails = (own.inputGuardrails ?? []).map((guardrail) => recorded(guardrail, name, runs))
  return copyOf(own, {
    async isEnabled(runContext, agent) {
      if (!(await own.isEnabled(runContext, agent))) return false
      return isRestoring() || runs.sees(runContext, agent, tool.id)
    },
    async needsApproval(runContext, input, callId) {
      const run = await runs.of(runContext)
      const asked = await run.requestApproval({ name, input, callId })
      if (asked?.status === 'refused') run.keepRefusal(keyOf(callId, input), asked)
      if (asked) return asked.status === 'waiting'
      return own.needsApproval(runContext, input, callId)
    },
    inputGuardrails: [refuseMalformed(name, runs), ...guardrails],
    async invoke(runContext, text, details) {
      const run = await runs.of(runContext)
      const callId = details?.toolCall?.callId
      const { input, malformed } = readArguments(text)
      const context = new Invocation(runContext, details)
      const refused = run.takeRefusal(keyOf(callId, input))
      if (refused) return toldBy(own, refused, context)
      const signal = details?.signal
      const outcome = await run.call({ name, input, malformed, callId, signal, context })
      return toResult(own, outcome, context)
    },
  })
}

/** A tool that was defined for the gate, as the SDK takes one. */
function ownTool(tool: Tool): AnyFunctionTool {
  return {
    type: 'function',
    name: toolNameOf(tool),
    description: tool.description,
    parameters: structuredClone(tool.inputSchema) as AnyFunctionTool['parameters'],
    strict: false,
    isEnabled: () => Promise.resolve(true),
    needsApproval: () => Promise.resolve(false),
    invoke: () => Promise.reject(new TypeError('it runs through the gate only')),
  }
}

/** Keeps what the SDK has hidden under symbols, such as a namespace and the check of the output. */
function copyOf(tool: AnyFunctionTool, changes: Partial<AnyFunctionTool>): AnyFunctionTool {
  const copy = Object.create(Object.prototype, Object.getOwnPropertyDescriptors(tool)) as AnyFunctionTool
  return Object.assign(copy, changes)
}

function keyOf(callId: string | undefined, input: unknown): string {
  return JSON.stringify([callId, input])
}
