import { isObject, type JsonObject } from '@toolgate/values/json'
import { isNotification } from '../model/protocol.ts'
import { META, withoutNullEntries, withoutNulls } from '@toolgate/mcp'

/** The members of params that have optional members of their own. The arguments of a tool are data. */
const PARTS: readonly string[] = ['capabilities', 'clientInfo', 'argument', 'context', 'ref', 'task']

/** The members of a message in which `null` is no other spelling of absent. */
const REQUIRED = { answer: ['id'], notification: ['method'], request: ['id', 'method'] } as const

/** The optional members of `_meta` that MCP defines. Other members belong to the party that named them. */
const OPTIONAL_META = ['progressToken', META.clientInfo, META.logLevel] as const

/**
 * Returns a client's message without optional members that are `null`. Many SDKs write `null` for an absent member.
 *
 * The `id` of a request is not optional, so it stays `null` and the request is refused: its client waits for the
 * answer. Returns the same object if there is nothing to leave out.
 */
export function withoutNullMembers(message: JsonObject): JsonObject {
  const { id, method, params, result, error } = message
  const isAnswer = method === null && (isObject(result) || isObject(error))
  const isNotified = id === null && isNotification(method)
  const mended = withoutNullEntries(message, REQUIRED[isAnswer ? 'answer' : isNotified ? 'notification' : 'request'])
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
  const answers = Object.entries(inputResponses).map(([key, answer]): [string, unknown] => [
    key,
    isObject(answer) ? withoutNulls(answer) : answer,
  ])
  return withMember(mended, 'inputResponses', Object.fromEntries(answers))
}

function withoutNullMeta(meta: JsonObject): JsonObject {
  let mended = meta
  for (const name of OPTIONAL_META)
    if (mended[name] === null) mended = Object.fromEntries(Object.entries(mended).filter(([key]) => key !== name))
  const declared = mended[META.clientCapabilities]
  return isObject(declared) ? withMember(mended, META.clientCapabilities, withoutNullEntries(declared)) : mended
}

/** The name may be any text, so it is defined rather than assigned. */
function withMember(object: JsonObject, name: string, value: unknown): JsonObject {
  return object[name] === value ? object : { ...object, [name]: value }
}
