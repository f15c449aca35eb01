import { createRequire } from 'node:module'
import { ConfigError, messageOf } from '../errors.ts'
import type { FindSpans } from './exact.ts'
import type { Span } from './spans.ts'

export const PATTERN_NAME = 'pattern'

const require = createRequire(import.meta.url)

/**
 * Finds what the operator's own patterns match, in time linear in the text (RE2 syntax, through re2js).
 *
 * @throws {ConfigError} naming a pattern that cannot be used, or that matches the empty text
 */
export function createPatternMatcher(patterns: readonly string[]): FindSpans {
  const compiled = patterns.map(compile)
  if (compiled.length === 0) return () => undefined
  return (text) => {
    const spans: Span[] = []
    for (const pattern of compiled) {
      const matcher = pattern.matcher(text)
      while (matcher.find()) {
        if (matcher.end() > matcher.start())
          spans.push({ start: matcher.start(), end: matcher.end(), name: PATTERN_NAME })
      }
    }
    return spans.length > 0 ? spans : undefined
  }
}

function compile(pattern: string, i: number): import('re2js').RE2JS {
  const path = `patterns[${i}]`
  if (typeof pattern !== 'string' || pattern === '') throw new ConfigError(path, 'expected a pattern')
  const { RE2JS } = require('re2js') as typeof import('re2js')
  const compiled = tryCompile(RE2JS, pattern, path)
  if (compiled.matches('')) throw new ConfigError(path, `the pattern ${pattern} matches the empty text`)
  return compiled
}

function tryCompile(RE2JS: typeof import('re2js').RE2JS, pattern: string, path: string): import('re2js').RE2JS {
  try {
    return RE2JS.compile(pattern)
  } catch (cause) {
    throw new ConfigError(path, `the pattern ${pattern} cannot be used: ${messageOf(cause)}`, { cause })
  }
}
