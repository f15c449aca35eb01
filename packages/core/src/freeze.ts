import type { InputProblem } from './ports.ts'

const MAX_DEPTH = 64
const NOT_PLAIN: unique symbol = Symbol('not plain JSON')

/**
 * Gives a deeply frozen copy of plain JSON, so that what was decided is what runs.
 *
 * Refuses what JSON cannot say (functions, dates, NaN, lone surrogates), an own `__proto__`, and nesting
 * beyond 64 levels: what passes has a canonical form. A field that is `undefined` is left out.
 */
export function frozenCopy(input: unknown): { value: unknown } | { problem: InputProblem } {
  const value = copy(input, 0)
  return value === NOT_PLAIN ? { problem: findProblem(input, '', 0) as InputProblem } : { value }
}

function copy(value: unknown, depth: number): unknown {
  if (typeof value !== 'object' || value === null) return problemOf(value, depth) === undefined ? value : NOT_PLAIN
  if (problemOf(value, depth) !== undefined) return NOT_PLAIN
  return Array.isArray(value) ? copyArray(value, depth) : copyObject(value as Record<string, unknown>, depth)
}

function copyArray(list: readonly unknown[], depth: number): unknown {
  const items: unknown[] = []
  for (const item of list) {
    const copied = copy(item, depth + 1)
    if (copied === NOT_PLAIN) return NOT_PLAIN
    items.push(copied)
  }
  return Object.freeze(items)
}

function copyObject(object: Readonly<Record<string, unknown>>, depth: number): unknown {
  const fields: Record<string, unknown> = {}
  for (const key of Object.keys(object)) {
    const value = object[key]
    if (value === undefined) continue
    const copied = nameProblem(key) === undefined ? copy(value, depth + 1) : NOT_PLAIN
    if (copied === NOT_PLAIN) return NOT_PLAIN
    fields[key] = copied
  }
  return Object.freeze(fields)
}

/** Walks again what was found not to be plain, this time minding where it is. */
function findProblem(value: unknown, pointer: string, depth: number): InputProblem | undefined {
  const message = problemOf(value, depth)
  if (message !== undefined) return { pointer, message }
  if (typeof value !== 'object' || value === null) return undefined
  // A list is walked by its length: its holes are problems too.
  const entries: Iterable<[string | number, unknown]> = Array.isArray(value) ? value.entries() : Object.entries(value)
  for (const [key, item] of entries) {
    if (item === undefined && typeof key === 'string') continue
    const below = `${pointer}/${String(key).replaceAll('~', '~0').replaceAll('/', '~1')}`
    const wrongName = nameProblem(String(key))
    if (wrongName !== undefined) return { pointer: below.toWellFormed(), message: wrongName }
    const problem = findProblem(item, below, depth + 1)
    if (problem) return problem
  }
  return undefined
}

function nameProblem(key: string): string | undefined {
  if (key === '__proto__') return 'is a name that is not allowed'
  return key.isWellFormed() ? undefined : 'is a name with a lone surrogate'
}

/** Says what is wrong with one value, whatever it holds. */
function problemOf(value: unknown, depth: number): string | undefined {
  switch (typeof value) {
    case 'string':
      return value.isWellFormed() ? undefined : 'holds a lone surrogate'
    case 'boolean':
      return undefined
    case 'number':
      return Number.isFinite(value) ? undefined : 'is not a number that JSON can say'
    case 'object':
      break
    default:
      return `is of type ${typeof value}, which JSON cannot say`
  }
  if (value === null) return undefined
  if (depth >= MAX_DEPTH) return `is nested more than ${MAX_DEPTH} levels deep`
  if (Array.isArray(value)) return undefined
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null ? undefined : 'is not a plain object'
}
