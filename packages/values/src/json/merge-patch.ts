import { isObject, type JsonObject } from './json.ts'

/** Returns a value with a JSON merge patch applied (RFC 7396): `null` removes a field, other fields stay as they are. */
export function withPatch(value: unknown, patch: unknown): unknown {
  if (!isObject(patch)) return patch
  const merged = new Map<string, unknown>(isObject(value) ? Object.entries(value) : [])
  for (const [name, part] of Object.entries(patch))
    if (part === null) merged.delete(name)
    else merged.set(name, withPatch(merged.get(name), part))
  return Object.fromEntries(merged)
}

/** Returns the paths of the fields that a merge patch changes: `[['to', 'name']]`. */
export function patchedFields(patch: JsonObject, under: readonly string[] = []): readonly (readonly string[])[] {
  return Object.entries(patch).flatMap(([name, value]) => {
    const path = [...under, name]
    return isObject(value) && Object.keys(value).length > 0 ? patchedFields(value, path) : [path]
  })
}
