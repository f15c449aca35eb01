import { checkShape, shapeOf, ToolgateError } from '@toolgate/values'
import { frozenCopy, readOwnJson, toJsonText } from '@toolgate/values/json'
import type { StateOptions } from '../ports/ports.ts'

const OPTIONS = shapeOf<StateOptions>({ expiresAt: true, fence: true })
const MAX_KEY_LENGTH = 512
const MAX_VALUE_BYTES = 1024 * 1024

/** Checks a key. @throws {ToolgateError} `state_invalid` for a key that is not 1 to 512 characters of well-formed text */
export function checkStateKey(key: string): void {
  if (typeof key !== 'string' || key === '') throw invalid('A key of the state must be text that is not empty.')
  checkText('A key', key)
}

/** Checks a prefix of keys. The empty prefix matches every key. */
export function checkStatePrefix(prefix: string): void {
  if (typeof prefix !== 'string') throw invalid('A prefix of keys of the state must be text.')
  checkText('A prefix of keys', prefix)
}

/** Returns the time when a value expires; infinite if it does not. */
export function toStateExpiry(options: StateOptions = {}): number {
  checkShape('set', options, OPTIONS)
  const { expiresAt = Number.POSITIVE_INFINITY } = options
  if (typeof expiresAt !== 'number' || Number.isNaN(expiresAt))
    throw invalid('expiresAt must be a number of milliseconds since 1970.')
  return expiresAt
}

/**
 * Returns the JSON text of a value for a state store to keep.
 *
 * @throws {ToolgateError} `state_invalid` for a value that is not plain JSON or has more than 1 MiB
 */
export function toStateText(value: unknown): string {
  const text = toJsonText(plainCopy(value))
  const bytes = Buffer.byteLength(text)
  if (bytes > MAX_VALUE_BYTES)
    throw invalid(`A value of the state has ${bytes} bytes of JSON; at most ${MAX_VALUE_BYTES} are allowed.`)
  return text
}

/** Returns the value of a text that `toStateText` made, deeply frozen. */
export function parseStateText(text: string): unknown {
  return plainCopy(readOwnJson(text, 'exact'))
}

function plainCopy(value: unknown): unknown {
  let copied: ReturnType<typeof frozenCopy>
  try {
    copied = frozenCopy(value)
  } catch (cause) {
    throw invalid('A value of the state cannot be read.', cause)
  }
  if ('value' in copied) return copied.value
  const { pointer, message } = copied.problem
  throw invalid(`A value of the state is not plain JSON: ${pointer === '' ? 'it' : pointer.slice(0, 200)} ${message}.`)
}

function checkText(what: string, text: string): void {
  if (text.length > MAX_KEY_LENGTH)
    throw invalid(`${what} of the state has ${text.length} characters; at most ${MAX_KEY_LENGTH} are allowed.`)
  if (!text.isWellFormed()) throw invalid(`${what} of the state holds a lone surrogate.`)
}

function invalid(message: string, cause?: unknown): ToolgateError {
  return new ToolgateError('state_invalid', message, cause === undefined ? {} : { cause })
}
