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
  const copy = createCopy(options)
  return (value, work) => {
    try {
      if (typeof value === 'string') return options.redactText(value, work)
      return isClean(value, work) ? value : copy(value, work)
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

function createCopy({ keys, redactText, isMarker }: WalkOptions): (value: unknown, work: Work) => unknown {
  return (value, work) => copy(value, { copies: new Map(), work }, 0)

  function copy(value: unknown, seen: Seen, depth: number): unknown {
    switch (typeof value) {
      case 'string':
        return redactText(value, seen.work)
      case 'number':
        return Number.isFinite(value) ? value : null
      case 'boolean':
        return value
      case 'bigint': {
        const digits = String(value)
        const shown = redactText(digits, seen.work)
        return shown === digits ? (toInteger(value) ?? digits) : shown
      }
      case 'object':
        return value === null ? null : copyObject(value, seen, depth)
      default:
        return undefined
    }
  }

  function copyObject(value: object, seen: Seen, depth: number): unknown {
    const { copies, work } = seen
    if (copies.has(value)) return copies.get(value)
    if (depth >= MAX_DEPTH) return UNSHOWN.tooDeep
    if (copies.size >= MAX_OBJECTS) return UNSHOWN.tooMuch
    spend(work, OBJECT_STEPS)
    copies.set(value, UNSHOWN.circular)
    const result = copyParts(value, seen, depth)
    copies.set(value, result)
    return result
  }

  function copyParts(value: object, seen: Seen, depth: number): unknown {
    try {
      if (Array.isArray(value)) return copyList(value, seen, depth)
      const plain = toPlain(value)
      if (typeof plain !== 'object' || plain === null || plain !== value) return copy(plain, seen, depth + 1)
      return copyRecord(plain, seen, depth)
    } catch (error) {
      // Then the whole value is too much: its other parts would fail too.
      if (error instanceof WorkSpentError) throw error
      return UNSHOWN.unreadable
    }
  }

  function copyList(list: readonly unknown[], seen: Seen, depth: number): unknown[] {
    const result: unknown[] = []
    let flag: SecretKey | undefined
    for (let i = 0; i < list.length; i++) {
      const item = readAt(list, i)
      const row = typeof item === 'string' && !item.startsWith('-') ? flag : undefined
      result.push((row ? hide(item, row, seen, depth) : copy(item, seen, depth + 1)) ?? null)
      flag = typeof item === 'string' && item.startsWith('--') ? keys.find(item, seen.work) : undefined
    }
    return result
  }

  function copyRecord(record: object, seen: Seen, depth: number): PlainRecord {
    const result: Record<string, unknown> = {}
    const named = namedSecret(record)
    const put = createPut(result)
    for (const key of Object.keys(record)) {
      const item = readAt(record, key)
      spend(seen.work, KEY_STEPS)
      const row = named && key === 'value' ? named : keys.find(key, seen.work)
      const shown = row ? hide(item, row, seen, depth) : copy(item, seen, depth + 1)
      if (shown !== undefined) put(redactText(key, seen.work), shown)
    }
    return result
  }

  /** Returns the row of `{ name: 'password', value: … }`. */
  function namedSecret(record: object): SecretKey | undefined {
    if (!Object.hasOwn(record, 'value')) return undefined
    for (const label of LABELS) {
      const name = Object.hasOwn(record, label) ? readAt(record, label) : undefined
      if (typeof name === 'string') return keys.find(name)
    }
    return undefined
  }

  function hide(value: unknown, row: SecretKey, seen: Seen, depth: number): unknown {
    if (typeof value === 'string' && isMarker(value)) return value
    return isSecret(value, row) ? toMarker(row.name) : copy(value, seen, depth + 1)
  }
}

interface Seen {
  /** The copies by their originals. While an object is being copied, its copy is `[circular]`. */
  readonly copies: Map<object, unknown>
  readonly work: Work
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
