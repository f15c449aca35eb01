import { spend, type Work } from '../work.ts'
import { isPlainObject } from './run.ts'

const NODE_STEPS = 4
/** Characters that are compared or copied in the time of one step. */
const CHARS_PER_STEP = 16

/** Answers whether two JSON values are equal: `1` and `1.0` are, and the order of keys does not matter. */
export function isEqual(a: unknown, b: unknown, work: Work): boolean {
  if (typeof a === 'string') {
    if (typeof b !== 'string' || a.length !== b.length) return false
    spend(work, NODE_STEPS + a.length / CHARS_PER_STEP)
    return a === b
  }
  spend(work, NODE_STEPS)
  if (Array.isArray(a))
    return Array.isArray(b) && a.length === b.length && a.every((item, i) => isEqual(item, b[i], work))
  if (!isPlainObject(a) || !isPlainObject(b)) return a === b
  const keys = Object.keys(a)
  spend(work, keys.length * NODE_STEPS)
  return (
    keys.length === Object.keys(b).length && keys.every((key) => Object.hasOwn(b, key) && isEqual(a[key], b[key], work))
  )
}

const ITEM_STEPS = 36
const HASHED_CHARS = 64

/**
 * Answers whether no two items are equal, in time linear in the items; items that only look alike cost the steps of
 * comparing them.
 */
export function allDiffer(items: readonly unknown[], work: Work): boolean {
  const plain = new Set<unknown>()
  const alike = new Map<number, unknown[]>()
  for (const item of items) {
    spend(work, ITEM_STEPS)
    if (typeof item !== 'object' || item === null) {
      if (typeof item === 'string') spend(work, item.length / CHARS_PER_STEP)
      if (plain.has(item)) return false
      plain.add(item)
      continue
    }
    const hash = hashOf(item, work)
    const others = alike.get(hash)
    if (others?.some((other) => isEqual(other, item, work))) return false
    if (others) others.push(item)
    else alike.set(hash, [item])
  }
  return true
}

/** Equal for equal values. */
function hashOf(value: unknown, work: Work): number {
  spend(work, NODE_STEPS)
  if (typeof value === 'string') return hashText(value, work)
  if (typeof value === 'number') return mix(3, Math.trunc(value) | 0, (value * 1_000_003) | 0)
  if (Array.isArray(value)) return value.reduce<number>((hash, item) => mix(hash, hashOf(item, work)), value.length)
  if (!isPlainObject(value)) return value === null ? 1 : value === true ? 2 : 4
  // The order of keys does not matter, so their hashes are added.
  let hash = 0
  for (const key of Object.keys(value)) hash = (hash + mix(hashText(key, work), hashOf(value[key], work))) | 0
  return hash
}

function hashText(text: string, work: Work): number {
  const half = HASHED_CHARS / 2
  const sample = text.length <= HASHED_CHARS ? text : text.slice(0, half) + text.slice(-half)
  spend(work, sample.length / 2)
  let hash = text.length
  for (let i = 0; i < sample.length; i++) hash = (Math.imul(hash, 31) + sample.charCodeAt(i)) | 0
  return hash
}

function mix(...numbers: readonly number[]): number {
  let hash = 7
  for (const number of numbers) hash = Math.imul(hash ^ number, 0x9e3779b1)
  return hash ^ (hash >>> 15)
}
