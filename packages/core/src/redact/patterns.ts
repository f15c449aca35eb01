import { ConfigError, messageOf } from '../errors.ts'
import { createFinder, createUnion, type Finder } from '../regex/pattern.ts'
import { type Work, WorkSpentError } from '../work.ts'
import type { FindSpans } from './exact.ts'

export const PATTERN_NAME = 'pattern'

/** Steps that finding the patterns in one text may take, of some 5 ns each. */
const MAX_STEPS = 5_000_000

/**
 * Finds what the operator's own patterns match, in time linear in the text (RE2 syntax). A text that takes too many
 * steps is a match as a whole: what was not searched may hold a secret.
 *
 * @throws {ConfigError} naming a pattern that cannot be used, or that matches the empty text
 */
export function createPatternMatcher(patterns: readonly string[]): FindSpans {
  const finders = patterns.map(compile)
  if (finders.length === 0) return () => undefined
  const anyOfThem = createUnion(patterns, 're2')
  return (text) => {
    const work: Work = { left: MAX_STEPS }
    try {
      if (anyOfThem && !anyOfThem.test(text, work)) return undefined
      const spans = finders.flatMap((finder) =>
        finder.matches(text, work).map((match) => ({ ...match, name: PATTERN_NAME })),
      )
      return spans.length > 0 ? spans : undefined
    } catch (error) {
      if (error instanceof WorkSpentError) return [{ start: 0, end: text.length, name: PATTERN_NAME }]
      throw error
    }
  }
}

function compile(pattern: string, i: number): Finder {
  const path = `patterns[${i}]`
  if (typeof pattern !== 'string' || pattern === '') throw new ConfigError(path, 'expected a pattern')
  const finder = tryCompile(pattern, path)
  if (finder.test('', { left: MAX_STEPS })) throw new ConfigError(path, `the pattern ${pattern} matches the empty text`)
  return finder
}

function tryCompile(pattern: string, path: string): Finder {
  try {
    return createFinder(pattern, 're2')
  } catch (cause) {
    throw new ConfigError(path, `the pattern ${pattern} cannot be used: ${messageOf(cause)}`, { cause })
  }
}
