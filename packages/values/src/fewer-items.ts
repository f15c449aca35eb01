import { isObject, type JsonObject } from './json/json.ts'
import { sizeOf } from './output.ts'

/** A value with whole items left out of its lists. */
export interface FewerItems {
  readonly value: unknown
  /** The shortened lists. The path of a list within the value is such as `rows`, or empty for the value itself. */
  readonly cut: readonly { readonly path: string; readonly kept: number; readonly of: number }[]
}

interface FoundList {
  readonly path: readonly string[]
  readonly items: readonly unknown[]
  readonly size: number
}

const MAX_LISTS = 16
const MAX_DEPTH = 8

/**
 * Returns a value of at most `maxChars` characters of JSON, with whole items left out at the end of its largest lists;
 * `undefined` if that is not enough. Lists within lists stay whole, because they may have a fixed length.
 */
export function withFewerItems(value: unknown, maxChars: number): FewerItems | undefined {
  if (maxChars <= 0) return undefined
  if (sizeOf(value, maxChars) <= maxChars) return { value, cut: [] }
  const lists: FoundList[] = []
  collect(value, [], lists, maxChars)
  const cut: { path: string; kept: number; of: number }[] = []
  let rest = value
  for (const { path, items } of lists.toSorted((a, b) => b.size - a.size)) {
    const without = withAt(rest, path, [])
    const left = maxChars - sizeOf(without, maxChars)
    const kept = left > 0 ? countWithin(items, left) : 0
    rest = kept === 0 ? without : withAt(rest, path, items.slice(0, kept))
    cut.push({ path: path.join('.'), kept, of: items.length })
    if (left >= 0) return { value: rest, cut }
  }
  return undefined
}

function collect(value: unknown, path: readonly string[], found: FoundList[], maxChars: number): void {
  if (found.length >= MAX_LISTS || path.length > MAX_DEPTH) return
  if (Array.isArray(value)) {
    if (value.length > 0) found.push({ path, items: value, size: sizeOf(value, maxChars) })
  } else if (isObject(value)) {
    for (const [key, item] of Object.entries(value)) collect(item, [...path, key], found, maxChars)
  }
}

function withAt(value: unknown, [key, ...rest]: readonly string[], list: readonly unknown[]): unknown {
  if (key === undefined) return list
  const object = value as JsonObject
  return Object.fromEntries(
    Object.entries(object).map(([name, item]) => [name, name === key ? withAt(item, rest, list) : item]),
  )
}

/** Returns how many items from the start have at most this size together. */
function countWithin(items: readonly unknown[], maxChars: number): number {
  let left = maxChars
  for (const [i, item] of items.entries()) {
    left -= 1 + sizeOf(item, left)
    if (left < 0) return i
  }
  return items.length
}
