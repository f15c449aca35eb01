import type { StatedHistory, TestProblem } from '@toolgate/change'
import type { ApiFault } from '../../model/faults.ts'
import { invalidBody } from './request.ts'
import { ConfigFileError, formatPath, formatProblem } from '../../config/problems.ts'
import { parseSource } from '../../config/source.ts'
import { checkTokens } from '../../config/check-tokens.ts'

const MAX_PROBLEMS = 20

/**
 * Reads a history that a person provides, as an object or as YAML.
 *
 * @throws {ApiFault} `body_invalid` with its problems; those of YAML have line and column
 */
export function readHistory(given: unknown, check: (history: unknown) => readonly TestProblem[]): StatedHistory {
  if (typeof given !== 'string') {
    const problems = check(given)
    if (problems.length === 0) return given as StatedHistory
    throw invalidHistory(problems.map(({ path, message }) => `${formatPath(['history', ...path])}: ${message}`))
  }
  if (given.trim() === '') return {}
  refuseLong(given)
  const source = parseSource('history', given)
  const value = source.root?.value
  if (source.problems.length === 0)
    for (const { path, message, isKey } of check(value)) source.report(path, message, { atKey: isKey })
  const problems = source.problems.toSorted((a, b) => a.line - b.line || a.column - b.column)
  if (problems.length > 0) throw invalidHistory(problems.map(formatProblem))
  return value as StatedHistory
}

/** The maximum number of tokens. Parsing them delays agents by some 30 ms. */
const MAX_TOKENS = 10_000

/** @throws {ApiFault} */
function refuseLong(text: string): void {
  try {
    checkTokens(text, 'history', MAX_TOKENS)
  } catch (error) {
    if (!(error instanceof ConfigFileError)) throw error
    throw invalidHistory([`${error.message}; send it as JSON`])
  }
}

function invalidHistory(lines: readonly string[]): ApiFault {
  const more = lines.length - MAX_PROBLEMS
  return invalidBody([...lines.slice(0, MAX_PROBLEMS), ...(more > 0 ? [`and ${more} more`] : [])].join('\n'))
}
