import { isObject } from '@toolgate/values/json'

/**
 * Returns the values of the input fields that say where the tool sends data, without null and empty values.
 *
 * A dot in a name steps into an object, and into each item of a list: `recipients.email`.
 */
export function addresseesIn(input: unknown, names: readonly string[]): readonly unknown[] {
  return names.flatMap((name) => valuesAt(input, name)).filter((value) => !isEmpty(value))
}

/**
 * Returns whether an input has one of the fields, empty or not. An empty field names nobody, so also nobody that the user
 * named.
 */
export function hasAddressees(input: unknown, names: readonly string[]): boolean {
  return names.some((name) => valuesAt(input, name).length > 0)
}

function valuesAt(value: unknown, name: string): readonly unknown[] {
  if (Array.isArray(value)) return value.flatMap((item) => valuesAt(item, name))
  if (!isObject(value)) return []
  const own = Object.hasOwn(value, name) ? [value[name]] : []
  return [
    ...own,
    ...stepsOf(name).flatMap(([head, rest]) => (Object.hasOwn(value, head) ? valuesAt(value[head], rest) : [])),
  ]
}

/** Returns each way to split a name into a field and the name within it, because a field name may contain a dot. */
function stepsOf(name: string): readonly (readonly [head: string, rest: string])[] {
  const steps: [string, string][] = []
  for (let dot = name.indexOf('.'); dot !== -1; dot = name.indexOf('.', dot + 1))
    steps.push([name.slice(0, dot), name.slice(dot + 1)])
  return steps
}

function isEmpty(value: unknown): boolean {
  if (value === undefined || value === null || value === '') return true
  if (Array.isArray(value)) return value.every(isEmpty)
  // An object with keys is not empty, because its keys may be addresses.
  return isObject(value) && Object.keys(value).length === 0
}
