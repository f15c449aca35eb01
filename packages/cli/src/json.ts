import { isObject, JSON_BOUNDS, type JsonObject, readJson } from '@toolgate/values/json'

/** Parses JSON of a gateway, a file or an option, whose type is not known yet. @throws {Error} */
export function parseJson(text: string): unknown {
  return readJson(text, { bounds: JSON_BOUNDS.own, integers: 'exact' })
}

/** Returns the object that a JSON text holds, or `undefined` for any other text. */
export function parseObject(text: string): JsonObject | undefined {
  try {
    const value = parseJson(text)
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}
