import type { CallOutcome } from '@toolgate/core'
import { readModelJson } from '../shared/model-json.ts'
import { asSchema, type ToolSet } from 'ai'
import type { GuardOptions } from './options.ts'
import type { LoopRun } from './run.ts'

type Repair = NonNullable<GuardOptions['repairToolCall']>
type RepairOptions = Parameters<Repair>[0]
type ModelCall = RepairOptions['toolCall']

/**
 * Returns the SDK's `repairToolCall`. The SDK calls it for calls that it cannot read: a tool that was not sent, or
 * an input that is not valid.
 *
 * The SDK would refuse these without a record. Here they go to the gate first, which records them, and the SDK's error
 * gets the gate's text for the model.
 */
export function createRepair(run: LoopRun): Repair {
  const host = run.options.repairToolCall
  return async (options) => {
    const repaired = host ? await repair(run, host, options) : null
    if (repaired) return repaired
    const { text } = await refuse(run, options)
    return tell(options.error, text)
  }
}

/** Returns the call as the host repaired it, if the SDK can read it. The host is asked once. */
async function repair(run: LoopRun, host: Repair, options: RepairOptions): Promise<ModelCall | null> {
  try {
    const repaired = await host(options)
    return repaired && (await isReadable(repaired, options.tools)) ? repaired : null
  } catch (error) {
    run.warn(`repairToolCall failed: ${error instanceof Error ? error.message : String(error)}`)
    return null
  }
}

async function isReadable({ toolName, input }: ModelCall, tools: ToolSet): Promise<boolean> {
  if (!Object.hasOwn(tools, toolName)) return false
  const parsed = parseJson(input)
  if ('problem' in parsed) return false
  const { validate } = asSchema(tools[toolName]?.inputSchema)
  return validate === undefined || (await validate(parsed.value)).success
}

/** Refuses and records an invalid call. The tool never runs, even if the policy allows it. */
function refuse(run: LoopRun, { toolCall, tools, messages, abortSignal }: RepairOptions): Promise<CallOutcome> {
  const { toolName, toolCallId, input } = toolCall
  const parsed = parseJson(input)
  const call = { toolName, toolCallId, input: 'value' in parsed ? parsed.value : undefined, messages, abortSignal }
  if ('problem' in parsed) return run.call({ ...call, malformed: parsed.problem })
  if (!Object.hasOwn(tools, toolName)) return run.refuseUnsent(call)
  // The gate explains what is wrong with the input. If it finds nothing, the SDK still refuses.
  return run.refuse(call, 'AI SDK', 'the input is not valid')
}

/** Sets the text of the SDK's error, which the SDK shows the model. */
function tell(error: Error, text: string): null {
  Object.defineProperties(error, {
    message: { value: text, configurable: true, writable: true },
    toString: { value: () => text, configurable: true, writable: true },
  })
  return null
}

function parseJson(text: string): { readonly value: unknown } | { readonly problem: string } {
  if (text.trim() === '') return { value: {} }
  try {
    return readModelJson(text)
  } catch {
    return { problem: 'is not JSON' }
  }
}
