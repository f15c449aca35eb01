import { isObject, type JsonObject } from '../upstream/json-rpc.ts'
import { MAX_ID_LENGTH, META, RpcFault, type RpcRule } from './protocol.ts'

/** Longer than a namespace and a name of 128 characters each, joined. */
const MAX_NAME_LENGTH = 512
const MAX_URI_LENGTH = 4096

interface Bound {
  readonly rule: RpcRule
  readonly max: number
}

const ID: Bound = { rule: 'body_not_message', max: MAX_ID_LENGTH }
const NAME: Bound = { rule: 'params_invalid', max: MAX_NAME_LENGTH }

/** The texts of a message that are names, by where they stand: compared, kept in tables, logged and echoed. */
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
 * Checks the length of each name that a client puts into a message.
 *
 * @throws {RpcFault} `body_not_message` or `params_invalid`, naming the field and its bound
 */
export function checkLengths(message: JsonObject): void {
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
