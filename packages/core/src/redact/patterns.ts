import { ConfigError, messageOf } from '../errors.ts'
import { createFinder, createUnion, type Finder } from '../regex/pattern.ts'
import { spend, type Work } from '../work.ts'
import type { FindSpans } from './exact.ts'

export const PATTERN_NAME = 'pattern'

/** What a match costs beside the characters that are read for it, in steps. */
const FOUND_STEPS = 20
const PLENTY: Work = { left: Number.MAX_SAFE_INTEGER }

/**
 * Finds what the operator's own patterns match, in time linear in the text (RE2 syntax).
 *
 * @throws {ConfigError} naming a pattern that cannot be used, or that matches the empty text
 */
export function createPatternMatcher(patterns: readonly string[]): FindSpans {
  const finders = patterns.map(compile)
  if (finders.length === 0) return () => undefined
  const anyOfThem = createUnion(patterns, 're2')
  return (text, work) => {
    if (anyOfThem && !anyOfThem.test(text, work)) return undefined
    const spans = finders.flatMap((finder) =>
      finder.matches(text, work).map((match) => ({ ...match, name: PATTERN_NAME })),
    )
    spend(work, spans.length * FOUND_STEPS)
    return spans.length > 0 ? spans : undefined
  }
}

function compile(pattern: string, i: number): Finder {
  const path = `patterns[${i}]`
  if (typeof pattern !== 'string' || pattern === '') throw new ConfigError(path, 'expected a pattern')
  const finder = tryCompile(pattern, path)
  if (finder.test('', { ...PLENTY })) throw new ConfigError(path, `the pattern ${pattern} matches the empty text`)
  return finder
}

function tryCompile(pattern: string, path: string): Finder {
  try {
    return createFinder(pattern, 're2')
  } catch (cause) {
    throw new ConfigError(path, `the pattern ${pattern} cannot be used: ${messageOf(cause)}`, { cause })
  }
}
