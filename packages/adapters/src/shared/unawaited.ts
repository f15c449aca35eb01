import { ConfigError } from '@toolgate/core'

/**
 * A promise of options that are to be spread, which cannot be spread itself.
 *
 * `{ tools, ...guard(gate, caller) }` without `await` would spread nothing: the tools would run past the gate. Here the
 * compiler finds a text where it expects an option, and at run time the spread throws.
 */
export type Unawaited<T, Keys extends string> = Promise<T> & { readonly [K in Keys]: 'write: ...(await guard(…))' }

/** Gives a promise own fields that throw when they are read, as a spread does. */
export function unawaited<T, const Keys extends string>(
  work: Promise<T>,
  written: string,
  keys: readonly Keys[],
): Unawaited<T, Keys> {
  const refuse = (): never => {
    // Nobody will wait for it any more.
    work.catch(() => {})
    throw new ConfigError('guard', `${written} was spread before it was awaited: write ...(await ${written})`)
  }
  const fields = keys.map((key) => [key, { get: refuse, enumerable: true, configurable: true }] as const)
  return Object.defineProperties(work, Object.fromEntries(fields)) as Unawaited<T, Keys>
}
