import type { Tool } from '@toolgate/core'
import { coerceInput } from '@toolgate/core/call'
import { sha256Hex } from '@toolgate/values'
import { canonicalize } from '@toolgate/values/json'

/**
 * Returns the hash under which a gate stores the approval of an input. The gate hashes the input that the tool's schema
 * returns. `undefined` for an input that the gate refuses.
 */
export function inputHashOf(tool: Tool, input: unknown): string | undefined {
  try {
    const parsed = tool.parseInput ? tool.parseInput(input) : { value: coerceInput(tool, input) }
    return 'value' in parsed ? sha256Hex(canonicalize(parsed.value)) : undefined
  } catch {
    return undefined
  }
}
