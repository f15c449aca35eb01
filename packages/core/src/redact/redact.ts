import { ConfigError, messageOf } from '../errors.ts'
import { createFinder, createUnion, type Finder } from '../util/regex/pattern.ts'
import { checkShape, shapeOf } from '../util/shape.ts'
import { spend, type Work, WorkSpentError } from '../util/work.ts'
import { createExactMatcher, EXACT_NAME, type FindSpans } from './exact.ts'
import { scanText } from './scan-text.ts'
import { createKeyNames, FURTHER_KEY, SECRET_KEYS } from './secret-keys.ts'
import { SECRET_VALUES } from './secret-values.ts'
import { replaceSpans, type Span } from './spans.ts'
import { createWalk, UNSHOWN } from './walk.ts'

/** Takes out of texts and values what looks like a secret or is known to be one. */
export interface Redactor {
  /** Gives the text with `[redacted:<name>]` in the place of each secret. The same for the same text, and once is enough. */
  redactText(text: string): string
  /**
   * Gives plain JSON with what is secret replaced: plain JSON without a secret comes back as itself, of anything else
   * a copy. Takes any value, never throws, and changes nothing.
   */
  redactValue(value: unknown): unknown
}

export interface RedactorOptions {
  /** Further keys whose values are secret, such as `internal_pin`; also as the end of a longer key. */
  readonly keys?: readonly string[]
  /** Further values that are secret, as patterns in RE2 syntax. */
  readonly patterns?: readonly string[]
  /** Exact secrets, wherever they occur; also percent-encoded, escaped as in JSON, and in base64. */
  readonly secrets?: readonly string[]
  /** Hears of each secret that is too short to be looked for (under 6 characters), by its index. */
  readonly onIgnored?: (error: ConfigError) => void
}

const OPTIONS = shapeOf<RedactorOptions>({ keys: true, patterns: true, secrets: true, onIgnored: true })
/** Steps that one text or value may take beside a look at each character, of some 5 ns each. */
const MAX_STEPS = 5_000_000
const MIN_TEXT = 5
const MAX_ROUNDS = 8

/**
 * Makes a redactor. Redact before you cut a text to a length: half a secret is no longer recognised.
 *
 * @throws {ConfigError} for a key or a pattern that cannot be used
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

  /** @throws {WorkSpentError} */
  function redactWithin(text: string, work: Work): string {
    if (text.length < MIN_TEXT) return text
    let redacted = text
    // What is taken out may uncover what was glued to it, so that once would not always be enough.
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
      // What was not searched may hold a secret.
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

/** The redactor with the built-in tables alone. */
export const redactor: Redactor = createRedactor()

/** What a match costs beside the characters that are read for it, in steps. */
const FOUND_STEPS = 20
const PLENTY: Work = { left: Number.MAX_SAFE_INTEGER }

/**
 * Finds what the operator's own patterns match, in time linear in the text (RE2 syntax).
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
