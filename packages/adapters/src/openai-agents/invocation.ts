import type { AnyFunctionTool, AnyHandoff, AnyRunContext, CallDetails } from './sdk-types.ts'

/** What a guarded tool gives the gate with a call, for the tool that it guards. */
export class Invocation {
  readonly runContext: AnyRunContext
  readonly details: CallDetails
  /** What a handoff gave: an agent is no output that a gate could measure. */
  target: Awaited<ReturnType<AnyHandoff['onInvokeHandoff']>> | undefined
  /** What the tool threw past the SDK, which means it to end the run. */
  thrown: { readonly error: unknown } | undefined

  constructor(runContext: AnyRunContext, details: CallDetails) {
    this.runContext = runContext
    this.details = details
  }
}

/** A tool that threw, of which the SDK keeps the error to itself. */
export class SwallowedError extends Error {
  override readonly name = 'SwallowedError'
}

/** What the SDK tells the model of a tool that threw, unless the tool has an `errorFunction`; older ones add the error. */
const SDK_FAILURE = 'An error occurred while running the tool. Please try again.'

/**
 * Runs the SDK's own tool.
 *
 * @throws {SwallowedError} where the SDK has made a result of what the tool threw: the record should say that it failed
 */
export async function invokeNative(
  tool: AnyFunctionTool,
  text: string,
  given: Invocation,
  signal: AbortSignal,
): Promise<unknown> {
  const output = await invoke(tool, text, given, signal)
  if (typeof output === 'string' && output.startsWith(SDK_FAILURE)) throw new SwallowedError(output)
  return output
}

async function invoke(tool: AnyFunctionTool, text: string, given: Invocation, signal: AbortSignal): Promise<unknown> {
  const details = copyOf(given.details, signal)
  if (isAgentTool(tool)) endAtUnknownTools(details)
  try {
    return await tool.invoke(given.runContext, text, details)
  } catch (error) {
    given.thrown = { error }
    throw error
  }
}

/** An agent that is a tool tells of its run, which no other function tool does. */
export function isAgentTool(tool: AnyFunctionTool): boolean {
  return 'on' in tool && typeof tool.on === 'function'
}

/** A copy with all that the SDK has hidden in the details of a call, and the gate's signal. */
function copyOf(details: CallDetails, signal: AbortSignal): NonNullable<CallDetails> {
  const { signal: _, ...descriptors } = Object.getOwnPropertyDescriptors(details ?? {})
  return Object.assign(Object.create(Object.prototype, descriptors) as object, { signal })
}

/** Where the SDK keeps what a sub-agent's run takes over from the run that calls it. */
const INHERITED = Symbol.for('openai.agents.agentToolParentRunConfig')

/**
 * A sub-agent takes over that its run goes on after an unknown tool, and not who is told of it, so that nothing would
 * be recorded. Unless it was given both in `asTool({ runConfig })`, its run ends there, which leaves a trace.
 */
function endAtUnknownTools(details: object): void {
  const inherited: unknown = Reflect.get(details, INHERITED)
  if (typeof inherited !== 'object' || inherited === null) return
  Object.defineProperty(details, INHERITED, { value: { ...inherited, toolNotFoundBehavior: undefined } })
}
