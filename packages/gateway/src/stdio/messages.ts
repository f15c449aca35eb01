import { isObject, JSON_BOUNDS, JsonFault, type JsonObject, readJson, toJsonText } from '@toolgate/values/json'
import { type JsonRpcError, META, type RequestId } from '@toolgate/mcp'
import { isNotification } from '../model/protocol.ts'

/** One request of the client. */
export interface ClientRequest {
  readonly id: RequestId
  readonly method: string
  readonly params: JsonObject
  /** The text, as the client wrote it. The gateway checks it again. */
  readonly text: string
}

/** One line of the client: a message, or the reason why it is invalid. */
type ClientLine =
  | { readonly kind: 'empty' }
  | { readonly kind: 'invalid'; readonly error: JsonRpcError }
  | { readonly kind: 'request'; readonly request: ClientRequest }
  | { readonly kind: 'notification'; readonly method: string; readonly params: JsonObject; readonly text: string }
  | { readonly kind: 'answer'; readonly text: string }

/**
 * The JSON-RPC codes of errors from this program. An unreachable gateway has the SDKs' code for a closed connection.
 */
export const CODES = { notJson: -32_700, notMessage: -32_600, unreachable: -32_000 } as const

export function readLine(text: string, isUtf8 = true): ClientLine {
  if (!isUtf8) return invalid(CODES.notJson, 'The line is not UTF-8.')
  if (text.trim() === '') return { kind: 'empty' }
  const message = parse(text, JSON_BOUNDS.request)
  if (message instanceof JsonFault)
    return invalid(message.kind === 'not-json' ? CODES.notJson : CODES.notMessage, `The line ${message.problem}.`)
  if (!isObject(message)) return invalid(CODES.notMessage, 'The line is not one JSON-RPC message.')
  const { id, method, params: given } = message
  if (typeof method !== 'string') return { kind: 'answer', text }
  if (method === '') return invalid(CODES.notMessage, 'The "method" must not be empty.')
  const params = isObject(given) ? given : {}
  if (typeof id === 'string' || typeof id === 'number' || typeof id === 'bigint')
    return { kind: 'request', request: { id, method, params, text } }
  if (id !== undefined && !(id === null && isNotification(method)))
    return invalid(CODES.notMessage, 'The "id" must be a text or a number.')
  return { kind: 'notification', method, params, text }
}

function invalid(code: number, message: string): ClientLine {
  return { kind: 'invalid', error: { code, message } }
}

/** Returns the JSON-RPC message in a text of the gateway, if it contains one. */
export function readMessage(text: string): JsonObject | undefined {
  const message = parse(text, JSON_BOUNDS.answer)
  return isObject(message) && message['jsonrpc'] === '2.0' ? message : undefined
}

export function isAnswerTo(message: JsonObject, id: RequestId): boolean {
  return message['id'] === id && !('method' in message)
}

/** Returns the error in an answer of the gateway, if it is a JSON-RPC error. */
export function errorIn(text: string): JsonRpcError | undefined {
  const error = readMessage(text)?.['error']
  if (!isObject(error) || !Number.isInteger(error['code']) || typeof error['message'] !== 'string') return undefined
  return { code: Number(error['code']), message: error['message'], data: error['data'] }
}

const VERSION = /^[\w.-]{1,64}$/

/** Returns the revision in a request's envelope (MCP 2026-07-28 and later). */
export function claimedVersion({ params }: Pick<ClientRequest, 'params'>): string | undefined {
  const meta = params['_meta']
  const claimed = isObject(meta) ? meta[META.protocolVersion] : undefined
  return typeof claimed === 'string' && VERSION.test(claimed) ? claimed : undefined
}

export function encodeNotification(method: string, params?: JsonObject): string {
  return toJsonText({ jsonrpc: '2.0', method, params })
}

/** Returns the fault of a text that cannot be parsed. */
function parse(text: string, bounds: (typeof JSON_BOUNDS)['request' | 'answer']): unknown {
  try {
    return readJson(text, { bounds, integers: 'exact' })
  } catch (error) {
    return error
  }
}
