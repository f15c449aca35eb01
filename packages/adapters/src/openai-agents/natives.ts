import { Handoff, RunContext } from '@openai/agents'
import { type CallContext, ConfigError, type JsonSchema } from '@toolgate/core'
import type { UnnamedToolDefinition } from '@toolgate/core/internal'
import { Invocation, invokeNative, isAgentTool } from './invocation.ts'
import type { AnyFunctionTool, AnyHandoff, Governable } from './sdk-types.ts'

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
export function toDefinition(native: unknown): { readonly id: string; readonly definition: UnnamedToolDefinition } {
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
export function sdkNameOf(native: Governable): string {
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
  return { description, inputSchema: parameters as JsonSchema, deadlineMs: deadlineOf(tool), execute }
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
  return { description: native.toolDescription, inputSchema: native.inputJsonSchema as JsonSchema, execute }
}

function isFunctionTool(native: unknown): native is AnyFunctionTool {
  const tool = native as Partial<AnyFunctionTool> | null | undefined
  return typeof tool === 'object' && tool?.type === 'function' && typeof tool.invoke === 'function'
}

/** The SDK keeps it under a symbol of its own, which it does not export. */
function namespaceOf(tool: AnyFunctionTool): string | undefined {
  const symbol = Object.getOwnPropertySymbols(tool).find(({ description }) => description === 'functionToolNamespace')
  const namespace: unknown = symbol && Object.getOwnPropertyDescriptor(tool, symbol)?.value
  return typeof namespace === 'string' ? namespace : undefined
}

function nameOf(native: unknown): string {
  const { name } = (native ?? {}) as { name?: unknown }
  return typeof name === 'string' ? name : typeof native
}
