import { ConfigError } from '../errors.ts'
import { didYouMean } from './did-you-mean.ts'

/** The known keys of one kind of object, and what the message calls them. */
export interface Shape {
  readonly keys: ReadonlySet<string>
  /** Such as `key`, `option` or `field`. */
  readonly noun: string
}

/** Returns a shape of these keys. The type lists every key of `T`, so that a new option cannot be forgotten. */
export function shapeOf<T extends object>(keys: Readonly<Record<keyof T, true>>, noun = 'option'): Shape {
  return { keys: new Set(Object.keys(keys)), noun }
}

/**
 * Checks that a value is an object without unknown keys.
 *
 * A misspelt option that is ignored would allow everything, so each object that a host writes passes here.
 * Inherited keys count too: an options object may be made by a class.
 *
 * @throws {ConfigError} naming the path of the key and the nearest known one
 */
export function checkShape(path: string, value: unknown, shape: Shape): void {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new ConfigError(path, 'must be an object')
  for (const key in value)
    if (!shape.keys.has(key)) throw new ConfigError(path === '' ? key : `${path}.${key}`, describeUnknown(key, shape))
}

/** Returns `unknown option; did you mean "policy"? The options are …`. */
export function describeUnknown(key: string, { keys, noun }: Shape): string {
  const near = didYouMean(key, keys)
  const list = `he ${noun}s are ${[...keys].join(', ')}`
  return `unknown ${noun}${near === '' ? `; t${list}` : `${near} T${list}`}`
}

/** Whether a value is an object literal, and not an instance of a class, which may keep fields of its own. */
export function isPlainObject(value: unknown): value is Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}
