import { AsyncLocalStorage } from 'node:async_hooks'
import { isObject, JSON_BOUNDS, JsonFault, measureJson } from '@toolgate/values/json'
import { readModelJson } from '../shared/model-json.ts'
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

/**
 * Reads the arguments of a call. The SDK, too, runs nothing for invalid JSON.
 *
 * The SDK parses the decided input again. V8 13.6 may read a key that JSON must escape as another key, so such keys are
 * refused: the decided input is the input that runs.
 */
export function readArguments(text: string): Arguments {
  const refused = (malformed: string): Arguments => ({ input: undefined, malformed })
  try {
    const read = readModelJson(text)
    if ('problem' in read) return refused(read.problem)
    const input = read.value
    if (!isObject(input)) return refused('must be a JSON object')
    const isEscaped = measureJson(JSON.stringify(input), JSON_BOUNDS.own).hasEscapedKey === true
    return isEscaped
      ? refused('has a key with a quote, a backslash or a control character')
      : { input, malformed: undefined }
  } catch (error) {
    return refused(error instanceof JsonFault && error.kind !== 'not-json' ? error.problem : 'is not valid JSON')
  }
}

const restoring = new AsyncLocalStorage<true>()

/**
 * Runs a function that reads a saved state. The SDK cannot read a call of a hidden tool, so all tools are visible
 * meanwhile. Nothing is sent or run, and a hidden tool still refuses its calls.
 */
export function whileRestoring<T>(work: () => Promise<T>): Promise<T> {
  return restoring.run(true, work)
}

export function isRestoring(): boolean {
  return restoring.getStore() === true
}
