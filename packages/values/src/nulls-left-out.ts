const mended = new WeakSet<object>()

/** Remembers that members of a value that were `null` have been left out, for the record of the call. Returns the value. */
export function markNullsLeftOut<Value extends object>(value: Value): Value {
  mended.add(value)
  return value
}

/** Whether members of a value that were `null` have been left out. */
export function hasNullsLeftOut(value: unknown): boolean {
  return typeof value === 'object' && value !== null && mended.has(value)
}
