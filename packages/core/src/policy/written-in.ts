/** The variables of the environment in which policies and lists of limits are written. */
const variables = new WeakMap<object, string>()

/** Marks a policy or a list of limits as written in a variable, which its problems then name. */
export function markWrittenIn<T extends object>(rules: T, variable: string): T {
  variables.set(rules, variable)
  return rules
}

/** Returns the variable in which a policy or a list of limits is written; `undefined` for all others. */
export function writtenIn(rules: unknown): string | undefined {
  return typeof rules === 'object' && rules !== null ? variables.get(rules) : undefined
}
