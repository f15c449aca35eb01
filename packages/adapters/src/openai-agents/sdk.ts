import { AsyncLocalStorage } from 'node:async_hooks'
import { readJson } from '@toolgate/core/internal'
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

/** A tool that a gate can govern: the SDK runs it in this process, with its own function. */
export type Governable = AnyFunctionTool | AnyHandoff
export type CallDetails = Parameters<AnyFunctionTool['invoke']>[2]

/** The arguments of a call, or what is wrong with them. */
export interface Arguments {
  readonly input: unknown
  readonly malformed: string | undefined
}

/** Reads the arguments of a call as the SDK does, which runs nothing for invalid JSON. */
export function readArguments(text: string): Arguments {
  try {
    const input: unknown = readJson(text)
    if (typeof input === 'object' && input !== null && !Array.isArray(input)) return { input, malformed: undefined }
    return { input: undefined, malformed: 'must be a JSON object' }
  } catch {
    return { input: undefined, malformed: 'is not valid JSON' }
  }
}

const restoring = new AsyncLocalStorage<true>()

/**
 * Runs a function that reads a saved state. The SDK cannot read a call of a tool that is hidden by now. Nothing is sent or
 * run meanwhile, so all tools exist there, and refuse when they are called.
 */
export function whileRestoring<T>(work: () => Promise<T>): Promise<T> {
  return restoring.run(true, work)
}

export function isRestoring(): boolean {
  return restoring.getStore() === true
}
