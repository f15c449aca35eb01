import { UnknownToolError } from '../errors.ts'
import { nearestNames } from '../util/text.ts'

const MAX_HINTS = 3
/** Unknown names that one error names; more of them say nothing new. */
const MAX_UNKNOWN = 20

/** Returns the error for names that are unknown, each with the known names nearest to it. */
export function unknownTools(unknown: readonly string[], known: readonly string[]): UnknownToolError {
  const [first = '', ...rest] = new Set(unknown)
  return new UnknownToolError(
    first,
    nearestNames(first, known, MAX_HINTS),
    rest.slice(0, MAX_UNKNOWN - 1).map((tool) => ({ tool, nearest: nearestNames(tool, known, MAX_HINTS) })),
  )
}
