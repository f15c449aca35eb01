import { isSecretValue } from './assignments.ts'
import type { KeyNames, SecretKey } from './secret-keys.ts'
import { toMarker } from './spans.ts'
import { toInteger } from '../json/integers.ts'
import { spend, type Work, WorkSpentError } from '../work.ts'

interface WalkOptions {
  readonly keys: KeyNames
  /** Redacts a text. @throws {WorkSpentError} when the steps run out */
  readonly redactText: (text: string, work: Work) => string
  readonly isMarker: (text: string) => boolean
}

/** The texts in place of values that cannot be shown. */
export const UNSHOWN = {
  circular: '[circular]',
  tooDeep: '[too deep]',
  tooMuch: '[too much]',
  unreadable: '[unreadable]',
} as const

const MAX_DEPTH = 512
/** The most objects, because getters may return new objects forever. */
const MAX_OBJECTS = 1_000_000
const QUICK_DEPTH = 32
const QUICK_OBJECTS = 256

/**
 * Returns a function that returns a value as plain JSON with its secrets masked. Small plain JSON without a secret is
 * returned as it is, any other value as a copy in which each object is copied once.
 *
 * Circular, too deep and unreadable values become texts that say so. An integer beyond 2^53 stays a `bigint`. The argument is never changed.
 */
export function createWalk(options: WalkOptions): (value: unknown, work: Work) => unknown {
  const isClean = createCleanCheck(options)
  return (value, work) => {
    try {
      if (typeof value === 'string') return options.redactText(value, work)
      return isClean(value, work) ? value : new Copy(options, work).of(value, 0)
    } catch (error) {
      return unshown(error)
    }
  }
}

function unshown(error: unknown): string {
  return error instanceof WorkSpentError ? UNSHOWN.tooMuch : UNSHOWN.unreadable
}

/** Steps for copying a key, and an object. */
const KEY_STEPS = 10
const OBJECT_STEPS = 20

/** Returns a check for plain JSON without a secret. A value that is large, deep or unreadable fails it. */
function createCleanCheck({ keys, redactText }: WalkOptions): (value: unknown, work: Work) => boolean {
  let left = 0
  return (value, work) => {
    left = QUICK_OBJECTS
    try {
      return isClean(value, 0, work)
    } catch {
      return false
    }
  }

  function isClean(value: unknown, depth: number, work: Work): boolean {
    switch (typeof value) {
      case 'string':
        return redactText(value, work) === value
      case 'number':
        return Number.isFinite(value)
      case 'bigint':
        return toInteger(value) === value && redactText(String(value), work) === String(value)
      case 'boolean':
        return true
      case 'object':
        if (value === null) return true
        if (depth > QUICK_DEPTH || --left < 0) return false
        return Array.isArray(value) ? isCleanList(value, depth, work) : isCleanRecord(value as PlainRecord, depth, work)
      default:
        return false
    }
  }

  function isCleanList(list: readonly unknown[], depth: number, work: Work): boolean {
    for (let i = 0; i < list.length; i++) {
      const item = list[i]
      if (!isClean(item, depth + 1, work)) return false
      if (typeof item === 'string' && item.startsWith('--') && keys.find(item, work)) return false
    }
    return true
  }

  function isCleanRecord(record: PlainRecord, depth: number, work: Work): boolean {
    const prototype: unknown = Object.getPrototypeOf(record)
    if (prototype !== Object.prototype && prototype !== null) return false
    for (const key of Object.keys(record)) {
      // `value` may belong to a `name`. The copy checks that.
      if (key === 'value' || keys.find(key, work) !== undefined) return false
      if (redactText(key, work) !== key || !isClean(record[key], depth + 1, work)) return false
    }
    return true
  }
}

type PlainRecord = Readonly<Record<string, unknown>>

/** Copies one value, with its secrets masked. */
class Copy {
  readonly #options: WalkOptions
  readonly #work: Work
  /** The copies by their originals. While an object is being copied, its copy is `[circular]`. */
  readonly #copies = new Map<object, unknown>()

  constructor(options: WalkOptions, work: Work) {
    this.#options = options
    this.#work = work
  }

  of(value: unknown, depth: number): unknown {
    switch (typeof value) {
      case 'string':
        return this.#options.redactText(value, this.#work)
      case 'number':
        return Number.isFinite(value) ? value : null
      case 'boolean':
        return value
      case 'bigint': {
        const digits = String(value)
        const shown = this.#options.redactText(digits, this.#work)
        return shown === digits ? (toInteger(value) ?? digits) : shown
      }
      case 'object':
        return value === null ? null : this.#copyObject(value, depth)
      default:
        return undefined
    }
  }

  #copyObject(value: object, depth: number): unknown {
    const copies = this.#copies
    if (copies.has(value)) return copies.get(value)
    if (depth >= MAX_DEPTH) return UNSHOWN.tooDeep
    if (copies.size >= MAX_OBJECTS) return UNSHOWN.tooMuch
    spend(this.#work, OBJECT_STEPS)
    copies.set(value, UNSHOWN.circular)
    const result = this.#copyParts(value, depth)
    copies.set(value, result)
    return result
  }

  #copyParts(value: object, depth: number): unknown {
    try {
      if (Array.isArray(value)) return this.#copyList(value, depth)
      const plain = toPlain(value)
      if (typeof plain !== 'object' || plain === null || plain !== value) return this.of(plain, depth + 1)
      return this.#copyRecord(plain, depth)
    } catch (error) {
      // Then the whole value is too much: its other parts would fail too.
      if (error instanceof WorkSpentError) throw error
      return UNSHOWN.unreadable
    }
  }

  #copyList(list: readonly unknown[], depth: number): unknown[] {
    const result: unknown[] = []
    let flag: SecretKey | undefined
    for (let i = 0; i < list.length; i++) {
      const item = readAt(list, i)
      const row = typeof item === 'string' && !item.startsWith('-') ? flag : undefined
      result.push((row ? this.#hide(item, row, depth) : this.of(item, depth + 1)) ?? null)
      flag = typeof item === 'string' && item.startsWith('--') ? this.#options.keys.find(item, this.#work) : undefined
    }
    return result
  }

  #copyRecord(record: object, depth: number): PlainRecord {
    const result: Record<string, unknown> = {}
    const named = this.#namedSecret(record)
    const put = createPut(result)
    for (const key of Object.keys(record)) {
      const item = readAt(record, key)
      spend(this.#work, KEY_STEPS)
      const row = named && key === 'value' ? named : this.#options.keys.find(key, this.#work)
      const shown = row ? this.#hide(item, row, depth) : this.of(item, depth + 1)
      if (shown !== undefined) put(this.#options.redactText(key, this.#work), shown)
    }
    return result
  }

  /** Returns the row of `{ name: 'password', value: … }`. */
  #namedSecret(record: object): SecretKey | undefined {
    if (!Object.hasOwn(record, 'value')) return undefined
    for (const label of LABELS) {
      const name = Object.hasOwn(record, label) ? readAt(record, label) : undefined
      if (typeof name === 'string') return this.#options.keys.find(name)
    }
    return undefined
  }

  #hide(value: unknown, row: SecretKey, depth: number): unknown {
    if (typeof value === 'string' && this.#options.isMarker(value)) return value
    return isSecret(value, row) ? toMarker(row.name) : this.of(value, depth + 1)
  }
}

const LABELS = ['name', 'key', 'header', 'field'] as const

function isSecret(value: unknown, { values }: SecretKey): boolean {
  switch (typeof value) {
    case 'string':
      return isSecretValue(values, value)
    case 'number':
    case 'bigint':
      return isSecretValue(values, String(value))
    case 'object':
      return value !== null && values === 'any'
    default:
      return false
  }
}

function readAt(from: object, key: string | number): unknown {
  try {
    return Reflect.get(from, key)
  } catch {
    return UNSHOWN.unreadable
  }
}

/** Returns what JSON writes for an object, which is the result of its `toJSON`. Errors become their message, bytes their count. */
function toPlain(value: object): unknown {
  if (value instanceof Error) return { name: value.name, message: value.message }
  if (ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`
  if (value instanceof Map) return Object.fromEntries(value)
  if (value instanceof Set) return [...value]
  const toJSON: unknown = Reflect.get(value, 'toJSON')
  return typeof toJSON === 'function' ? toJSON.call(value) : value
}

/** Adds fields to a record. Keys that become the same marker get a number; `__proto__` is an ordinary key. */
function createPut(record: Record<string, unknown>): (key: string, value: unknown) => void {
  const numbers = new Map<string, number>()
  return (key, value) => {
    let free = key
    while (Object.hasOwn(record, free)) {
      const number = (numbers.get(key) ?? 1) + 1
      numbers.set(key, number)
      free = `${key} ${number}`
    }
    Object.defineProperty(record, free, { value, enumerable: true, configurable: true, writable: true })
  }
}
