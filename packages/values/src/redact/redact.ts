import { ConfigError, messageOf } from '../errors.ts'
import { createFinder, createUnion, type Finder } from '../regex/pattern.ts'
import { checkShape, shapeOf } from '../shape.ts'
import { spend, type Work, WorkSpentError } from '../work.ts'
import { createExactMatcher, EXACT_NAME, type FindSpans } from './exact.ts'
import { scanText } from './scan-text.ts'
import { createKeyNames, FURTHER_KEY, SECRET_KEYS } from './secret-keys.ts'
import { SECRET_VALUES } from './secret-values.ts'
import { replaceSpans, type Span } from './spans.ts'
import { createWalk, UNSHOWN } from './walk.ts'

/** Masks secrets in texts and values: text that looks like a secret, and known secrets. */
export interface Redactor {
  /** Returns the text with `[redacted:<name>]` instead of each secret. Deterministic; redacting twice gives the same text. */
  redactText(text: string): string
  /**
   * Returns a value as plain JSON with its secrets masked. Plain JSON without a secret is returned as it is, any other value
   * as a copy. Takes any value, never throws, and never changes its argument.
   */
  redactValue(value: unknown): unknown
}

interface RedactorOptions {
  /** Further keys whose values are secret, such as `internal_pin`; also as the end of a longer key. */
  readonly keys?: readonly string[]
  /** Further values that are secret, as patterns in RE2 syntax. */
  readonly patterns?: readonly string[]
  /** Exact secrets, wherever they occur; also percent-encoded, escaped as in JSON, and in base64. */
  readonly secrets?: readonly string[]
  /** Called for each secret that is too short to be searched for (under 6 characters), with its index. */
  readonly onIgnored?: (error: ConfigError) => void
}

const OPTIONS = shapeOf<RedactorOptions>({ keys: true, patterns: true, secrets: true, onIgnored: true })
/** Steps for one text or value, of about 5 ns each. Looking at a character is not counted. */
const MAX_STEPS = 5_000_000
const MIN_TEXT = 5
const MAX_ROUNDS = 8

/**
 * Creates a redactor. Redact a text before you cut it, because half a secret is not recognised.
 *
 * @throws {ConfigError} for an invalid key or pattern
 *
 * @example
 * createRedactor({ secrets: ['correct horse'] }).redactText('say correct horse')   // say [redacted:secret]
 */
export function createRedactor(options: RedactorOptions = {}): Redactor {
  checkShape('createRedactor', options, OPTIONS)
  const keys = createKeyNames(options.keys)
  const finders: readonly FindSpans[] = [
    (text, work) => scanText(text, keys, work),
    createExactMatcher(options.secrets ?? [], options.onIgnored ?? (() => {})),
    createPatternMatcher(options.patterns ?? []),
  ]

  /** Redacts a text within a step budget. @throws {WorkSpentError} when the steps run out */
  function redactWithin(text: string, work: Work): string {
    if (text.length < MIN_TEXT) return text
    let redacted = text
    // Masking a secret may reveal another that was attached to it.
    for (let round = 0; round < MAX_ROUNDS; round++) {
      const spans = findAll(finders, redacted, work)
      if (spans.length === 0) return redacted
      const before = redacted
      redacted = replaceSpans(before, spans, NAMES)
      if (redacted === before) return redacted
    }
    return redacted
  }

  function redactText(text: string): string {
    try {
      return redactWithin(text, { left: MAX_STEPS })
    } catch (error) {
      // The rest of the text was not searched and may hold a secret.
      if (error instanceof WorkSpentError) return UNSHOWN.tooMuch
      throw error
    }
  }

  const walk = createWalk({ keys, redactText: redactWithin, isMarker: (text) => MARKERS.has(text) })
  return { redactText, redactValue: (value) => walk(value, { left: MAX_STEPS }) }
}

const PATTERN_NAME = 'pattern'
const NAMES: ReadonlySet<string> = new Set([
  EXACT_NAME,
  PATTERN_NAME,
  FURTHER_KEY.name,
  'url-password',
  'url-user',
  ...SECRET_KEYS.map(({ name }) => name),
  ...SECRET_VALUES.map(({ name }) => name),
])
const MARKERS: ReadonlySet<string> = new Set([...NAMES].map((name) => `[redacted:${name}]`))
const NONE: readonly Span[] = []

function findAll(finders: readonly FindSpans[], text: string, work: Work): readonly Span[] {
  let found: readonly Span[] = NONE
  for (const find of finders) {
    const spans = find(text, work)
    if (spans) found = found.length === 0 ? spans : [...found, ...spans]
  }
  return found
}

/** The redactor with only the built-in tables. */
export const redactor: Redactor = createRedactor()

/** Steps for a match, beside those for its characters. */
const FOUND_STEPS = 20
const PLENTY: Work = { left: Number.MAX_SAFE_INTEGER }

/**
 * Returns a search for the operator's own patterns (RE2 syntax), in time linear in the text.
 *
 * @throws {ConfigError} naming a pattern that cannot be used, or that matches the empty text
 */
function createPatternMatcher(patterns: readonly string[]): FindSpans {
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
