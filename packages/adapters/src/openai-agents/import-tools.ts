import { Handoff, RunContext } from '@openai/agents'
import { type CallContext, ConfigError, type Tool } from '@toolgate/core'
import { type ExposedNames, toWireName } from '@toolgate/core/expose'
import type { NativeToolRecord, UnnamedToolDefinition } from '@toolgate/core/internal'
import { copyWith, fieldsOf } from '../shared/fields.ts'
import { type Overlay, toNativeRecord } from '../shared/overlay.ts'
import type { AnyFunctionTool, AnyHandoff, AnyRunContext, CallDetails, Governable } from './sdk.ts'

/**
 * Gives function tools and handoffs as a gate takes them, with what the overlay says of each. Their ids are their
 * names; a tool of a `toolNamespace` is `namespace:name`.
 *
 * As a record, by their ids, the compiler knows the ids.
 *
 * @throws {ConfigError} for hosted, computer, shell and patch tools, which no gate can govern; for two of one name, and
 * for a key that is not the id
 * @example
 * const gate = createGate({ tools: fromOpenAIAgents([search, remove], { remove: { tags: ['danger'] } }) })
 */
export function fromOpenAIAgents(
  tools: readonly Governable[],
  overlay?: Overlay,
): NativeToolRecord<Record<string, Governable>>
export function fromOpenAIAgents<Native extends Readonly<Record<string, Governable>>>(
  tools: Native,
  overlay?: Overlay<keyof Native & string>,
): NativeToolRecord<Native>
export function fromOpenAIAgents(
  tools: readonly Governable[] | Readonly<Record<string, Governable>>,
  overlay?: Overlay,
): NativeToolRecord<Record<string, Governable>> {
  const definitions = new Map<string, UnnamedToolDefinition>()
  for (const [key, native] of entriesOf(tools)) {
    const { id, definition } = toDefinition(native)
    if (key !== undefined && key !== id) throw new ConfigError(`tools.${key}`, `the tool's name is "${id}"`)
    if (definitions.has(id)) throw new ConfigError(`tools.${id}`, 'there are two tools of this name')
    definitions.set(id, definition)
  }
  return toNativeRecord(definitions, overlay)
}

function entriesOf(
  tools: readonly Governable[] | Readonly<Record<string, Governable>>,
): readonly (readonly [string | undefined, unknown])[] {
  return isList(tools) ? tools.map((tool) => [undefined, tool]) : Object.entries(tools)
}

function isList<T>(tools: readonly T[] | Readonly<Record<string, T>>): tools is readonly T[] {
  return Array.isArray(tools)
}

/** The SDK's own objects, by what the gate's tools execute. */
const natives = new WeakMap<object, Governable>()

/** Gives the SDK's own object that a tool of a gate was brought in from. */
export function nativeOf(tool: { readonly execute: unknown }): Governable | undefined {
  return typeof tool.execute === 'function' ? natives.get(tool.execute) : undefined
}

export function isHandoff(native: unknown): native is AnyHandoff {
  return native instanceof Handoff
}

/** @throws {ConfigError} for what the SDK does not run in this process */
function toDefinition(native: unknown): { readonly id: string; readonly definition: UnnamedToolDefinition } {
  if (isHandoff(native)) return { id: native.toolName, definition: handoffDefinition(native) }
  if (isFunctionTool(native)) return { id: toId(native), definition: functionDefinition(native) }
  const name = nameOf(native)
  throw new ConfigError(
    `tools.${name}`,
    `"${name}" is no function tool: the SDK cannot hide it from a run, and no gate stands where it runs; ` +
      'if everybody may use it, give it to guard as `ungoverned`',
  )
}

/** Function tools of a namespace are `namespace:name`. */
function toId(tool: AnyFunctionTool): string {
  const namespace = namespaceOf(tool)
  return namespace === undefined ? tool.name : `${namespace}:${tool.name}`
}

/** Gives the name by which the SDK looks a tool up. */
function sdkNameOf(native: Governable): string {
  if (isHandoff(native)) return native.toolName
  const namespace = namespaceOf(native)
  return namespace === undefined ? native.name : `${namespace}.${native.name}`
}

/** So much later than the SDK's own timer, which has its own words for it. */
const AFTER_SDK_MS = 1000

/** The calls of an agent's own run have deadlines of their own. */
function deadlineOf(tool: AnyFunctionTool): number | undefined {
  if (isAgentTool(tool)) return Infinity
  return tool.timeoutMs === undefined ? undefined : tool.timeoutMs + AFTER_SDK_MS
}

function functionDefinition(tool: AnyFunctionTool): UnnamedToolDefinition {
  const execute = (input: unknown, call: CallContext): Promise<unknown> => {
    const given = call.context instanceof Invocation ? call.context : new Invocation(new RunContext(), undefined)
    return invokeNative(tool, JSON.stringify(input), given, call.signal)
  }
  natives.set(execute, tool)
  const { description, parameters } = tool
  return { description, inputSchema: fieldsOf(parameters), deadlineMs: deadlineOf(tool), execute }
}

function handoffDefinition(native: AnyHandoff): UnnamedToolDefinition {
  const takesInput = Object.keys(native.inputJsonSchema.properties ?? {}).length > 0
  const execute = async (input: unknown, call: CallContext): Promise<string> => {
    if (!(call.context instanceof Invocation)) throw new TypeError('a handoff needs a run of the OpenAI Agents SDK')
    const args = takesInput ? JSON.stringify(input) : ''
    call.context.target = await native.onInvokeHandoff(call.context.runContext, args)
    return call.context.target.name
  }
  natives.set(execute, native)
  return { description: native.toolDescription, inputSchema: fieldsOf(native.inputJsonSchema), execute }
}

function isFunctionTool(native: unknown): native is AnyFunctionTool {
  const { type, invoke: run } = fieldsOf(native)
  return type === 'function' && typeof run === 'function'
}

/** The SDK keeps it under a symbol of its own, which it does not export. */
function namespaceOf(tool: AnyFunctionTool): string | undefined {
  const symbol = Object.getOwnPropertySymbols(tool).find(({ description }) => description === 'functionToolNamespace')
  const namespace: unknown = symbol && Object.getOwnPropertyDescriptor(tool, symbol)?.value
  return typeof namespace === 'string' ? namespace : undefined
}

function nameOf(native: unknown): string {
  const { name } = fieldsOf(native)
  return typeof name === 'string' ? name : typeof native
}

/** Gives the name under which the SDK knows a tool of the gate. */
export function toolNameOf(tool: Tool): string {
  const native = nativeOf(tool)
  return native ? sdkNameOf(native) : toWireName(tool)
}

/**
 * Gives the names of a gate's tools in the SDK, both ways, of the hidden ones too.
 *
 * @throws {ConfigError} where two tools have one name there
 */
export function namesOf(tools: readonly Tool[]): ExposedNames {
  const ids = new Map<string, string>()
  const names = new Map<string, string>()
  for (const tool of tools) {
    const name = toolNameOf(tool)
    const other = ids.get(name)
    if (other !== undefined) throw new ConfigError('guard', `"${other}" and "${tool.id}" are both "${name}" in the SDK`)
    ids.set(name, tool.id)
    names.set(tool.id, name)
  }
  return { toId: (name) => ids.get(name), toName: (id) => names.get(id) }
}

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
async function invokeNative(
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
function isAgentTool(tool: AnyFunctionTool): boolean {
  return 'on' in tool && typeof tool.on === 'function'
}

/** A copy with all that the SDK has hidden in the details of a call, and the gate's signal. */
function copyOf(details: CallDetails, signal: AbortSignal): NonNullable<CallDetails> {
  return copyWith(details ?? {}, { signal })
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
