import { types } from 'node:util'
import { messageOf } from './errors.ts'
import { isPlain } from './json/json.ts'
import { toJsonText } from './json/json-text.ts'

/**
 * An output, cut to a size that a model, a log or a socket can handle.
 *
 * Sizes are in characters of JSON, not counting escapes: a string counts its length and two quotes, binary data one
 * character for each byte.
 */
interface CappedOutput {
  readonly output: unknown
  readonly cut: boolean
}

/** The default for the longest text of an output. */
const MAX_TEXT_CHARS = 10_000_000

/**
 * Returns an output with at most `maxChars` characters.
 *
 * A smaller output is returned unchanged. A larger, circular or too deeply nested one (more than 256 levels) becomes a copy
 * in plain JSON: long strings are cut, then lists and objects are shortened, each with a marker that says by how much.
 * Fields keep their places, so an MCP result stays an MCP result. Never throws. The time depends on the cap, not on the
 * output.
 */
export function capOutput(output: unknown, maxChars: number): CappedOutput {
  if (typeof output === 'string')
    return output.length <= maxChars
      ? { output, cut: false }
      : { output: detached(cutText(output, maxChars), output), cut: true }
  if (maxChars === Infinity || sizeOf(output, maxChars) <= maxChars) return { output, cut: false }
  return { output: shrunk(output, maxChars), cut: true }
}

/** Returns an output as a text of at most `maxChars` characters. Never throws. */
export function outputText(output: unknown, maxChars: number = MAX_TEXT_CHARS): string {
  if (typeof output === 'string') return cutText(output, maxChars)
  const capped = capOutput(output, maxChars).output
  return cutText(jsonText(capped) ?? jsonText(shrunk(capped, maxChars)) ?? messageOf(capped), maxChars)
}

/** Returns the JSON text; `undefined` if there is none, as for values that JSON leaves out. */
function jsonText(value: unknown): string | undefined {
  if (typeof value === 'bigint') return sizeOf(value, MAX_TEXT_CHARS) > MAX_TEXT_CHARS ? undefined : String(value)
  try {
    return toJsonText(value) ?? ''
  } catch {
    return undefined
  }
}

const MAX_DEPTH = 256

/** Returns the size of a value; any number above `maxSize` if it is larger. */
export function sizeOf(value: unknown, maxSize: number): number {
  try {
    return measure(value, maxSize, 0)
  } catch {
    // A value whose getter throws has no size. It is copied without the parts that throw.
    return Infinity
  }
}

function measure(value: unknown, left: number, depth: number): number {
  switch (typeof value) {
    case 'string':
      return value.length + 2
    case 'number':
      // Most numbers are small, and converting each to a text costs more than the rest.
      return Number.isInteger(value) && value >= 0 && value < 1000
        ? value < 10
          ? 1
          : value < 100
            ? 2
            : 3
        : String(value).length
    case 'bigint':
      return digitsOf(value, left)
    case 'object':
      break
    default:
      return 5
  }
  if (value === null) return 4
  if (depth >= MAX_DEPTH) return Infinity
  return Array.isArray(value) ? measureList(value, left, depth) : measureObject(value, left, depth)
}

function measureList(list: readonly unknown[], left: number, depth: number): number {
  let size = 2
  for (let i = 0; i < list.length && size <= left; i++) size += 1 + measure(list[i], left - size, depth + 1)
  return size
}

function measureObject(object: object, left: number, depth: number): number {
  let size = 2
  if (!isPlain(object)) {
    const opaque = opaqueSize(object, left, depth)
    if (opaque !== undefined && !(object instanceof Error)) return opaque
    // The fields of an error count, too.
    size = opaque ?? size
  }
  const json = jsonOf(object)
  if (json !== object) size += measure(json, left - size, depth + 1)
  for (const key in object) {
    if (!Object.hasOwn(object, key)) continue
    size += key.length + 4
    if (size > left) break
    size += measure((object as Record<string, unknown>)[key], left - size, depth + 1)
  }
  return size
}

/** Returns the size of objects whose content is not in fields; `undefined` for other class instances. */
function opaqueSize(object: object, left: number, depth: number): number | undefined {
  if (ArrayBuffer.isView(object)) return object.byteLength
  if (object instanceof ArrayBuffer || object instanceof SharedArrayBuffer) return object.byteLength
  if (object instanceof Blob) return object.size
  if (types.isStringObject(object)) return object.length + 2
  if (object instanceof Date) return 26
  if (object instanceof Error) return 20 + object.message.length
  // JSON leaves their entries out, but a host that uses the value itself sees them.
  if (object instanceof Map || object instanceof Set) return entriesSize(object, left, depth)
  return undefined
}

/** Returns the value that JSON writes: an object may have `toJSON`. */
function jsonOf(object: object): unknown {
  const { toJSON } = object as { readonly toJSON?: unknown }
  return typeof toJSON === 'function' ? (toJSON.call(object, '') as unknown) : object
}

function entriesSize(
  entries: ReadonlyMap<unknown, unknown> | ReadonlySet<unknown>,
  left: number,
  depth: number,
): number {
  let size = 2 + 16 * entries.size
  for (const entry of entries) {
    if (size > left) break
    size += measure(entry, left - size, depth + 1)
  }
  return size
}

/** Avoids converting long integers to texts, which is slow. */
function digitsOf(value: bigint, left: number): number {
  const magnitude = value < 0n ? -value : value
  if (magnitude < 2n ** 64n) return String(value).length
  if (left <= 0 || !Number.isFinite(left)) return left <= 0 ? Infinity : value.toString(16).length * 2
  // Each decimal digit has fewer than four bits.
  if (magnitude >= 1n << BigInt(Math.ceil(left) * 4)) return Infinity
  return Math.ceil(magnitude.toString(16).length * 1.21)
}

/** Strings are cut no shorter while anything else can be shortened. */
const MIN_TEXT = 256

/**
 * Finds the longest strings with which everything fits; if none are short enough, the longest lists with short strings; if
 * that is not enough, as many levels as fit.
 *
 * Each attempt stops at the cap, and halves the remaining range.
 */
function shrunk(value: unknown, maxChars: number): unknown {
  const shortest = Math.min(MIN_TEXT, maxChars)
  const keys: KeyLists = new Map()
  const copyWith = (limits: OutputLimits) => new Copying(limits, maxChars, keys).copyAll(value)
  const fits = (limits: OutputLimits) => copyWith(limits) !== OVER
  const best = ((): OutputLimits => {
    const withText = (maxText: number) => ({ maxText, maxItems: Infinity, maxDepth: MAX_DEPTH })
    if (fits(withText(shortest))) return withText(largest(shortest, maxChars, (text) => fits(withText(text))))
    const withItems = (maxItems: number) => ({ maxText: shortest, maxItems, maxDepth: MAX_DEPTH })
    if (fits(withItems(0))) return withItems(largest(0, maxChars, (items) => fits(withItems(items))))
    const withDepth = (maxDepth: number) => ({ maxText: shortest, maxItems: 1, maxDepth })
    return withDepth(largest(1, MAX_DEPTH, (depth) => fits(withDepth(depth))))
  })()
  return orMarker(copyWith({ ...best, isLast: true }), maxChars)
}

interface OutputLimits {
  readonly maxText: number
  readonly maxItems: number
  readonly maxDepth: number
  /** Whether this attempt's copy is returned. */
  readonly isLast?: boolean
}

function orMarker(copy: unknown, maxChars: number): unknown {
  return copy === OVER
    ? cutText(`[cut: an output of more than ${maxChars} characters]`, Math.max(0, maxChars - 2))
    : copy
}

/** Returns the largest number that passes, to within a hundredth; `low` if none passes. */
function largest(low: number, high: number, passes: (value: number) => boolean): number {
  let known = low
  let limit = high
  while (limit - known > Math.max(1, known / 100)) {
    const middle = Math.floor((known + limit) / 2)
    if (passes(middle)) known = middle
    else limit = middle
  }
  return known
}

const OVER: unique symbol = Symbol('over the cap')

/** Caches the keys of objects, because listing many keys costs more than an attempt. */
type KeyLists = Map<object, readonly string[]>

/** One attempt to copy a value within limits. */
class Copying {
  readonly #limits: OutputLimits
  readonly #keys: KeyLists
  readonly #around = new Set<object>()
  #left: number

  constructor(limits: OutputLimits, maxChars: number, keys: KeyLists) {
    this.#limits = limits
    this.#keys = keys
    this.#left = maxChars
  }

  copyAll(value: unknown): unknown {
    try {
      return this.#copy(value, 0)
    } catch {
      return OVER
    }
  }

  #spend(chars: number): void {
    this.#left -= chars
    // oxlint-disable-next-line typescript/only-throw-error -- an error with a stack costs more than the try
    if (this.#left < 0) throw OVER
  }

  #copy(value: unknown, depth: number): unknown {
    switch (typeof value) {
      case 'string':
        return this.#text(value)
      case 'number':
      case 'boolean':
        this.#spend(measure(value, 0, 0))
        return value
      case 'bigint':
        return this.#digits(value)
      case 'object':
        break
      default:
        this.#spend(5)
        return undefined
    }
    if (value === null) {
      this.#spend(4)
      return value
    }
    return this.#copyObject(value, depth)
  }

  #copyObject(object: object, depth: number): unknown {
    if (this.#around.has(object)) return this.#text('[cut: it holds itself]')
    if (depth >= this.#limits.maxDepth) return this.#text('[cut: it is nested too deeply]')
    this.#around.add(object)
    try {
      if (Array.isArray(object)) return this.#copyList(object, depth)
      return isPlain(object) ? this.#copyFields(object, depth) : this.#copyInstance(object, depth)
    } catch (error) {
      if (error === OVER) throw error
      return this.#text('[cut: it cannot be read]')
    } finally {
      this.#around.delete(object)
    }
  }

  #text(text: string): string {
    const cut = cutText(text, this.#limits.maxText)
    this.#spend(cut.length + 2)
    return this.#limits.isLast && cut !== text ? detached(cut, text) : cut
  }

  #digits(value: bigint): unknown {
    const { maxText } = this.#limits
    const size = digitsOf(value, maxText)
    if (size > maxText) return this.#text('[cut: a number of too many digits]')
    this.#spend(size)
    return value
  }

  #copyList(list: readonly unknown[], depth: number): unknown {
    const kept = Math.min(list.length, this.#limits.maxItems)
    this.#spend(2)
    const items: unknown[] = []
    for (let i = 0; i < kept; i++) {
      this.#spend(1)
      items.push(this.#copy(list[i], depth + 1))
    }
    if (kept < list.length) {
      this.#spend(1)
      items.push(this.#copy(markerLike(list[0], `[cut: ${list.length - kept} of ${list.length} items]`), depth + 1))
    }
    return items
  }

  #copyFields(object: object, depth: number): unknown {
    const media = mediaMarker(object, this.#limits.maxText)
    if (media !== undefined) return this.#copy(media, depth)
    const fields = new Map<string, unknown>()
    const keys = this.#keys.get(object) ?? Object.keys(object)
    this.#keys.set(object, keys)
    // The fields of an object are its shape, so this many are always kept.
    const kept = Math.min(keys.length, Math.max(this.#limits.maxItems, MIN_FIELDS))
    this.#spend(2)
    for (let i = 0; i < kept; i++) {
      const key = keys[i] as string
      this.#spend(key.length + 4)
      fields.set(key, this.#copy((object as Record<string, unknown>)[key], depth + 1))
    }
    if (kept < keys.length) {
      this.#spend(CUT_KEY.length + 4)
      fields.set(CUT_KEY, this.#text(`[cut: ${keys.length - kept} of ${keys.length} fields]`))
    }
    return Object.fromEntries(fields)
  }

  #copyInstance(object: object, depth: number): unknown {
    if (object instanceof Date) {
      this.#spend(26)
      return new Date(Date.prototype.getTime.call(object))
    }
    if (types.isStringObject(object)) return this.#text(String.prototype.valueOf.call(object))
    if (object instanceof Error) return this.#text(messageOf(object))
    if (object instanceof Map || object instanceof Set) return this.#text(`[cut: ${object.size} entries]`)
    const bytes = opaqueSize(object, 0, depth)
    if (bytes !== undefined) return this.#text(`[cut: ${bytes} bytes of binary data]`)
    let json: unknown = object
    try {
      json = jsonOf(object)
    } catch {
      // The object's fields can still be shown.
    }
    return json === object ? this.#copyFields(object, depth) : this.#copy(json, depth + 1)
  }
}

const MIN_FIELDS = 16
const CUT_KEY = '[cut]'

/** Returns a text block for binary data that is too long, because half an image is useless; otherwise `undefined`. */
function mediaMarker(object: object, maxText: number): unknown {
  const { type, data, mimeType, mediaType = mimeType, blob, uri } = object as Record<string, unknown>
  if (typeof type === 'string' && typeof mediaType === 'string' && typeof data === 'string' && data.length > maxText)
    return { type: 'text', text: `[cut: ${data.length} characters of ${type}]` }
  if (typeof uri === 'string' && typeof blob === 'string' && blob.length > maxText)
    return { uri, mimeType: 'text/plain', text: `[cut: ${blob.length} characters of binary data]` }
  return undefined
}

/** A marker of the kind of the other items: a list of content blocks, or of objects, stays one. */
function markerLike(first: unknown, marker: string): unknown {
  if (typeof first !== 'object' || first === null || Array.isArray(first)) return marker
  return 'type' in first && typeof first.type === 'string' ? { type: 'text', text: marker } : { [CUT_KEY]: marker }
}

/** Returns a text of at most `maxChars` characters, cut between characters, with a marker that states the full length. */
export function cutText(text: string, maxChars: number): string {
  if (text.length <= maxChars) return text
  const marker = `… [cut: ${text.length} characters]`
  if (marker.length > maxChars) return head(text, Math.max(0, maxChars))
  return head(text, maxChars - marker.length) + marker
}

function head(text: string, length: number): string {
  const last = text.charCodeAt(length - 1)
  const isHalf = last >= 0xd800 && last <= 0xdbff
  return text.slice(0, isHalf ? length - 1 : length)
}

/** A slice keeps the whole original text in memory. It is copied only if that frees at least half of the text. */
function detached(cut: string, from: string): string {
  return cut.length > from.length / 2 ? cut : decoder.decode(encoder.encode(cut))
}

const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { ignoreBOM: true })

/** The audit stores fewer characters. This many are enough for the redactor to see a secret whole. */
const MAX_LENGTH = 16_384
const SAID_NOTHING = 'the tool answered with an error'

/** Returns `true` for an MCP result with `isError: true`: the tool ran and reports that it failed. Never throws. */
export function isToolError(output: unknown): boolean {
  if (typeof output !== 'object' || output === null) return false
  try {
    if (!Object.hasOwn(output, 'isError')) return false
    const { isError, content } = output as { readonly isError?: unknown; readonly content?: unknown }
    return isError === true && (content === undefined || Array.isArray(content))
  } catch {
    return false
  }
}

/** Returns the error text of such an output; `undefined` for any other output. */
export function toolErrorOf(output: unknown): string | undefined {
  return isToolError(output) ? textOf((output as { readonly content?: readonly unknown[] }).content ?? []) : undefined
}

function textOf(content: readonly unknown[]): string {
  let text = ''
  try {
    for (const block of content) {
      if (text.length > MAX_LENGTH) break
      const said = (block as { readonly text?: unknown } | null)?.text
      if (typeof said === 'string') text += text === '' ? said.slice(0, MAX_LENGTH) : `\n${said.slice(0, MAX_LENGTH)}`
    }
  } catch {
    // A block whose getter throws has no text.
  }
  return text === '' ? SAID_NOTHING : text.slice(0, MAX_LENGTH)
}

/**
 * Returns whether a value is read item by item as it comes: an async iterable or a `ReadableStream`.
 *
 * Lists, texts and other sync iterables are plain values.
 */
export function isStream(value: unknown): value is AsyncIterable<unknown> {
  if (typeof value !== 'object' || value === null) return false
  try {
    return isReadableStream(value) || typeof (value as AsyncIterable<unknown>)[Symbol.asyncIterator] === 'function'
  } catch {
    return false
  }
}

export function isReadableStream(value: unknown): value is ReadableStream<unknown> {
  return value instanceof ReadableStream
}
