/** Keeps a value as the newest of a map, and at most `max` of them. */
export function remember<Value>(kept: Map<string, Value>, key: string, value: Value, max: number): void {
  kept.delete(key)
  kept.set(key, value)
  if (kept.size > max) kept.delete(kept.keys().next().value as string)
}
