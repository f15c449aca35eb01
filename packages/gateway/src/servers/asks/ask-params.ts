import { isObject, type JsonObject } from '@toolgate/values/json'
import { withoutNulls } from '@toolgate/mcp'
import { checkSize, invalid, isTexts, named } from './ask-checks.ts'
import { findSecret } from './secret-forms.ts'

/** The rules for one request of a server. */
export interface AskRules {
  readonly server: string
  /** Whether the server may ask people to open a page of this origin. */
  mayOpen(origin: string): boolean
}

/** The maximum length of a message in a request to a client. More limits follow. */
const MAX_MESSAGE = 4_000
const MAX_PROPERTIES = 50

const FORMATS: ReadonlySet<unknown> = new Set([undefined, 'email', 'uri', 'date', 'date-time'])
const PRIMITIVES: ReadonlySet<unknown> = new Set(['string', 'number', 'integer', 'boolean'])
/** The fields that MCP defines for a property of a form. A client shows no others. */
const FIELDS: readonly string[] = (
  'type title description default format minLength maxLength minimum maximum ' +
  'enum enumNames oneOf items minItems maxItems'
).split(' ')

/**
 * Returns the params of a form for the client: only fields that MCP defines, with the server's name first.
 *
 * @throws {RpcError} for a form that MCP does not allow, or that asks for a secret
 */
export function toForm(params: JsonObject, { server }: AskRules): JsonObject {
  const { mode, requestedSchema } = params
  const message = messageOf(params)
  checkSize(params)
  if (!isObject(requestedSchema) || requestedSchema['type'] !== 'object' || !isObject(requestedSchema['properties']))
    throw invalid('requestedSchema must be an object schema with properties')
  const { properties, required } = withoutNulls(requestedSchema) as { properties: JsonObject; required?: unknown }
  if (required !== undefined && !isTexts(required)) throw invalid('required must be a list of names')
  const schemas = Object.entries(properties).map(([name, schema]) => [name, withoutFieldNulls(schema)] as const)
  if (schemas.length > MAX_PROPERTIES) throw invalid(`a form has at most ${MAX_PROPERTIES} properties`)
  const bad = schemas.find(([, schema]) => !isField(schema))
  if (bad) throw invalid(`"${bad[0]}" must be a string, number, boolean or choice`)
  const secret = findSecret(message, Object.fromEntries(schemas))
  if (secret !== undefined) throw invalid(`a form may not ask for secrets, as "${secret}" seems to`)
  const fields = Object.fromEntries(schemas.map(([name, field]) => [name, toField(field as JsonObject)]))
  const schema = { type: 'object', properties: fields, ...(required !== undefined && { required }) }
  return { ...(mode === undefined ? {} : { mode }), message: named(server, message), requestedSchema: schema }
}

/**
 * Returns the params of a URL request for the client.
 *
 * @throws {RpcError} for a URL whose origin the server's entry does not name
 */
export function toUrl(params: JsonObject, { server, mayOpen }: AskRules): JsonObject {
  const { url: text, elicitationId } = params
  const message = messageOf(params)
  const url = typeof text === 'string' && text.length <= MAX_MESSAGE ? URL.parse(text) : null
  if (!url || !/^https?:$/.test(url.protocol)) throw invalid('url must be an http or https URL')
  if (url.username || url.password) throw invalid('url must not hold a user or password')
  if (!mayOpen(url.origin)) throw invalid(`${url.origin} may not be opened for this server`)
  const id = typeof elicitationId === 'string' ? { elicitationId: elicitationId.slice(0, MAX_MESSAGE) } : {}
  return { mode: 'url', message: named(server, message), url: url.href, ...id }
}

function messageOf({ message }: JsonObject): string {
  if (typeof message === 'string' && message.length <= MAX_MESSAGE) return message
  throw invalid(`message must be a string of at most ${MAX_MESSAGE} characters`)
}

function withoutFieldNulls(schema: unknown): unknown {
  return isObject(schema) ? withoutNulls(schema) : schema
}

function isField(schema: unknown): boolean {
  if (!isObject(schema)) return false
  const { type, format, properties, items, enum: names, oneOf } = schema
  if (properties !== undefined) return false
  if (type === 'array') return isObject(items) && (isChoice(items['enum']) || isTitledChoice(items['anyOf']))
  if (!PRIMITIVES.has(type) || !FORMATS.has(format) || items !== undefined) return false
  // A choice must have valid options: otherwise a client shows a field for free text.
  const isText = type === 'string'
  return (
    (names === undefined || (isText && isChoice(names))) && (oneOf === undefined || (isText && isTitledChoice(oneOf)))
  )
}

function isChoice(names: unknown): boolean {
  return isTexts(names) && names.length > 0
}

function isTitledChoice(options: unknown): boolean {
  const isOption = (option: unknown) => isObject(option) && typeof option['const'] === 'string'
  return Array.isArray(options) && options.length > 0 && options.every(isOption)
}

function toField(schema: JsonObject): JsonObject {
  return Object.fromEntries(FIELDS.flatMap((field) => (field in schema ? [[field, schema[field]]] : [])))
}
