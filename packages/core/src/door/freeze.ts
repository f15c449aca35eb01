import type { InputProblem } from '../ports.ts'

const MAX_DEPTH = 64

/**
 * Gives a deeply frozen copy of plain JSON, so that what was decided is what runs.
 *
 * Refuses what JSON cannot say (functions, dates, NaN), an own `__proto__`, and nesting beyond 64 levels.
 */
export function frozenCopy(input: unknown): { value: unknown } | { problem: InputProblem } {
  const path: string[] = []
  const copy = (value: unknown): unknown => {
    switch (typeof value) {
      case 'string':
      case 'boolean':
        return value
      case 'number':
        return Number.isFinite(value) ? value : fail(path, 'is not a number that JSON can say')
      case 'object':
        break
      default:
        return fail(path, `is of type ${typeof value}, which JSON cannot say`)
    }
    if (value === null) return null
    if (path.length >= MAX_DEPTH) return fail(path, `is nested more than ${MAX_DEPTH} levels deep`)
    return Array.isArray(value) ? copyArray(value) : copyObject(value)
  }
  const copyArray = (list: readonly unknown[]) => {
    const items: unknown[] = []
    for (let i = 0; i < list.length; i++) {
      path.push(String(i))
      items.push(copy(list[i]))
      path.pop()
    }
    return Object.freeze(items)
  }
  const copyObject = (object: object) => {
    const prototype: unknown = Object.getPrototypeOf(object)
    if (prototype !== Object.prototype && prototype !== null) fail(path, 'is not a plain object')
    const fields: Record<string, unknown> = {}
    for (const [key, value] of Object.entries(object)) {
      if (value === undefined) continue
      path.push(key)
      if (key === '__proto__') fail(path, 'is a name that is not allowed')
      fields[key] = copy(value)
      path.pop()
    }
    return Object.freeze(fields)
  }
  try {
    return { value: copy(input) }
  } catch (error) {
    if (error instanceof NotPlainJson) return { problem: error.problem }
    throw error
  }
}

class NotPlainJson extends Error {
  readonly problem: InputProblem
  constructor(problem: InputProblem) {
    super(problem.message)
    this.problem = problem
  }
}

function fail(path: readonly string[], message: string): never {
  throw new NotPlainJson({
    pointer: path.map((key) => `/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`).join(''),
    message,
  })
}
