import { messageOf } from '@toolgate/values'
import { escapePointer, isObject } from '@toolgate/values/json'

/** Keywords whose values are data, so a `pattern` in them is no pattern. */
const DATA: ReadonlySet<string> = new Set(['const', 'enum', 'default', 'examples'])

/**
 * Returns the first pattern of an output schema that is not a valid regular expression of ECMAScript (`u` flag).
 *
 * SDK clients compile the output schemas of a whole list at once, so one invalid pattern would cost them every tool.
 */
export function findPatternProblem(schema: unknown, pointer = ''): string | undefined {
  if (typeof schema !== 'object' || schema === null) return undefined
  const entries = Object.entries(schema).filter(([key]) => !DATA.has(key))
  for (const [key, value] of entries) {
    const at = `${pointer}/${escapePointer(key)}`
    const sources =
      key === 'pattern' ? [value] : key === 'patternProperties' && isObject(value) ? Object.keys(value) : []
    const problem = sources.map(problemOf).find((one) => one !== undefined)
    if (problem !== undefined) return `${at} ${problem}`
    const inner = findPatternProblem(value, at)
    if (inner !== undefined) return inner
  }
  return undefined
}

function problemOf(source: unknown): string | undefined {
  if (typeof source !== 'string') return undefined
  try {
    return void new RegExp(source, 'u')
  } catch (error) {
    return `is invalid: ${messageOf(error)}`
  }
}
