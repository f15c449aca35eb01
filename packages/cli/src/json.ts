import { isObject, type JsonObject, readOwnJson } from '@toolgate/core/internal'

/** Parses JSON, whose type is not known yet. @throws {SyntaxError} */
export function parseJson(text: string): unknown {
  return readOwnJson(text, 'exact')
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
