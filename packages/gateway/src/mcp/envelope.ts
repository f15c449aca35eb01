import type { IncomingHttpHeaders } from 'node:http'
import { isObject, type JsonObject } from '@toolgate/values/json'
import { type JsonRpcError, META, MODERN_VERSIONS, type RequestId } from '@toolgate/mcp'
import { withoutNullMembers } from './null-members.ts'
import { MAX_ID_LENGTH, RpcFault, type RpcRule } from '../model/protocol.ts'

/** A message, with the era that it belongs to. */
export type Message =
  | {
      readonly era: 'modern'
      readonly kind: 'request'
      readonly id: RequestId
      readonly method: string
      readonly params: JsonObject
    }
  | { readonly era: 'modern'; readonly kind: 'notification' }
  | { readonly era: 'legacy'; readonly message: RpcMessage }

/** A JSON-RPC 2.0 message: a request, a notification, or an answer. */
export interface RpcMessage {
  readonly id?: RequestId
  readonly method?: string
  readonly params?: JsonObject
  readonly result?: JsonObject
  readonly error?: JsonRpcError
}

/** Methods whose `Mcp-Name` header repeats a value of the body. */
const NAMED: ReadonlyMap<string, string> = new Map([
  ['tools/call', 'name'],
  ['prompts/get', 'name'],
  ['resources/read', 'uri'],
  ['tasks/get', 'taskId'],
  ['tasks/update', 'taskId'],
  ['tasks/cancel', 'taskId'],
])

/**
 * Reads a parsed body and its headers.
 *
 * The envelope in `params._meta` determines the era. Without an envelope, a header with a modern revision does. Headers
 * and body of a modern request must agree (MCP 2026-07-28, transports, "standard headers"), because reverse proxies
 * read only the headers.
 *
 * @throws {RpcFault} for the rule that the message breaks
 */
export function readMessage(sent: unknown, headers: IncomingHttpHeaders): Message {
  if (Array.isArray(sent))
    throw new RpcFault('batch_refused', 'Batches are not served: send one message in each request.')
  const body = isObject(sent) ? withoutNullMembers(sent) : sent
  checkMessage(body)
  const { id, method, params = {} } = body
  const headerVersion = one(headers['mcp-protocol-version'])
  const claimed = claimOf(params)
  if (claimed === undefined && !MODERN_VERSIONS.includes(headerVersion ?? '')) {
    checkEarlierMessage(body)
    return { era: 'legacy', message: body }
  }
  if (method === undefined) throw new RpcFault('body_not_message', 'A response cannot be posted here.')
  if (id === undefined) return { era: 'modern', kind: 'notification' }
  const version = checkEnvelope(params, claimed, headerVersion)
  checkHeaders(method, params, headers, headerVersion, version)
  return { era: 'modern', kind: 'request', id, method, params }
}

function notMessage(problem: string): RpcFault {
  return new RpcFault('body_not_message', `The body is not a JSON-RPC message: ${problem}.`)
}

/** @throws {RpcFault} `body_not_message`, `params_invalid` */
function checkMessage(body: unknown): asserts body is RpcMessage {
  const refuse = notMessage
  if (!isObject(body)) throw refuse('it is not an object')
  if (body['jsonrpc'] !== '2.0') throw refuse('"jsonrpc" must be "2.0"')
  if (body['method'] !== undefined && typeof body['method'] !== 'string') throw refuse('"method" must be a string')
  if (body['method'] === '') throw refuse('"method" must not be empty')
  if (Object.hasOwn(body, 'id') && !isId(body['id'])) {
    throw refuse('"id" must be a string or a whole number')
  }
  if (body['params'] !== undefined && !isObject(body['params'])) throw refuse('"params" must be an object')
  checkLengths(body)
}

/** Whether a value may be a request's id: a string or an integer of any size. */
function isId(value: unknown): boolean {
  return typeof value === 'string' || typeof value === 'bigint' || Number.isSafeInteger(value)
}

/** Checks the fields that the 2026-07-28 envelope would have, and the answers that only earlier clients post. */
function checkEarlierMessage({ id, method, params = {}, result, error }: RpcMessage): void {
  if (method === undefined) return checkAnswer(id, result, error)
  if (result !== undefined || error !== undefined) throw notMessage('a request has no "result" or "error"')
  const { _meta: meta } = params
  if (meta === undefined) return
  if (!isObject(meta)) throw notMessage('"params._meta" must be an object')
  const { progressToken: token } = meta
  if (token !== undefined && !isId(token))
    throw notMessage('"params._meta.progressToken" must be a string or a whole number')
}

function checkAnswer(id: RequestId | undefined, result: unknown, error: unknown): void {
  if (id === undefined) throw notMessage('an answer needs an "id"')
  const isError = isObject(error) && Number.isSafeInteger(error['code']) && typeof error['message'] === 'string'
  if (error === undefined ? !isObject(result) : !isError || result !== undefined)
    throw notMessage('an answer has a "result" that is an object, or an "error" with a code and a message')
}

/** Returns the revision in the envelope: `null` if it is not a string, `undefined` if it is absent. */
function claimOf(params: JsonObject): string | null | undefined {
  const meta = params['_meta']
  if (!isObject(meta) || !Object.hasOwn(meta, META.protocolVersion)) return undefined
  const version = meta[META.protocolVersion]
  return typeof version === 'string' ? version : null
}

/** Returns the revision in the envelope, after checking the envelope. */
function checkEnvelope(
  params: JsonObject,
  claimed: string | null | undefined,
  headerVersion: string | undefined,
): string {
  const meta = isObject(params['_meta']) ? params['_meta'] : {}
  const refuse = (key: string, problem: string) =>
    new RpcFault('envelope_invalid', `Invalid _meta envelope: ${key}: ${problem}`, {
      data: { envelope: { key, problem } },
    })
  if (typeof claimed !== 'string')
    throw refuse(META.protocolVersion, claimed === null ? 'must be a string' : 'is missing')
  if (headerVersion !== undefined && headerVersion !== claimed) {
    throw mismatch('MCP-Protocol-Version', headerVersion, `the body names protocol version ${claimed}`)
  }
  if (!MODERN_VERSIONS.includes(claimed)) {
    throw new RpcFault('version_unsupported', `Unsupported protocol version: ${claimed}`, {
      data: { supported: MODERN_VERSIONS, requested: claimed },
    })
  }
  if (!isObject(meta[META.clientCapabilities])) {
    throw refuse(
      META.clientCapabilities,
      meta[META.clientCapabilities] === undefined ? 'is missing' : 'must be an object',
    )
  }
  const info = meta[META.clientInfo]
  if (
    info !== undefined &&
    !(isObject(info) && typeof info['name'] === 'string' && typeof info['version'] === 'string')
  ) {
    throw refuse(META.clientInfo, 'must have a name and a version')
  }
  return claimed
}

function checkHeaders(
  method: string,
  params: JsonObject,
  headers: IncomingHttpHeaders,
  headerVersion: string | undefined,
  claimed: string,
): void {
  if (headerVersion === undefined)
    throw mismatch('MCP-Protocol-Version', undefined, `the body names protocol version ${claimed}`)
  const methodHeader = one(headers['mcp-method'])
  if (methodHeader !== method) throw mismatch('Mcp-Method', methodHeader, `the body names the method ${method}`)
  const field = NAMED.get(method)
  const name = field === undefined ? undefined : params[field]
  if (field === undefined || typeof name !== 'string') return
  const nameHeader = one(headers['mcp-name'])
  if (nameHeader === undefined || decodeHeader(nameHeader) !== name)
    throw mismatch('Mcp-Name', nameHeader, `the body names params.${field} ${JSON.stringify(name)}`)
}

function mismatch(header: string, value: string | undefined, body: string): RpcFault {
  const said = value === undefined ? '(missing)' : value
  return new RpcFault(
    'header_mismatch',
    `The headers and the body disagree: ${body}, the ${header} header is ${said}.`,
    {
      data: { mismatch: { header: said, body } },
    },
  )
}

const ENCODED = /^=\?base64\?([A-Za-z0-9+/]*={0,2})\?=$/

/**
 * Decodes `=?base64?…?=`, the encoding of values that are not allowed in a header. Returns `undefined` if it is
 * invalid.
 */
export function decodeHeader(value: string): string | undefined {
  const encoded = ENCODED.exec(value)?.[1]
  if (encoded === undefined) return value
  const bytes = Buffer.from(encoded, 'base64')
  if (bytes.toString('base64') !== encoded) return undefined
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return undefined
  }
}

/** Returns a header's value. Node joins repeated headers with a comma, so these never agree with a body. */
function one(value: string | string[] | undefined): string | undefined {
  return (Array.isArray(value) ? value.join(', ') : value)?.trim()
}

/** The maximum length: more than a namespace and a name of 128 characters each, joined. */
const MAX_NAME_LENGTH = 512
const MAX_URI_LENGTH = 4096

interface Bound {
  readonly rule: RpcRule
  readonly max: number
}

const ID: Bound = { rule: 'body_not_message', max: MAX_ID_LENGTH }
const NAME: Bound = { rule: 'params_invalid', max: MAX_NAME_LENGTH }

/** The strings of a message that are compared, stored, logged or sent back, with their maximum lengths. */
const OF_MESSAGE: readonly (readonly [field: string, bound: Bound])[] = [
  ['method', { rule: 'body_not_message', max: MAX_NAME_LENGTH }],
  ['id', ID],
]
const OF_PARAMS: readonly (readonly [field: string, bound: Bound])[] = [
  ['name', NAME],
  ['cursor', NAME],
  ['uri', { rule: 'params_invalid', max: MAX_URI_LENGTH }],
  ['requestId', ID],
]
const OF_META: readonly (readonly [field: string, bound: Bound])[] = [
  ['progressToken', ID],
  [META.protocolVersion, NAME],
]

/**
 * Checks the length of each string in a message.
 *
 * @throws {RpcFault} `body_not_message` or `params_invalid`, with the field and its maximum length
 */
function checkLengths(message: JsonObject): void {
  checkFields(message, '', OF_MESSAGE)
  const { params } = message
  if (!isObject(params)) return
  checkFields(params, 'params.', OF_PARAMS)
  const { _meta: meta } = params
  if (isObject(meta)) checkFields(meta, 'params._meta.', OF_META)
}

function checkFields(of: JsonObject, path: string, fields: readonly (readonly [field: string, bound: Bound])[]): void {
  for (const [field, { rule, max }] of fields) {
    const value = of[field]
    if (typeof value === 'string' && value.length > max)
      throw new RpcFault(rule, `${path}${field} is longer than ${max} characters.`)
  }
}
