import { AsyncLocalStorage } from 'node:async_hooks'
import type { FunctionTool, Handoff, RunContext, Tool } from '@openai/agents'

// oxlint-disable-next-line typescript/no-explicit-any -- as the SDK's own union of tools has it: a tool of any parameters
export type AnyFunctionTool = FunctionTool<any, any, any>
// oxlint-disable-next-line typescript/no-explicit-any -- as the SDK's own list of handoffs has it
export type AnyHandoff = Handoff<any, any>
// oxlint-disable-next-line typescript/no-explicit-any -- as the SDK's own union of tools has it
export type AnyTool = Tool<any>
// oxlint-disable-next-line typescript/no-explicit-any -- each run has a context of the host's own type
export type AnyContext = any
export type AnyRunContext = RunContext<AnyContext>

/** What a gate can govern: the SDK runs it in this process, through a function of its own. */
export type Governable = AnyFunctionTool | AnyHandoff
export type CallDetails = Parameters<AnyFunctionTool['invoke']>[2]

/** What the model wrote as the arguments of a call, or what is wrong with it. */
export interface Arguments {
  readonly input: unknown
  readonly malformed: string | undefined
}

/** Reads the arguments of a call as the SDK does, which runs nothing for what is no JSON. */
export function readArguments(text: string): Arguments {
  try {
    const input: unknown = JSON.parse(text)
    if (typeof input === 'object' && input !== null && !Array.isArray(input)) return { input, malformed: undefined }
    return { input: undefined, malformed: 'must be a JSON object' }
  } catch {
    return { input: undefined, malformed: 'is not valid JSON' }
  }
}

const restoring = new AsyncLocalStorage<true>()

/**
 * Runs what reads a saved state back. The SDK cannot read back the call of a tool that is hidden by now, and nothing
 * is sent or run meanwhile: so tools are there for that, and refuse when they are called.
 */
export function whileRestoring<T>(work: () => Promise<T>): Promise<T> {
  return restoring.run(true, work)
}

export function isRestoring(): boolean {
  return restoring.getStore() === true
}
