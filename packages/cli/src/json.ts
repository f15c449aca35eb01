import { isObject, JSON_BOUNDS, type JsonObject, readJson } from '@toolgate/values/json'

/** Parses JSON from a gateway, a file or an option. Its type is unknown. @throws {Error} */
export function parseJson(text: string): unknown {
  return readJson(text, { bounds: JSON_BOUNDS.own, integers: 'exact' })
}

/** Returns the object in a JSON text, or `undefined` for any other text. */
export function parseObject(text: string): JsonObject | undefined {
  try {
    const value = parseJson(text)
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}
