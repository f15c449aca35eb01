import { isDeepStrictEqual } from 'node:util'

/**
 * Gives a value as one text, from which `fromStoredText` gives it back: plain JSON, and beside that the bytes and the
 * addresses that messages hold. What JSON leaves out is left out.
 *
 * @throws for what has no JSON: a value that holds itself, a bigint
 */
export function toStoredText(value: unknown): string {
  return JSON.stringify(encode(value)) ?? 'null'
}

/** Whether a value is given back as it was: no functions, no instances of classes, nothing that holds itself. */
export function isStorable(value: unknown): boolean {
  try {
    return isDeepStrictEqual(fromStoredText(toStoredText(value)), value)
  } catch {
    return false
  }
}

export function fromStoredText(text: string): unknown {
  return decode(JSON.parse(text))
}

const BYTES = '~bytes'
const ADDRESS = '~url'
/** An object whose one key looks like one of ours. */
const OBJECT = '~'

function encode(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(encode)
  if (ArrayBuffer.isView(value))
    return { [BYTES]: Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('base64') }
  if (value instanceof ArrayBuffer) return { [BYTES]: Buffer.from(value).toString('base64') }
  if (value instanceof URL) return { [ADDRESS]: value.href }
  const { toJSON } = value as { readonly toJSON?: unknown }
  if (typeof toJSON === 'function') return encode(toJSON.call(value))
  const entries = Object.entries(value).map(([key, field]) => [key, encode(field)] as const)
  const copy = Object.fromEntries(entries)
  return isMarked(copy) ? { [OBJECT]: copy } : copy
}

function decode(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(decode)
  const marked = isMarked(value) ? Object.entries(value)[0] : undefined
  if (marked === undefined) return decodeFields(value)
  const [mark, content] = marked
  if (mark === BYTES) return new Uint8Array(Buffer.from(String(content), 'base64'))
  if (mark === ADDRESS) return new URL(String(content))
  return decodeFields(content as object)
}

function decodeFields(value: object): object {
  return Object.fromEntries(Object.entries(value).map(([key, field]) => [key, decode(field)]))
}

function isMarked(value: object): boolean {
  const keys = Object.keys(value)
  return keys.length === 1 && (keys[0] === BYTES || keys[0] === ADDRESS || keys[0] === OBJECT)
}
