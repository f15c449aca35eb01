import { frozenCopy, isObject, isPlain } from '@toolgate/values/json'

/**
 * Returns the JSON on which an input is decided, from what its schema returned, what came, and the JSON Schema of what
 * may come.
 *
 * A part is decided as the schema returned it: with defaults, coerced, in its new spelling. It is decided as it came if
 * JSON cannot express the result, such as a `Date`, or if the result has another type than rules know from the JSON
 * Schema, such as the length of a text. An object with such a part keeps all fields that came, so that no transform
 * hides one from rules.
 */
export function toDecided(parsed: unknown, came: unknown, schema: unknown): unknown {
  const copy = frozenCopy(parsed)
  if ('value' in copy && !holdsOtherType(copy.value, came, schema)) return copy.value
  if (Array.isArray(parsed) && Array.isArray(came) && parsed.length === came.length)
    return parsed.map((item, i) => toDecided(item, came[i], itemOf(schema)))
  if (!isPlain(parsed) || !isPlain(came)) return came
  const decided = new Map(Object.entries(came))
  for (const [key, value] of Object.entries(parsed)) {
    const part = toDecided(value, decided.get(key), fieldOf(schema, key))
    if (part !== undefined) decided.set(key, part)
  }
  return Object.fromEntries(decided)
}

/** Whether a part of a parsed input has a type that its JSON Schema does not have, and came with one that it has. */
export function holdsOtherType(parsed: unknown, came: unknown, schema: unknown): boolean {
  const type = typeOf(parsed)
  if (type !== typeOf(came)) return hasType(schema, typeOf(came)) && !hasType(schema, type)
  if (Array.isArray(parsed) && Array.isArray(came))
    return parsed.some((item, i) => holdsOtherType(item, came[i], itemOf(schema)))
  if (!isObject(parsed) || !isObject(came)) return false
  return Object.entries(parsed).some(
    ([key, value]) => Object.hasOwn(came, key) && holdsOtherType(value, came[key], fieldOf(schema, key)),
  )
}

function typeOf(value: unknown): string {
  if (value === null) return 'null'
  return Array.isArray(value) ? 'array' : typeof value
}

/** Whether a JSON Schema names a type. A schema without `type` names none. */
function hasType(schema: unknown, type: string): boolean {
  const named = isObject(schema) ? schema['type'] : undefined
  const types: readonly unknown[] = Array.isArray(named) ? named : [named]
  return types.includes(type) || (type === 'number' && types.includes('integer'))
}

function fieldOf(schema: unknown, key: string): unknown {
  const fields = isObject(schema) ? schema['properties'] : undefined
  return isObject(fields) && Object.hasOwn(fields, key) ? fields[key] : undefined
}

function itemOf(schema: unknown): unknown {
  return isObject(schema) ? schema['items'] : undefined
}
