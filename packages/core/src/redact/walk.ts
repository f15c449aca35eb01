import type { NamesSecret } from './key-names.ts'
import { isSecretValue } from './assignments.ts'
import type { SecretKey } from './secret-keys.ts'
import { toMarker } from './spans.ts'

export interface WalkOptions {
  readonly namesSecret: NamesSecret
  readonly redactText: (text: string) => string
  readonly isMarker: (text: string) => boolean
}

/** What stands where a value cannot be shown. */
export const UNSHOWN = { circular: '[circular]', tooDeep: '[too deep]', unreadable: '[unreadable]' } as const

const MAX_DEPTH = 512
const QUICK_VALUES = 256

/**
 * Gives a copy of a value as plain JSON, with what is secret replaced.
 *
 * A value that leads back to itself, is too deep or cannot be read shows as such; the given one is never changed.
 */
export function createWalk({ namesSecret, redactText, isMarker }: WalkOptions): (value: unknown) => unknown {
  return (value) => {
    if (typeof value === 'string') return redactText(value)
    try {
      return copy(value, new Walk(undefined), 0)
    } catch (error) {
      if (error !== TOO_MANY) return UNSHOWN.unreadable
    }
    try {
      return copy(value, new Walk(new Map()), 0)
    } catch {
      return UNSHOWN.unreadable
    }
  }

  function copy(value: unknown, walk: Walk, depth: number): unknown {
    switch (typeof value) {
      case 'string':
        return redactText(value)
      case 'number':
        return Number.isFinite(value) ? value : null
      case 'boolean':
        return value
      case 'bigint':
        return redactText(String(value))
      case 'object':
        return value === null ? null : copyObject(value, walk, depth)
      default:
        return undefined
    }
  }

  function copyObject(value: object, walk: Walk, depth: number): unknown {
    const seen = walk.enter(value)
    if (seen !== undefined) return seen
    if (depth >= MAX_DEPTH) return UNSHOWN.tooDeep
    const result = copyParts(value, walk, depth)
    walk.leave(value, result)
    return result
  }

  function copyParts(value: object, walk: Walk, depth: number): unknown {
    try {
      if (Array.isArray(value)) return copyList(value, walk, depth)
      const plain = toPlain(value)
      return typeof plain === 'object' && plain !== null ? copyRecord(plain, walk, depth) : copy(plain, walk, depth + 1)
    } catch (error) {
      if (error === TOO_MANY) throw error
      return UNSHOWN.unreadable
    }
  }

  function copyList(list: readonly unknown[], walk: Walk, depth: number): unknown[] {
    const result: unknown[] = []
    let flag: SecretKey | undefined
    for (let i = 0; i < list.length; i++) {
      const item = readAt(list, i)
      result.push(
        flag && typeof item === 'string' && !item.startsWith('-')
          ? hide(item, flag, walk, depth)
          : (copy(item, walk, depth + 1) ?? null),
      )
      flag = typeof item === 'string' && item.startsWith('--') ? namesSecret(item) : undefined
    }
    return result
  }

  function copyRecord(record: object, walk: Walk, depth: number): Record<string, unknown> {
    const result: Record<string, unknown> = {}
    const named = namedSecret(record)
    for (const key of Object.keys(record)) {
      const item = readAt(record, key)
      const row = named && key === 'value' ? named : namesSecret(key)
      const shown = row ? hide(item, row, walk, depth) : copy(item, walk, depth + 1)
      if (shown !== undefined) put(result, redactText(key), shown)
    }
    return result
  }

  /** The row of `{ name: 'password', value: … }`. */
  function namedSecret(record: object): SecretKey | undefined {
    if (!Object.hasOwn(record, 'value')) return undefined
    for (const label of LABELS) {
      const name = Object.hasOwn(record, label) ? readAt(record, label) : undefined
      if (typeof name === 'string') return namesSecret(name)
    }
    return undefined
  }

  function hide(value: unknown, row: SecretKey, walk: Walk, depth: number): unknown {
    if (typeof value === 'string' && isMarker(value)) return value
    return isSecret(value, row) ? toMarker(row.name) : copy(value, walk, depth + 1)
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
    return (from as Record<string | number, unknown>)[key]
  } catch {
    return UNSHOWN.unreadable
  }
}

/** What JSON makes of an object: what its `toJSON` says, a byte array by its length, an error by its text. */
function toPlain(value: object): unknown {
  if (value instanceof Error) return { name: value.name, message: value.message }
  if (ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`
  if (value instanceof Map) return Object.fromEntries(value)
  if (value instanceof Set) return [...value]
  const { toJSON } = value as { toJSON?: unknown }
  return typeof toJSON === 'function' ? toJSON.call(value) : value
}

/** Two keys that hide behind one marker are told apart by a number; `__proto__` is a key like any other. */
function put(record: Record<string, unknown>, key: string, value: unknown): void {
  let free = key
  for (let i = 2; Object.hasOwn(record, free); i++) free = `${key} ${i}`
  if (free === '__proto__')
    Object.defineProperty(record, free, { value, enumerable: true, configurable: true, writable: true })
  else record[free] = value
}

const TOO_MANY = new Error('more than a quick walk takes')

/** Without a map of what was seen, a walk is cheap and ends after a few values; with one, each object is copied once. */
class Walk {
  readonly #seen: Map<object, unknown> | undefined
  #left = QUICK_VALUES

  constructor(seen: Map<object, unknown> | undefined) {
    this.#seen = seen
  }

  enter(value: object): unknown {
    if (this.#seen === undefined) {
      if (--this.#left < 0) throw TOO_MANY
      return undefined
    }
    const seen = this.#seen.get(value)
    if (seen === undefined) this.#seen.set(value, UNSHOWN.circular)
    return seen
  }

  leave(value: object, result: unknown): void {
    this.#seen?.set(value, result)
  }
}
