/** Adds a value to a map as the newest entry, and removes the oldest beyond `max`. */
export function remember<Value>(kept: Map<string, Value>, key: string, value: Value, max: number): void {
  kept.delete(key)
  kept.set(key, value)
  if (kept.size > max) kept.delete(kept.keys().next().value as string)
}
