import { isErrorOf, WorkSpentError } from '@toolgate/values'
import { frozenCopy } from '@toolgate/values/json'
import { type Coercer, compileCoercer } from '@toolgate/values/json-schema'
import type { Tool } from '../tools/tool.ts'

/** The most steps of coercing one input, as many as of checking it. */
const MAX_STEPS = 5_000_000

const coercers = new WeakMap<object, Coercer>()

/**
 * Returns the input that is decided, recorded and run for an input that the tool's schema rejects: with texts replaced by
 * the values that the schema wants, if the tool has `inputs: 'coerced'`. The caller checks the result.
 */
export function coerceInput({ inputs, inputSchema, parseInput }: Tool, input: unknown): unknown {
  if (inputs !== 'coerced' || parseInput) return input
  try {
    let coercer = coercers.get(inputSchema)
    if (!coercer) coercers.set(inputSchema, (coercer = compileCoercer(inputSchema)))
    const coerced = coercer(input, { left: MAX_STEPS })
    if (coerced === input) return input
    const copy = frozenCopy(coerced)
    return 'problem' in copy ? input : copy.value
  } catch (error) {
    // The input stays as it is, and is refused.
    if (isErrorOf(error, WorkSpentError) || isErrorOf(error, RangeError)) return input
    throw error
  }
}
