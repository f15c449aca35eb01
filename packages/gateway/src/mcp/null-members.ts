import { isObject, type JsonObject } from '@toolgate/values/json'
import { isNotification } from '../model/protocol.ts'
import { META, withoutNullEntries, withoutNulls } from '@toolgate/mcp'

/** The members of params that have optional members of their own. The arguments of a tool are data. */
const PARTS: readonly string[] = ['capabilities', 'clientInfo', 'argument', 'context', 'ref', 'task']

/** The optional members of `_meta` that MCP defines. Other members belong to the party that named them. */
const OPTIONAL_META: ReadonlySet<string> = new Set(['progressToken', META.clientInfo, META.logLevel])

/**
 * Returns a client's message without optional members that are `null`. Many SDKs write `null` for an absent member.
 *
 * The `id` of a request is not optional, so it stays `null` and the request is refused: its client waits for the
 * answer. Returns the same object if there is nothing to leave out.
 */
export function withoutNullMembers(message: JsonObject): JsonObject {
  const { method, params, result, error } = message
  const isAnswer = isObject(result) || isObject(error)
  const mended = withoutNullEntries(message, [
    ...(isAnswer ? [] : ['method']),
    ...(isNotification(method) ? [] : ['id']),
  ])
  if (isObject(params)) return withMember(mended, 'params', withoutNullParams(params))
  return isObject(result) ? withMember(mended, 'result', withoutNulls(result)) : mended
}

function withoutNullParams(params: JsonObject): JsonObject {
  let mended = withoutNullEntries(params)
  for (const name of PARTS) {
    const part = mended[name]
    if (isObject(part)) mended = withMember(mended, name, withoutNullEntries(part))
  }
  const { _meta: meta, inputResponses } = mended
  if (isObject(meta)) mended = withMember(mended, '_meta', withoutNullMeta(meta))
  if (!isObject(inputResponses)) return mended
  return withMember(mended, 'inputResponses', withEach(inputResponses, Object.keys(inputResponses), withoutNulls))
}

function withoutNullMeta(meta: JsonObject): JsonObject {
  const others = () => Object.keys(meta).filter((name) => !OPTIONAL_META.has(name))
  const kept = Object.values(meta).includes(null) ? withoutNullEntries(meta, others()) : meta
  return withEach(kept, [META.clientCapabilities], (part) => withoutNullEntries(part))
}

function withEach(object: JsonObject, names: readonly string[], mend: (part: JsonObject) => JsonObject): JsonObject {
  return names.reduce((mended, name) => {
    const part = mended[name]
    return isObject(part) ? withMember(mended, name, mend(part)) : mended
  }, object)
}

/** The name may be any text, so it is defined rather than assigned. */
function withMember(object: JsonObject, name: string, value: unknown): JsonObject {
  return object[name] === value ? object : { ...object, [name]: value }
}
