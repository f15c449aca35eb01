import { canonicalize, compareUnits, isObject } from '@toolgate/values/json'
import { cut } from '@toolgate/values'
import type { Redactor } from '@toolgate/values/redact'

/** Characters of a preview. */
export const MAX_PREVIEW = 200
/** The maximum length of an input that is redacted as a whole. Of a longer input, only the beginning is redacted. */
const MAX_WHOLE = 16_384
const MAX_STRING = 16_384
const MAX_VALUES = 256

/**
 * Returns the redacted beginning of an input in RFC 8785 form: at most 200 characters. `canonical` is the whole form.
 *
 * Redacts before the cut, since a secret that was cut in two is not recognised.
 */
export function previewInput(input: unknown, canonical: string, redact: Redactor): string {
  const shown = canonical.length <= MAX_WHOLE ? input : beginningOf(input, { values: MAX_VALUES })
  const redacted = redact.redactValue(shown)
  // Most inputs have no secret, so the canonical text can be reused. A redactor cannot change a frozen input.
  const isKnown = redacted === input && Object.isFrozen(input)
  const text = isKnown ? canonical : canonicalize(redacted)
  return text.length <= MAX_PREVIEW ? text : cut(text, MAX_PREVIEW)
}

/**
 * Returns the redacted beginning of one field, at most 200 characters. A text is not changed; any other value is in RFC
 * 8785 form.
 */
export function previewField(name: string, value: unknown, redact: Redactor): string {
  const isShort = typeof value !== 'string' && canonicalize(value).length <= MAX_WHOLE
  const shown = isShort ? value : beginningOf(value, { values: MAX_VALUES })
  // Some fields are secret because of their names.
  const [redacted] = Object.values(redact.redactValue({ [name]: shown }) as object) as [unknown]
  return cut(typeof redacted === 'string' ? redacted : canonicalize(redacted), MAX_PREVIEW)
}

/** Copies the first values in RFC 8785 order. The others are beyond the preview. */
function beginningOf(value: unknown, budget: { values: number }): unknown {
  if (typeof value === 'string') return beginningOfText(value)
  if (Array.isArray(value)) return takeWhile(value, budget).map((item) => beginningOf(item, budget))
  if (!isObject(value)) return value
  const keys = takeWhile(Object.keys(value).toSorted(compareUnits), budget)
  return Object.fromEntries(keys.map((key) => [beginningOfText(key), beginningOf(value[key], budget)]))
}

function takeWhile<T>(items: readonly T[], budget: { values: number }): readonly T[] {
  const taken = items.slice(0, budget.values)
  budget.values -= taken.length
  return taken
}

/** Cuts a text at a space, or to nothing if it has none: half a secret is not recognised. */
function beginningOfText(text: string): string {
  if (text.length <= MAX_STRING) return text
  const kept = text.slice(0, MAX_STRING)
  return `${kept.slice(0, kept.search(/\s\S*$/) + 1)}…`
}
