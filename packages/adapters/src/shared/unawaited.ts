import { ConfigError } from '@toolgate/core'

/**
 * A promise of options that must be awaited before they are spread.
 *
 * `{ tools, ...guard(gate, caller) }` without `await` would spread nothing: the tools would bypass the gate. With this
 * type such code does not compile, because a text stands where an option is expected, and at run time the spread
 * throws. The same holds for the promises that its `then`, `catch` and `finally` return.
 */
export type Unawaited<T, Keys extends string> = Promise<T> & { readonly [K in Keys]: 'write: ...(await guard(…))' }

/**
 * Returns a function that adds fields to a promise. Reading such a field, as a spread does, throws.
 *
 * The descriptors are created once, because creating them for each promise would cost ten times as much.
 */
export function createUnawaited<const Keys extends string>(
  written: string,
  keys: readonly Keys[],
): <T>(work: Promise<T>) => Unawaited<T, Keys> {
  const refuse: PropertyDescriptor & ThisType<Promise<unknown>> = {
    get() {
      // Nobody awaits this promise any longer.
      void then.call(this, undefined, () => {})
      throw new ConfigError('guard', `${written} was spread before it was awaited: write ...(await ${written})`)
    },
    enumerable: true,
  }
  const descriptors: PropertyDescriptorMap = Object.fromEntries(keys.map((key) => [key, refuse]))
  // `catch` and `finally` call it as well.
  // oxlint-disable-next-line unicorn/no-thenable -- on promises only
  descriptors['then'] = {
    value(this: Promise<unknown>, ...args: Parameters<typeof then>) {
      return Object.defineProperties(then.apply(this, args), descriptors)
    },
  }
  return (work) => Object.defineProperties(work, descriptors) as never
}

// oxlint-disable-next-line typescript/unbound-method -- called on the promise that it belongs to
const { then }: Promise<unknown> = Promise.prototype
