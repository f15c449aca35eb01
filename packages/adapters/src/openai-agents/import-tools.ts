import { Handoff, RunContext } from '@openai/agents'
import { type CallContext, ConfigError, type Tool } from '@toolgate/core'
import { type ExposedNames, toWireName } from '@toolgate/expose'
import type { NativeToolRecord, UnnamedToolDefinition } from '@toolgate/core/tools'
import { copyWith, fieldsOf } from '../shared/fields.ts'
import { type Overlay, toNativeRecord } from '../shared/overlay.ts'
import type { AnyFunctionTool, AnyHandoff, AnyRunContext, CallDetails, Governable } from './sdk.ts'

/**
 * Returns function tools and handoffs for a gate, combined with the overlay. A tool's id is its name, or
 * `namespace:name` for a tool of a `toolNamespace`.
 *
 * Pass a record, keyed by id, to have the ids typed.
 *
 * @throws {ConfigError} for hosted, computer, shell and patch tools, which a gate cannot govern; for two tools of one
 * name, and for a key that is not the id
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
  if (typeof tools !== 'object' || tools === null)
    throw new ConfigError('tools', 'must be a list of function tools and handoffs, or a record of them by name')
  const definitions = new Map<string, UnnamedToolDefinition>()
  for (const [key, native] of entriesOf(tools)) {
    if (typeof native === 'string') throw new ConfigError('tools', `"${native}" is a name: pass the tool itself`)
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

/** The SDK's own objects, by the gate tool's `execute`. */
const natives = new WeakMap<object, Governable>()

/** Returns the SDK's own object from which a gate's tool was imported. */
export function nativeOf(tool: { readonly execute: unknown }): Governable | undefined {
  return typeof tool.execute === 'function' ? natives.get(tool.execute) : undefined
}

export function isHandoff(native: unknown): native is AnyHandoff {
  return native instanceof Handoff
}

/** @throws {ConfigError} for a tool that the SDK does not run in this process */
function toDefinition(native: unknown): { readonly id: string; readonly definition: UnnamedToolDefinition } {
  if (isHandoff(native)) return { id: native.toolName, definition: handoffDefinition(native) }
  if (isFunctionTool(native)) return { id: toId(native), definition: functionDefinition(native) }
  const name = nameOf(native)
  throw new ConfigError(
    `tools.${name}`,
    `"${name}" is not a function tool: the SDK cannot hide it from a run, and no gate can stop it; ` +
      'if everyone may use it, pass it to guard as `ungoverned`',
  )
}

/** Function tools of a namespace are `namespace:name`. */
function toId(tool: AnyFunctionTool): string {
  const namespace = namespaceOf(tool)
  return namespace === undefined ? tool.name : `${namespace}:${tool.name}`
}

/** Returns the name by which the SDK looks a tool up. */
function sdkNameOf(native: Governable): string {
  if (isHandoff(native)) return native.toolName
  const namespace = namespaceOf(native)
  return namespace === undefined ? native.name : `${namespace}.${native.name}`
}

/**
 * The time, in milliseconds, that the gate's deadline comes after the SDK's own timer, so that the model gets the SDK's
 * text.
 */
const AFTER_SDK_MS = 1000

/** Returns the deadline of a tool. An agent as a tool has none, because its own run has deadlines for its calls. */
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

/** Returns the namespace, which the SDK stores under a symbol that it does not export. */
function namespaceOf(tool: AnyFunctionTool): string | undefined {
  const symbol = Object.getOwnPropertySymbols(tool).find(({ description }) => description === 'functionToolNamespace')
  const namespace: unknown = symbol && Object.getOwnPropertyDescriptor(tool, symbol)?.value
  return typeof namespace === 'string' ? namespace : undefined
}

function nameOf(native: unknown): string {
  const { name } = fieldsOf(native)
  return typeof name === 'string' ? name : typeof native
}

/** Returns the SDK's name for a tool of the gate. */
export function toolNameOf(tool: Tool): string {
  const native = nativeOf(tool)
  return native ? sdkNameOf(native) : toWireName(tool)
}

/**
 * Returns the SDK's names of a gate's tools in both directions, including hidden tools.
 *
 * @throws {ConfigError} if two tools have the same name in the SDK
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

/** The details of a call that a guarded tool passes through the gate to the original tool. */
export class Invocation {
  readonly runContext: AnyRunContext
  readonly details: CallDetails
  /** The handoff's target. It is stored here because an agent is not a JSON output. */
  target: Awaited<ReturnType<AnyHandoff['onInvokeHandoff']>> | undefined
  /** The error that the tool threw through the SDK. It ends the run. */
  thrown: { readonly error: unknown } | undefined

  constructor(runContext: AnyRunContext, details: CallDetails) {
    this.runContext = runContext
    this.details = details
  }
}

/** The error of a tool that threw, if the SDK does not pass on the original error. */
export class SwallowedError extends Error {
  override readonly name = 'SwallowedError'
}

/** The SDK's text for a tool that threw, unless the tool has an `errorFunction`. Older versions append the error. */
const SDK_FAILURE = 'An error occurred while running the tool. Please try again.'

/**
 * Runs the SDK's own tool.
 *
 * @throws {SwallowedError} if the SDK turned the tool's error into a result, so that the record has status `failed`
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

/** Whether the tool is an agent. Only an agent as a tool emits events about its run. */
function isAgentTool(tool: AnyFunctionTool): boolean {
  return 'on' in tool && typeof tool.on === 'function'
}

/** Returns a copy of a call's details, including the SDK's hidden fields, with the gate's signal. */
function copyOf(details: CallDetails, signal: AbortSignal): NonNullable<CallDetails> {
  return copyWith(details ?? {}, { signal })
}

/** The SDK's key for the fields that a sub-agent's run inherits from its parent. */
const INHERITED = Symbol.for('openai.agents.agentToolParentRunConfig')

/**
 * Ends a sub-agent's run at an unknown tool, which leaves a trace. By default it inherits that the run continues, but
 * not the handler, so the call would not be recorded. `asTool({ runConfig })` sets both.
 */
function endAtUnknownTools(details: object): void {
  const inherited: unknown = Reflect.get(details, INHERITED)
  if (typeof inherited !== 'object' || inherited === null) return
  Object.defineProperty(details, INHERITED, { value: { ...inherited, toolNotFoundBehavior: undefined } })
}
