import { isPlain } from '@toolgate/values/json'
import { ORIGINS, type Origin } from '../../ports/fact-read.ts'

/** Longer than all addresses of a call. */
const MAX_CHARS = 16 * 1024
const MAX_VALUES = 1000
const MAX_DEPTH = 64

/**
 * Returns the worst origin of all values within a value; `untrusted` if there are too many, and `undefined` if there are
 * none. `null` and empty values do not count. Keys count as values. `isText` is false for numbers and booleans.
 */
export function worstOf(value: unknown, originOf: (text: string, isText: boolean) => Origin): Origin | undefined {
  const left = { chars: MAX_CHARS, values: MAX_VALUES }
  let worst: number = ORIGINS.length

  function take(origin: Origin): void {
    worst = Math.min(worst, ORIGINS.indexOf(origin))
  }

  function walkText(text: string, isText: boolean): void {
    left.chars -= text.length
    take(left.chars < 0 ? 'untrusted' : originOf(text, isText))
  }

  function walk(part: unknown, depth: number): void {
    if (--left.values < 0 || depth > MAX_DEPTH) return take('untrusted')
    if (part === undefined || part === null || part === '') return
    if (typeof part === 'string') walkText(part, true)
    else if (typeof part === 'number' || typeof part === 'bigint' || typeof part === 'boolean')
      walkText(String(part), false)
    else if (Array.isArray(part)) walkList(part, depth)
    else if (isPlain(part)) walkFields(part, depth)
    else take('untrusted')
  }

  function walkList(parts: readonly unknown[], depth: number): void {
    for (const part of parts) {
      if (worst === 0) return
      walk(part, depth + 1)
    }
  }

  function walkFields(fields: object, depth: number): void {
    for (const [key, part] of Object.entries(fields)) {
      if (worst === 0) return
      if (key !== '') walkText(key, true)
      walk(part, depth + 1)
    }
  }

  walk(value, 0)
  return ORIGINS[worst]
}

/** Returns whether a value contains no values. */
export function saysNothing(value: unknown): boolean {
  return worstOf(value, () => 'user') === undefined
}
