import { ConfigError } from '@toolgate/core'

/**
 * A promise of options to spread, which must not be spread itself.
 *
 * `{ tools, ...guard(gate, caller) }` without `await` would spread nothing: the tools would run past the gate. With this
 * type the compiler finds a text where it expects an option, and at run time the spread throws. The same holds for the
 * promises that its `then`, `catch` and `finally` return.
 */
export type Unawaited<T, Keys extends string> = Promise<T> & { readonly [K in Keys]: 'write: ...(await guard(…))' }

/**
 * Returns a function that adds fields to a promise which throw when they are read, as a spread does.
 *
 * The descriptors are made once: making them for each promise would cost ten times as much.
 */
export function createUnawaited<const Keys extends string>(
  written: string,
  keys: readonly Keys[],
): <T>(work: Promise<T>) => Unawaited<T, Keys> {
  const refuse: PropertyDescriptor & ThisType<Promise<unknown>> = {
    get() {
      // Nobody awaits it any longer.
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
