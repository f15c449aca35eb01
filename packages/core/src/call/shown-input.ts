import { catchRejection } from '../util/async.ts'
import type { Redactor } from '../redact/redact.ts'

/**
 * Gives an input as the person sees it who is to approve it: redacted, and where what is hidden could be more than a
 * secret, saying so.
 *
 * What looks like a cookie or a password to the redactor may be the rest of a command, and whoever wrote the input
 * chose it. One opaque word can hide nothing; of anything else its length is told, so that nobody takes the rest for all.
 *
 * @throws what the redactor throws, and a TypeError for one that gives its answer later: nobody could see that
 */
export function shownInput(
  input: unknown,
  { redactValue }: Pick<Redactor, 'redactValue'>,
  onFault: (error: unknown) => void = () => {},
): unknown {
  const shown = redactValue(input)
  catchRejection(shown, onFault)
  if (shown instanceof Promise) throw new TypeError('the redactor answered with a promise')
  return withNotices(input, shown)
}

function withNotices(input: unknown, shown: unknown): unknown {
  if (input === shown) return shown
  if (typeof shown === 'string') return shown + noticeOf(input, shown)
  if (Array.isArray(input) && Array.isArray(shown)) return shown.map((item, i) => withNotices(input[i], item))
  if (!isObject(input) || !isObject(shown)) return shown
  // Names may be redacted too, and keep their places.
  const values = Object.values(input)
  return Object.fromEntries(Object.entries(shown).map(([key, value], i) => [key, withNotices(values[i], value)]))
}

const MARKER = /\[redacted:[a-z0-9-]{1,64}\]/g
/** What a shell, a query or a program goes on with after a word. */
const SIGN = /[\n\r;|&<>$`(){}"'\\]/g
const BLANK = /\s/g

function noticeOf(input: unknown, shown: string): string {
  const text = typeof input === 'string' ? input : JSON.stringify(input)
  const left = shown.replace(MARKER, '')
  const isMore =
    isObject(input) || countOf(SIGN, text) > countOf(SIGN, left) || countOf(BLANK, text) > countOf(BLANK, left) + 1
  // On a line of its own: a header is hidden up to the end of its line, and this may be redacted again.
  return isMore ? `\n[hidden here: ${text.length - left.length} characters, which are more than one word]` : ''
}

function countOf(pattern: RegExp, text: string): number {
  return text.match(pattern)?.length ?? 0
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}
