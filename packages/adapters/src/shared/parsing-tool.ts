import { isDeepStrictEqual } from 'node:util'
import { FOR_TOOL, type ParsedInput } from '@toolgate/core/internal'
import { mutableCopy } from '@toolgate/values/json'

/** A valid answer of a Standard Schema, with the input for the tool if the schema's result is not that. */
export interface ParsedAnswer {
  readonly value: unknown
  readonly [FOR_TOOL]?: ParsedInput['forTool']
}

/**
 * Returns a schema's answer for a tool that parses its input with the same schema before it runs: the tool gets the
 * input as it came, if the schema would change its own result again. The gate decides on the result.
 */
export function forParsingTool(came: unknown, value: unknown, parseAgain: (value: unknown) => unknown): ParsedAnswer {
  const isStable = isDeepStrictEqual(value, came) || isDeepStrictEqual(parseAgain(value), value)
  return isStable ? { value } : asItCame(value, came)
}

/** Returns a value to decide on, with the input as it came for the tool. */
export function asItCame(value: unknown, came: unknown): ParsedAnswer {
  return { value, [FOR_TOOL]: { input: mutableCopy(came) } }
}
