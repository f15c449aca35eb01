import { FAULTS } from '@toolgate/core'
import { API_FAULTS } from '../../packages/gateway/src/model/faults.ts'
import { type FaultCode, type Operation, OPERATIONS, type Who } from './operations.ts'

/** A JSON Schema. */
type Schema = Readonly<Record<string, unknown>>
export type Schemas = Readonly<Record<string, Schema>>

const DESCRIPTION = `The HTTP API of a Toolgate gateway, without \`/mcp\` and the WebSocket \`/api/live\`.

Agents list and call tools with a key or an access token of their own. People, the console and the command use console keys, or the cookie of a login. A change by cookie needs the \`Origin\` of the gateway's own page. An unknown query parameter or field of a body is an error.`

const SECURITY_SCHEMES = {
  agent: { type: 'http', scheme: 'bearer', description: 'A key of an agent, or an OAuth 2.1 access token.' },
  host: { type: 'http', scheme: 'bearer', description: 'A key of a host: a program that runs agents.' },
  console: { type: 'http', scheme: 'bearer', description: 'A console key.' },
  login: {
    type: 'apiKey',
    in: 'cookie',
    name: 'toolgate_session_8787',
    description: 'Set by a login. Another port has its own name, such as `toolgate_session_9000`.',
  },
}

const SECURITY: Readonly<Record<Who, readonly object[]>> = {
  agent: [{ agent: [] }],
  host: [{ host: [] }],
  'host or person': [{ host: [] }, { console: [] }, { login: [] }],
  person: [{ console: [] }, { login: [] }],
  everyone: [],
}

const FAULTS_OF: Readonly<Record<Who, readonly FaultCode[]>> = {
  agent: ['query_invalid', 'unauthenticated', 'key_not_for_agents', 'issuer_unavailable'],
  host: ['query_invalid', 'unauthenticated', 'key_not_for_hosts'],
  'host or person': ['query_invalid', 'unauthenticated', 'key_not_for_console'],
  person: ['query_invalid', 'unauthenticated', 'key_not_for_console'],
  everyone: ['query_invalid'],
}
const FAULTS_OF_ALL: readonly FaultCode[] = [
  'request_malformed',
  'host_forbidden',
  'origin_forbidden',
  'headers_too_large',
  'internal',
]
const FAULTS_OF_BODIES: readonly FaultCode[] = ['body_invalid', 'body_too_large', 'media_type_unsupported']

/** Returns the OpenAPI 3.1 document. `types` are the JSON Schemas of `wire.ts`, by name. */
export function toDocument(types: Schemas): object {
  const rows = Object.entries(OPERATIONS).map(([route, operation]) => ({ ...splitRoute(route), operation }))
  const paths = Object.fromEntries(
    Map.groupBy(rows, ({ path }) => path)
      .entries()
      .map(([path, methods]) => [
        path,
        Object.fromEntries(methods.map(({ method, operation }) => [method, toOperation(method, path, operation)])),
      ]),
  )
  return {
    openapi: '3.1.0',
    info: {
      title: 'Toolgate',
      version: '1',
      description: DESCRIPTION,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    tags: [
      { name: 'agent', description: "With an agent's key or token." },
      { name: 'host', description: 'With a key of a host.' },
      { name: 'person', description: 'With a console key or a login.' },
      { name: 'everyone', description: 'Without a credential.' },
    ],
    paths,
    components: { securitySchemes: SECURITY_SCHEMES, schemas: reachable(paths, types) },
  }
}

function splitRoute(route: string): { readonly method: string; readonly path: string } {
  const [method = '', path = ''] = route.split(' ')
  return { method: method.toLowerCase(), path }
}

function toOperation(method: string, path: string, operation: Operation): object {
  const { who, summary, query = {}, body, form } = operation
  const id = path.includes('{id}') ? [{ name: 'id', in: 'path', required: true, schema: { type: 'string' } }] : []
  const parameters = [...id, ...Object.entries(query).map(([name, parameter]) => ({ name, in: 'query', ...parameter }))]
  return {
    operationId: toName(method, path),
    tags: who.split(' or '),
    summary,
    security: SECURITY[who],
    ...(parameters.length > 0 ? { parameters } : {}),
    ...(body === undefined ? {} : { requestBody: { required: true, content: jsonOf(body) } }),
    ...(form === undefined ? {} : { requestBody: { required: true, content: formOf(form) } }),
    responses: { ...toSuccess(operation), ...toFaults(operation) },
  }
}

function formOf(fields: readonly string[]): object {
  const properties = Object.fromEntries(fields.map((name) => [name, { type: 'string' }]))
  return { 'application/x-www-form-urlencoded': { schema: { type: 'object', properties, required: [...fields] } } }
}

/** `POST /api/pins/accept` is `postPinsAccept`. */
function toName(method: string, path: string): string {
  const words = path.replace('/api/', '').match(/[a-z]+/gi) ?? []
  return [method, ...words.map((word) => `${word.slice(0, 1).toUpperCase()}${word.slice(1)}`)].join('')
}

function toSuccess({ answer, lines, orText, headers, redirect, summary }: Operation): object {
  if (redirect !== undefined)
    return {
      303: { description: redirect, headers: { location: { schema: { type: 'string' } } } },
    }
  if (lines !== undefined)
    return {
      200: {
        description: `Each line is a \`${lines}\`.`,
        ...(headers !== undefined && { headers: toHeaders(headers) }),
        content: {
          'application/x-ndjson': { schema: refTo(lines) },
          ...(orText !== undefined && { [orText]: { schema: { type: 'string' } } }),
        },
      },
    }
  if (answer === undefined) return { 200: { description: summary } }
  return { 200: { description: summary, content: jsonOf(answer) } }
}

function toHeaders(headers: Readonly<Record<string, string>>): object {
  const rows = Object.entries(headers)
  return Object.fromEntries(rows.map(([name, description]) => [name, { description, schema: { type: 'string' } }]))
}

/** The faults by their status. */
function toFaults({ who, body, redirect, faults = [] }: Operation): object {
  if (redirect !== undefined) {
    const known = byStatus([
      'request_malformed',
      'host_forbidden',
      'origin_forbidden',
      'route_unknown',
      'headers_too_large',
    ])
    const { 403: forbidden, ...others } = known as Readonly<
      Record<number, { readonly description: string; readonly content: object }>
    >
    const page = { 'text/html': { schema: { type: 'string' } } }
    const description = `The login failed, ${forbidden?.description}`
    return { ...others, 403: { description, content: { ...page, ...forbidden?.content } } }
  }
  const codes = [...FAULTS_OF_ALL, ...FAULTS_OF[who], ...(body === undefined ? [] : FAULTS_OF_BODIES), ...faults]
  return byStatus(codes)
}

function byStatus(codes: readonly FaultCode[]): object {
  return Object.fromEntries(
    Map.groupBy(new Set(codes), statusOf)
      .entries()
      .map(([status, known]) => [
        status,
        { description: known.map((code) => `\`${code}\``).join(', '), content: jsonOf('ErrorBody') },
      ]),
  )
}

function statusOf(code: FaultCode): number {
  return code in API_FAULTS ? API_FAULTS[code as keyof typeof API_FAULTS] : FAULTS[code as keyof typeof FAULTS].status
}

function jsonOf(type: string): object {
  return { 'application/json': { schema: refTo(type) } }
}

function refTo(type: string): object {
  return { $ref: `#/components/schemas/${type}` }
}

/** Returns the type of a body: its unknown fields are refused, and an optional field that is `null` is absent. */
function toBody(type: Schema): Schema {
  const { properties = {}, required = [] } = type as { readonly properties?: Schemas; readonly required?: string[] }
  const fields = Object.entries(properties).map(([name, field]) => [
    name,
    required.includes(name) || Object.keys(field).length === 0 ? field : { anyOf: [field, { type: 'null' }] },
  ])
  return { ...type, ...(fields.length > 0 && { properties: Object.fromEntries(fields) }), additionalProperties: false }
}

/** Returns the types that the paths need, in the order of their names. */
function reachable(paths: object, types: Schemas): Schemas {
  const bodies = new Set(Object.values(OPERATIONS).map(({ body }) => body))
  const found = new Map<string, Schema>()
  const add = (node: object): void => {
    for (const [, name = ''] of JSON.stringify(node).matchAll(/"#\/components\/schemas\/(\w+)"/g)) {
      if (found.has(name)) continue
      const type = types[name]
      if (!type) throw new Error(`wire.ts has no type ${name}`)
      found.set(name, bodies.has(name) ? toBody(type) : type)
      add(type)
    }
  }
  add(paths)
  return Object.fromEntries([...found].toSorted(([a], [b]) => (a < b ? -1 : 1)))
}
