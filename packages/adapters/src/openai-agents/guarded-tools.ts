import {
  defineToolInputGuardrail,
  ToolGuardrailFunctionOutputFactory,
  type ToolInputGuardrailDefinition,
} from '@openai/agents'
import type { CallDone, CallOutcome, Tool } from '@toolgate/core'
import { copyWith } from '../shared/fields.ts'
import { RefusedCall } from '../shared/refused.ts'
import { Invocation, isHandoff, nativeOf, SwallowedError, toolNameOf } from './import-tools.ts'
import type { AgentRuns } from './runs.ts'
import { type AnyFunctionTool, type AnyHandoff, isRestoring, readArguments } from './sdk.ts'

/**
 * Returns a function tool that asks the gate first. The SDK lists it, asks it for approvals and calls it. It calls the
 * original tool only through the gate.
 */
export function guardTool(tool: Tool, runs: AgentRuns): AnyFunctionTool {
  const native = nativeOf(tool)
  const own = native && !isHandoff(native) ? native : ownTool(tool)
  const name = toolNameOf(tool)
  const guardrails = (own.inputGuardrails ?? []).map((guardrail) => recorded(guardrail, name, runs))
  // The copy keeps the fields that the SDK hides under symbols, such as a namespace and the check of the output.
  const changes: Pick<AnyFunctionTool, 'isEnabled' | 'needsApproval' | 'inputGuardrails' | 'invoke'> = {
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
  }
  return copyWith(own, changes)
}

/** A tool that was defined for the gate, as a tool of the SDK. */
function ownTool(tool: Tool): AnyFunctionTool {
  return {
    type: 'function',
    name: toolNameOf(tool),
    description: tool.description,
    parameters: objectSchema(structuredClone(tool.inputSchema)),
    strict: false,
    isEnabled: () => Promise.resolve(true),
    needsApproval: () => Promise.resolve(false),
    invoke: () => Promise.reject(new TypeError('it runs through the gate only')),
  }
}

/** Casts an input schema: the SDK's type is narrower than the gate's. */
function objectSchema(schema: object): AnyFunctionTool['parameters'] {
  return schema as AnyFunctionTool['parameters']
}

function keyOf(callId: string | undefined, input: unknown): string {
  return JSON.stringify([callId, input])
}

/**
 * Returns a handoff that asks the gate. The SDK cannot refuse a handoff and continue: a refusal after the offer throws
 * and ends the run.
 */
export function guardHandoff(tool: Tool, own: AnyHandoff, runs: AgentRuns): AnyHandoff {
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
      throw outcome.status === 'done' ? new TypeError('the handoff returned no agent') : new RefusedCall(outcome)
    },
  })
}

type OwnErrors = Pick<AnyFunctionTool, 'errorFunction' | 'outputSchema'>

/** Returns a tool's result for the SDK. @throws the tool's own error, if the tool's errors end the run */
async function toResult(own: OwnErrors, outcome: CallOutcome, context: Invocation): Promise<unknown> {
  if (outcome.status === 'done') return outcome.output
  const { signal } = context.details ?? {}
  if (signal?.aborted) throw signal.reason
  if (outcome.status === 'failed' && outcome.error instanceof SwallowedError) return outcome.error.message
  if (outcome.status === 'failed' && context.thrown) throw context.thrown.error
  return toldBy(own, outcome, context)
}

/** Returns the outcome's text. A tool with an output schema converts the text with its own `errorFunction`. */
async function toldBy(
  { errorFunction, outputSchema }: OwnErrors,
  outcome: Exclude<CallOutcome, CallDone>,
  { runContext, details }: Invocation,
): Promise<unknown> {
  if (!outputSchema || !errorFunction) return outcome.text
  return errorFunction(runContext, new RefusedCall(outcome), details)
}

type AnyGuardrail = ToolInputGuardrailDefinition
const { allow, rejectContent } = ToolGuardrailFunctionOutputFactory

/**
 * Refuses and records a call whose arguments are not a JSON object.
 *
 * The SDK would ask a person to approve such a call, because it cannot call `needsApproval` for it. With
 * `toolExecution.preApprovalInputGuardrails` it runs this guardrail first.
 */
function refuseMalformed(name: string, runs: AgentRuns): AnyGuardrail {
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

/** Wraps a guardrail of the tool, so that its refusals are recorded. */
function recorded(guardrail: AnyGuardrail, name: string, runs: AgentRuns): AnyGuardrail {
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
