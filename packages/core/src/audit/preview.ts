import { canonicalize } from '../util/json.ts'
import type { Redactor } from '../redact/redact.ts'

/** How much of an input is shown. */
export const MAX_PREVIEW = 200
/** An input up to this length is redacted whole; of a longer one, the beginning. */
const MAX_WHOLE = 16_384
const MAX_STRING = 16_384
const MAX_VALUES = 256

/**
 * Gives the beginning of an input in RFC 8785 form, redacted: 200 characters and `…`. `canonical` is the whole of it.
 *
 * Redaction comes before the cut, as a secret that was cut in two would not be recognised.
 */
export function previewInput(input: unknown, canonical: string, redact: Redactor): string {
  const shown = canonical.length <= MAX_WHOLE ? input : beginningOf(input, { values: MAX_VALUES })
  const redacted = redact.redactValue(shown)
  // Mostly nothing is secret and keys are in order: then this is the same text, many times cheaper.
  const text = shown === input && JSON.stringify(redacted) === canonical ? canonical : canonicalize(redacted)
  if (text.length <= MAX_PREVIEW) return text
  return `${text.slice(0, MAX_PREVIEW - 1).replace(/[\uD800-\uDBFF]$/, '')}…`
}

/** Copies what comes first in RFC 8785 order. What is left out lies beyond what is shown. */
function beginningOf(value: unknown, budget: { values: number }): unknown {
  if (typeof value === 'string') return beginningOfText(value)
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return takeWhile(value, budget).map((item) => beginningOf(item, budget))
  const keys = takeWhile(Object.keys(value).toSorted(compareUnits), budget)
  return Object.fromEntries(
    keys.map((key) => [beginningOfText(key), beginningOf((value as Record<string, unknown>)[key], budget)]),
  )
}

function takeWhile<T>(items: readonly T[], budget: { values: number }): readonly T[] {
  const taken = items.slice(0, budget.values)
  budget.values -= taken.length
  return taken
}

/** Ends a cut text at a space, and one without any at its beginning: half a secret is not recognised as one. */
function beginningOfText(text: string): string {
  if (text.length <= MAX_STRING) return text
  const kept = text.slice(0, MAX_STRING)
  return `${kept.slice(0, kept.search(/\s\S*$/) + 1)}…`
}

/** As RFC 8785 §3.2.3 sorts. */
function compareUnits(a: string, b: string): number {
  return a < b ? -1 : 1
}
