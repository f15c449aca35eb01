import { createServer, type Server as HttpServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, describe } from 'node:test'
import { type NodeIncomingMessageLike, toNodeHandler } from '@modelcontextprotocol/node'
import { createMcpHandler, fromJsonSchema, McpServer } from '@modelcontextprotocol/server'
import { startTestGateway, type TestGateway } from './support/gateway.ts'
import type { Answer, Sending } from './support/http.ts'
import { type Case, compareWithOracle } from './support/differential.ts'
import { type RecordingServer, startRecordingServer } from './support/recording-server.ts'
import { MODERN, type RpcAnswer, toMessage } from './support/rpc.ts'
import { httpServer } from './support/servers.ts'

/**
 * The same requests to our code for MCP 2026-07-28 and to the SDK's, which is the oracle: status, error code and the
 * fields that the revision requires. If they differ on purpose, `ours` says how and why.
 */

const SCHEMA = {
  type: 'object',
  properties: { region: { type: 'string', 'x-mcp-header': 'Region' }, n: { type: 'number' } },
} as const
const RESULT = { content: [{ type: 'text' as const, text: 'ran' }], structuredContent: { n: 1 } }
const NAME = 'up__tool'

let gateway: TestGateway
let upstream: RecordingServer
let oracle: { url: string; close(): Promise<void> }

before(async () => {
  upstream = await startRecordingServer([
    { name: 'tool', description: 'A tool.', inputSchema: SCHEMA, run: () => RESULT },
  ])
  gateway = await startTestGateway({ servers: [httpServer('up', upstream.url)] })
  oracle = await startOracle()
})

after(async () => {
  await gateway?.close()
  await Promise.all([upstream?.close(), oracle?.close()])
})

async function startOracle(): Promise<typeof oracle> {
  const handler = createMcpHandler(() => {
    const server = new McpServer({ name: 'oracle', version: '1' }, { capabilities: { tools: {} } })
    const schema = fromJsonSchema<{ region?: string; n?: number }>(SCHEMA)
    server.registerTool(NAME, { description: 'A tool.', inputSchema: schema }, () => RESULT)
    return server
  })
  const handle = toNodeHandler(handler)
  const http: HttpServer = createServer(
    (request, response) => void handle(request as NodeIncomingMessageLike, response),
  )
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp`,
    async close() {
      await handler.close()
      http.closeAllConnections()
      await new Promise((resolve) => http.close(resolve))
    },
  }
}

type Change = Readonly<Record<string, unknown>>
const META = 'io.modelcontextprotocol/'

/** A correct request with parts replaced; `undefined` removes a part. */
function change(
  method: string,
  parts: { body?: Change; params?: Change; meta?: Change; headers?: Change; arguments?: unknown } = {},
): Sending {
  const given = method === 'tools/call' ? { name: NAME, arguments: parts.arguments ?? {} } : {}
  const { headers, body } = toMessage(MODERN, method, given)
  const meta = { ...(body.params['_meta'] as Change), ...parts.meta }
  const whole = { ...body, params: { ...body.params, _meta: meta, ...parts.params }, ...parts.body }
  const sent = Object.entries({ ...headers, ...parts.headers }).filter(([, value]) => value !== undefined)
  return { headers: Object.fromEntries(sent) as Record<string, string>, body: JSON.stringify(whole) }
}

const call = (parts: Parameters<typeof change>[1] = {}) => change('tools/call', parts)
const list = (parts: Parameters<typeof change>[1] = {}) => change('tools/list', parts)
const withBody = (body: string): Sending => ({ ...list(), body })
const base64 = (value: string) => `=?base64?${Buffer.from(value).toString('base64')}?=`

const CASES: readonly Case[] = [
  // Correct requests.
  { shows: 'server/discover', sends: change('server/discover') },
  { shows: 'tools/list', sends: list() },
  { shows: 'tools/call', sends: call() },
  { shows: 'a call without arguments', sends: call({ params: { arguments: undefined } }) },
  { shows: 'a call with a number', sends: call({ arguments: { n: 1.5 } }) },
  { shows: 'no client info', sends: list({ meta: { [`${META}clientInfo`]: undefined } }) },
  {
    shows: 'client info with more in it',
    sends: list({ meta: { [`${META}clientInfo`]: { name: 'x', version: '1', title: 'X' } } }),
  },
  {
    shows: 'client capabilities with more in them',
    sends: list({ meta: { [`${META}clientCapabilities`]: { sampling: {}, x: 1 } } }),
  },
  { shows: 'an id that is a text', sends: list({ body: { id: 'a' } }) },
  { shows: 'an id that is empty', sends: list({ body: { id: '' } }) },
  { shows: 'id 0', sends: list({ body: { id: 0 } }) },
  { shows: 'a negative id', sends: list({ body: { id: -7 } }) },
  { shows: 'the name in base64', sends: call({ headers: { 'mcp-name': base64(NAME) } }) },
  {
    shows: 'white space around headers',
    sends: call({ headers: { 'mcp-name': ` ${NAME} `, 'mcp-method': ' tools/call ' } }),
  },
  { shows: 'a name header where the method has no name', sends: list({ headers: { 'mcp-name': 'x' } }) },
  { shows: 'more fields in params', sends: list({ params: { more: 1 } }) },
  { shows: 'more fields in _meta', sends: list({ meta: { 'example.com/x': 1 } }) },
  { shows: 'a notification', sends: change('notifications/x', { body: { id: undefined } }) },
  {
    shows: 'a charset in the media type',
    sends: list({ headers: { 'content-type': 'application/json; charset=utf-8' } }),
  },
  { shows: 'a media type in capitals', sends: list({ headers: { 'content-type': 'APPLICATION/JSON' } }) },
  { shows: 'an Accept of JSON alone', sends: list({ headers: { accept: 'application/json' } }) },
  { shows: 'no Accept', sends: list({ headers: { accept: undefined } }) },
  {
    shows: 'an argument repeated in its header',
    sends: call({ arguments: { region: 'eu' }, headers: { 'mcp-param-region': 'eu' } }),
  },
  {
    shows: 'an argument in base64 in its header',
    sends: call({ arguments: { region: 'eü' }, headers: { 'mcp-param-region': base64('eü') } }),
  },
  { shows: 'a header for an argument that is not there', sends: call({ headers: { 'mcp-param-region': 'eu' } }) },
  { shows: 'a header for an argument that is not declared', sends: call({ headers: { 'mcp-param-n': '1' } }) },

  // The envelope.
  { shows: 'no version in the envelope', sends: list({ meta: { [`${META}protocolVersion`]: undefined } }) },
  { shows: 'a version that is a number', sends: list({ meta: { [`${META}protocolVersion`]: 1 } }) },
  { shows: 'a version that is null', sends: list({ meta: { [`${META}protocolVersion`]: null } }) },
  {
    shows: 'a version that is a number, and no header',
    sends: list({ meta: { [`${META}protocolVersion`]: 1 }, headers: { 'mcp-protocol-version': undefined } }),
  },
  { shows: 'an empty version', sends: list({ meta: { [`${META}protocolVersion`]: '' } }) },
  {
    shows: 'a later version in both',
    sends: list({
      meta: { [`${META}protocolVersion`]: '2027-01-01' },
      headers: { 'mcp-protocol-version': '2027-01-01' },
    }),
  },
  { shows: 'a later version in the body', sends: list({ meta: { [`${META}protocolVersion`]: '2027-01-01' } }) },
  {
    shows: 'a later version, and no header',
    sends: list({ meta: { [`${META}protocolVersion`]: '2027-01-01' }, headers: { 'mcp-protocol-version': undefined } }),
  },
  {
    shows: 'an earlier version in both',
    sends: list({
      meta: { [`${META}protocolVersion`]: '2025-11-25' },
      headers: { 'mcp-protocol-version': '2025-11-25' },
    }),
  },
  { shows: 'an earlier version in the body', sends: list({ meta: { [`${META}protocolVersion`]: '2025-11-25' } }) },
  { shows: 'no client capabilities', sends: list({ meta: { [`${META}clientCapabilities`]: undefined } }) },
  { shows: 'client capabilities in a list', sends: list({ meta: { [`${META}clientCapabilities`]: [] } }) },
  { shows: 'client capabilities null', sends: list({ meta: { [`${META}clientCapabilities`]: null } }) },
  { shows: 'client info without a version', sends: list({ meta: { [`${META}clientInfo`]: { name: 'x' } } }) },
  { shows: 'client info that is a text', sends: list({ meta: { [`${META}clientInfo`]: 'x' } }) },
  { shows: 'no _meta, with the header', sends: list({ params: { _meta: undefined } }) },
  { shows: 'no params, with the header', sends: list({ body: { params: undefined } }) },
  {
    shows: '_meta that is a text, with the header',
    ours: ['400 -32602', 'what is missing is the envelope, and that is said'],
    sends: list({ params: { _meta: 'x' } }),
  },

  // The headers.
  { shows: 'no version header', sends: list({ headers: { 'mcp-protocol-version': undefined } }) },
  { shows: 'an earlier version in the header', sends: list({ headers: { 'mcp-protocol-version': '2025-11-25' } }) },
  { shows: 'a later version in the header', sends: list({ headers: { 'mcp-protocol-version': '2027-01-01' } }) },
  { shows: 'no method header', sends: list({ headers: { 'mcp-method': undefined } }) },
  { shows: 'another method header', sends: list({ headers: { 'mcp-method': 'tools/call' } }) },
  { shows: 'a method header in capitals', sends: list({ headers: { 'mcp-method': 'TOOLS/LIST' } }) },
  { shows: 'an empty method header', sends: list({ headers: { 'mcp-method': '' } }) },
  { shows: 'no name header', sends: call({ headers: { 'mcp-name': undefined } }) },
  { shows: 'another name header', sends: call({ headers: { 'mcp-name': 'other' } }) },
  { shows: 'a name header in capitals', sends: call({ headers: { 'mcp-name': NAME.toUpperCase() } }) },
  { shows: 'a name in base64 that is none', sends: call({ headers: { 'mcp-name': '=?base64?!?=' } }) },
  { shows: 'another name in base64', sends: call({ headers: { 'mcp-name': base64('other') } }) },
  { shows: 'an argument without its header', sends: call({ arguments: { region: 'eu' } }) },
  {
    shows: 'an argument with another header',
    sends: call({ arguments: { region: 'eu' }, headers: { 'mcp-param-region': 'us' } }),
  },
  {
    shows: 'an argument with a header that is no base64',
    sends: call({ arguments: { region: 'eu' }, headers: { 'mcp-param-region': '=?base64?!?=' } }),
  },

  // The message.
  { shows: 'an empty body', sends: withBody('') },
  { shows: 'no JSON', sends: withBody('{') },
  { shows: 'null', sends: withBody('null') },
  { shows: 'a text', sends: withBody('"x"') },
  { shows: 'an empty object', sends: withBody('{}') },
  { shows: 'an empty batch', sends: withBody('[]') },
  { shows: 'a batch', sends: withBody(`[${list().body as string}]`) },
  { shows: 'id null', sends: list({ body: { id: null } }) },
  { shows: 'an id with a fraction', sends: list({ body: { id: 1.5 } }) },
  { shows: 'an id that is an object', sends: list({ body: { id: {} } }) },
  { shows: 'another jsonrpc', sends: list({ body: { jsonrpc: '1.0' } }) },
  { shows: 'no jsonrpc', sends: list({ body: { jsonrpc: undefined } }) },
  { shows: 'a method that is a number', sends: list({ body: { method: 1 } }) },
  { shows: 'params in a list', sends: list({ body: { params: [] } }) },
  {
    shows: 'params null',
    ours: ['400 -32602', 'null is absent, and without params the envelope is missing'],
    sends: list({ body: { params: null } }),
  },
  {
    shows: 'a response',
    ours: ['400 -32600', 'no request of ours waits for one; the SDK takes it for a message of before'],
    sends: withBody('{"jsonrpc":"2.0","id":1,"result":{}}'),
  },
  {
    shows: 'an error response',
    ours: ['400 -32600', 'no request of ours waits for one; the SDK takes it for a message of before'],
    sends: withBody('{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}'),
  },
  { shows: 'a text media type', sends: list({ headers: { 'content-type': 'text/plain' } }) },
  { shows: 'no media type', sends: list({ headers: { 'content-type': undefined } }) },
  { shows: 'a body over the cap', sends: withBody(' '.repeat(4 * 1024 * 1024 + 1)) },
  {
    shows: 'a method twice',
    ours: ['400 -32600', 'others may read the first one'],
    sends: withBody((list().body as string).replace('"method"', '"method":"x","method"')),
  },
  {
    shows: 'nesting beyond 64 levels',
    ours: ['400 -32600', 'what walks the value later would overflow'],
    sends: list({ params: { deep: nested(65) } }),
  },
  {
    shows: 'bytes that are not UTF-8',
    ours: ['400 -32700', 'RFC 8259 §8.1; the SDK reads other characters in their place'],
    sends: { ...list(), body: Buffer.from((list().body as string).replace('"test"', '"\xff"'), 'latin1') },
  },

  // The method.
  { shows: 'a method that is not known', sends: change('x/y') },
  { shows: 'ping', sends: change('ping') },
  { shows: 'initialize', sends: change('initialize') },
  {
    shows: 'initialize without an envelope, with the header',
    ours: ['400 -32602', 'the header says the revision, so what is missing is the envelope'],
    sends: change('initialize', { params: { _meta: undefined } }),
  },
  { shows: 'resources/list', sends: change('resources/list') },
  { shows: 'prompts/list', sends: change('prompts/list') },
  { shows: 'logging/setLevel', sends: change('logging/setLevel', { params: { level: 'info' } }) },
  { shows: 'sampling/createMessage', sends: change('sampling/createMessage') },
  { shows: 'a method that objects inherit', sends: change('constructor') },
  {
    shows: 'subscriptions/listen for nothing, which ends at once',
    sends: change('subscriptions/listen', { params: { notifications: {} } }),
  },
  { shows: 'subscriptions/listen without a filter', sends: change('subscriptions/listen') },
  {
    shows: 'subscriptions/listen with a filter that is none',
    sends: change('subscriptions/listen', { params: { notifications: { toolsListChanged: 'yes' } } }),
  },
  { shows: 'GET', sends: { method: 'GET', headers: { accept: 'text/event-stream' } } },
  { shows: 'DELETE', sends: { method: 'DELETE' } },
  { shows: 'PUT', sends: { ...list(), method: 'PUT' } },

  // The call.
  { shows: 'a name that is a number', sends: call({ params: { name: 5 }, headers: { 'mcp-name': undefined } }) },
  { shows: 'no name', sends: call({ params: { name: undefined }, headers: { 'mcp-name': undefined } }) },
  { shows: 'arguments in a list', sends: call({ arguments: [] }) },
  {
    shows: 'arguments null',
    ours: ['200 result', 'null is another spelling of an absent member'],
    sends: call({ params: { arguments: null } }),
  },
  { shows: 'an argument of another type', sends: call({ arguments: { n: 'x' } }) },
  {
    shows: 'a tool that is not known',
    ours: ['200 isError', 'hidden tools and unknown ones are told alike, in words the model can act on'],
    sends: call({ params: { name: 'none' }, headers: { 'mcp-name': 'none' } }),
  },
  {
    shows: 'a tool that objects inherit',
    ours: ['200 isError', 'as any that is not known; the SDK says it is disabled'],
    sends: call({ params: { name: '__proto__' }, headers: { 'mcp-name': '__proto__' } }),
  },
  {
    shows: 'a cursor that is none',
    ours: ['200 -32602', "MCP asks for this error; the SDK's server has no pages and does not look"],
    sends: list({ params: { cursor: 'x' } }),
  },
  {
    shows: 'a cursor that is a number',
    ours: ['200 -32602', "it is the client's mistake; the SDK calls it its own"],
    sends: list({ params: { cursor: 1 } }),
  },
  { shows: 'a progress token', sends: call({ meta: { progressToken: 'p' } }) },
  { shows: 'a progress token that is an object', sends: call({ meta: { progressToken: {} } }) },
]

describe('our code for MCP 2026-07-28, compared with the SDK', () => {
  compareWithOracle({ cases: CASES, urls: () => ({ ours: gateway.mcpUrl, oracle: oracle.url }), summaryOf })
})

/** The parts of an answer that a client depends on. */
function summaryOf(answer: Answer) {
  const { status, headers, text } = answer
  const body = text === '' ? undefined : (answer.json() as RpcAnswer)
  return {
    status,
    allow: headers.allow,
    outcome: body?.error?.code ?? (body?.result ? (body.result.isError === true ? 'isError' : 'result') : 'nothing'),
    id: body?.id,
    data: body?.error?.data === undefined ? undefined : Object.keys(body.error.data as object).toSorted(),
    fields: Object.keys(body?.result ?? {}).toSorted(),
    resultType: body?.result?.['resultType'],
    // The SDK has no tasks, so it does not announce them.
    capabilities: { ...(body?.result?.['capabilities'] as object | undefined), extensions: undefined },
    versions: body?.result?.['supportedVersions'],
    names: body?.result?.tools?.map(({ name }) => name),
    meta: Object.keys(body?.result?._meta ?? {}).toSorted(),
  }
}

function nested(depth: number): unknown {
  return depth === 0 ? 1 : [nested(depth - 1)]
}
