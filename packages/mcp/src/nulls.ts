import { isObject, type JsonObject } from '@toolgate/values/json'
import { markNullsLeftOut } from '@toolgate/values'
import { withoutNullKeywords } from '@toolgate/core/tools'

/** Members of MCP's messages that have optional members of their own. */
const PARTS: ReadonlySet<string> = new Set(
  (
    'annotations icons execution arguments content contents resource messages completion ' +
    'modelPreferences hints toolChoice roots'
  ).split(' '),
)
/** Members of MCP's messages that are JSON Schemas. */
const SCHEMAS: ReadonlySet<string> = new Set(['inputSchema', 'outputSchema', 'requestedSchema'])
/** The required member of log messages, images and sound. The data of a log message may be `null`. */
const REQUIRED = 'data'
/** No message of MCP has more parts within each other. */
const MAX_DEPTH = 16

/**
 * Returns a listed item, a result or the params of a message without members that are `null`. Many SDKs write `null`
 * for an absent member, and strict clients reject a whole list for it.
 *
 * Data stays as it is: `_meta`, `structuredContent` and every other member that MCP does not define. Returns the same
 * object if there is nothing to leave out.
 */
export function withoutNulls<Message extends JsonObject>(message: Message, depth = 0): Message {
  let mended: Record<string, unknown> | undefined
  for (const name in message) {
    const value = message[name]
    if (typeof value !== 'object') continue
    const kept = value === null && name !== REQUIRED ? undefined : mendMember(name, value, depth)
    if (kept === value) continue
    mended ??= { ...message }
    if (kept === undefined) delete mended[name]
    else mended[name] = kept
  }
  if (!mended) return message
  return (depth === 0 ? markNullsLeftOut(mended) : mended) as Message
}

/** Returns an object without its own members that are `null`, except those in `kept`. */
export function withoutNullEntries(object: JsonObject, kept: readonly string[] = []): JsonObject {
  if (!hasNull(object)) return object
  return Object.fromEntries(Object.entries(object).filter(([name, value]) => value !== null || kept.includes(name)))
}

/** Makes no list, because this runs for every message. */
function hasNull(object: JsonObject): boolean {
  for (const name in object) if (object[name] === null) return true
  return false
}

function mendMember(name: string, value: unknown, depth: number): unknown {
  if (SCHEMAS.has(name)) return isObject(value) ? withoutNullKeywords(value) : value
  if (!PARTS.has(name) || depth >= MAX_DEPTH) return value
  if (!Array.isArray(value)) return isObject(value) ? withoutNulls(value, depth + 1) : value
  let list: unknown[] | undefined
  for (const [i, item] of value.entries()) {
    const kept: unknown = isObject(item) ? withoutNulls(item, depth + 1) : item
    if (kept !== item) (list ??= [...value])[i] = kept
  }
  return list ?? value
}
