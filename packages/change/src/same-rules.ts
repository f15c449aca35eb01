import { canonicalize, readOwnJson } from '@toolgate/values/json'

/** Returns whether two parts of rules are equal as data. A function equals only itself. */
export function isSame(one: unknown, other: unknown): boolean {
  return one === other || textOf(one) === textOf(other)
}

const functions = new WeakMap<object, string>()

function textOf(value: unknown): string {
  return canonicalize(
    readOwnJson(
      JSON.stringify(value ?? null, (_, part: unknown) => {
        if (part instanceof Map) return { '': [...part] }
        if (typeof part !== 'function') return part
        if (!functions.has(part)) functions.set(part, crypto.randomUUID())
        return functions.get(part)
      }),
    ),
  )
}
