import { ConfigError } from './errors.ts'
import { didYouMean } from './text.ts'

/** The known keys of one kind of object, and the noun for them in messages. */
export interface Shape {
  readonly keys: ReadonlySet<string>
  /** The noun, such as `key`, `option` or `field`. */
  readonly noun: string
}

/** Returns a shape of these keys. The type lists every key of `T`, so that a new option cannot be forgotten. */
export function shapeOf<T extends object>(keys: Readonly<Record<keyof T, true>>, noun = 'option'): Shape {
  return { keys: new Set(Object.keys(keys)), noun }
}

/**
 * Checks that a value is an object without unknown keys.
 *
 * Use it for each object that a host writes, because a misspelt option that is ignored would allow everything. Inherited
 * keys count too, as an options object may be an instance of a class.
 *
 * @throws {ConfigError} naming the path of the key and the nearest known one
 */
export function checkShape(path: string, value: unknown, shape: Shape): void {
  checkObject(path, value)
  for (const key in value)
    if (!shape.keys.has(key)) throw new ConfigError(path === '' ? key : `${path}.${key}`, describeUnknown(key, shape))
}

/** Checks that a value is an object with named fields. @throws {ConfigError} for a value without */
export function checkObject(path: string, value: unknown): asserts value is object {
  const problem = problemWithFields(value)
  if (problem !== undefined) throw new ConfigError(path, problem)
}

/**
 * Returns why a value has no named fields; `undefined` if it may have some.
 *
 * A promise without `await`, a `Map` or a list has none and would count as an empty object: a policy that denies nothing,
 * or a caller without restrictions.
 */
export function problemWithFields(value: unknown): string | undefined {
  if (typeof value !== 'object' || value === null) return NO_OBJECT
  if ('then' in value && typeof value.then === 'function') return 'is a promise: await it first'
  return Symbol.iterator in value ? NO_OBJECT : undefined
}

/**
 * Returns named things as a map.
 *
 * @throws {ConfigError} for a value without names, such as a list or a promise
 */
export function toNamedMap<T>(
  path: string,
  named: Readonly<Record<string, T>> | ReadonlyMap<string, T>,
): ReadonlyMap<string, T> {
  if (named instanceof Map) return named as ReadonlyMap<string, T>
  checkObject(path, named)
  return new Map(Object.entries(named as Readonly<Record<string, T>>))
}

const NO_OBJECT = 'must be an object'

/** Returns `unknown option; did you mean "policy"? The options are …`. */
export function describeUnknown(key: string, { keys, noun }: Shape): string {
  const near = didYouMean(key, keys)
  const list = `he ${noun}s are ${[...keys].join(', ')}`
  return `unknown ${noun}${near === '' ? `; t${list}` : `${near} T${list}`}`
}

/**
 * Checks that an instance of a class has no method whose name is a misspelling of one of `names`. Other methods are allowed.
 *
 * @throws {ConfigError} naming the path of the method and the nearest of the names
 */
export function checkMethods(path: string, instance: object, names: readonly string[]): void {
  const missing = names.filter((name) => !(name in instance))
  for (let holder = instance; holder !== Object.prototype && holder !== null; holder = Object.getPrototypeOf(holder))
    for (const name of Object.getOwnPropertyNames(holder)) {
      const near = names.includes(name) ? '' : didYouMean(name, missing)
      if (near !== '') throw new ConfigError(`${path}.${name}`, `unknown method${near}`)
    }
}
