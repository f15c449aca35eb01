import { ConfigError } from '@toolgate/core'
import { toWireName } from '@toolgate/expose'
import { fieldsOf } from '../shared/fields.ts'
import type { LoopRun } from './run.ts'

/**
 * Checks which tools the SDK got. An option written after the spread replaces the guard's, so `tools` may be the host's
 * own, which bypass the gate.
 */

/** The SDK's event at the start of `generateText` or `streamText`. */
interface StartEvent {
  readonly tools?: Readonly<Record<string, unknown>> | undefined
  /** The same array that each `prepareStep` gets. */
  readonly messages?: readonly unknown[] | undefined
}

/** Marks each guarded tool with its run. A spread copies the mark, so copies made by hosts and the SDK have it too. */
export const GUARDED_BY: unique symbol = Symbol('toolgate')

/** Whether the SDK runs this tool through this run's gate, or another process runs it. */
function isGuarded(run: LoopRun, name: string, tool: unknown): boolean {
  const { [GUARDED_BY]: mark, execute } = fieldsOf(tool)
  if (mark !== undefined) return mark === run.mark
  return execute === undefined && run.offered(name)?.isEnforceable === false
}

/** Returns a listener that remembers what is wrong with the tools of an SDK call, for {@link checkGivenTools}. */
export function createOnStart(run: LoopRun): (event: StartEvent) => void {
  return ({ tools, messages }) => {
    if (messages === undefined || tools === run.tools) return
    const problem = problemOf(run, tools ?? {})
    if (problem !== undefined) run.spoiled.set(messages, problem)
  }
}

/** @throws {ConfigError} if the tools of the call are not the guard's. The step then sends nothing. */
export function checkGivenTools(run: LoopRun, initialMessages: readonly unknown[] | undefined): void {
  const problem = initialMessages && run.spoiled.get(initialMessages)
  if (problem !== undefined) throw new ConfigError('tools', problem)
}

/** Whether a tool has the name of one of the gate's tools but bypasses the gate. */
export function isImpostor(run: LoopRun, name: string, tools: Readonly<Record<string, unknown>> | undefined): boolean {
  if (!tools || !Object.hasOwn(tools, name)) return false
  return !isGuarded(run, name, tools[name]) && isKnown(run, name)
}

function problemOf(run: LoopRun, tools: Readonly<Record<string, unknown>>): string | undefined {
  const names = Object.keys(tools)
  const impostors = names.filter((name) => isImpostor(run, name, tools))
  if (impostors.length > 0) return `${list(impostors)} would run past the gate. ${REPLACED}`
  // The host may add its own tools beside the guard's, but not replace them.
  const offered = Object.keys(run.tools)
  if (offered.length > 0 && names.length > 0 && !names.some((name) => isGuarded(run, name, tools[name])))
    return `${list(names)} stand in the place of the guard's. ${REPLACED}`
  return undefined
}

const REPLACED =
  'Write no `tools` after ...(await guard(…)); to add tools of your own, write `tools: { ...guarded.tools, mine }`'

function list(names: readonly string[]): string {
  return names.map((name) => `"${name}"`).join(', ')
}

function isKnown(run: LoopRun, name: string): boolean {
  if (run.offered(name)) return true
  const { tools } = run.gate.catalog.snapshot()
  return tools.some((tool) => tool.id === name || toWireName(tool) === name)
}
