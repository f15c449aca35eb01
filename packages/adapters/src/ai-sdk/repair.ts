import type { CallOutcome } from '@toolgate/core'
import { asSchema, type ToolSet } from 'ai'
import type { GuardOptions } from './options.ts'
import type { LoopRun } from './run.ts'

type Repair = NonNullable<GuardOptions['repairToolCall']>
type RepairOptions = Parameters<Repair>[0]
type ModelCall = RepairOptions['toolCall']

/**
 * Gives the SDK's `repairToolCall`, which it asks about what the model calls and it cannot read: a name that was not
 * sent, an input that is none.
 *
 * It refuses these by itself, and tells nobody. Here they go to the gate first, so that they leave their record, and
 * the model is told the gate's text, by the very error that the SDK has made.
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

/** What the host makes of a call, if the SDK can read that; it is not asked twice. */
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

/** Nothing runs: a call that is wrong in itself is refused, whatever the gate thinks of its tool. */
function refuse(run: LoopRun, { toolCall, tools, messages, abortSignal }: RepairOptions): Promise<CallOutcome> {
  const { toolName, toolCallId, input } = toolCall
  const parsed = parseJson(input)
  const call = { toolName, toolCallId, input: 'value' in parsed ? parsed.value : undefined, messages, abortSignal }
  if ('problem' in parsed) return run.call({ ...call, malformed: parsed.problem })
  if (!Object.hasOwn(tools, toolName)) return run.refuseUnsent(call)
  // The gate says what is wrong with the input; should it find nothing, the SDK still does.
  return run.refuse(call, 'AI SDK', 'the input is not valid')
}

/** The SDK gives the model what its error says of itself. */
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
    const value: unknown = JSON.parse(text)
    return { value }
  } catch {
    return { problem: 'is not JSON' }
  }
}
