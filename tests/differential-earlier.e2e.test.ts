import { createServer, type Server as HttpServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, describe } from 'node:test'
import { type NodeIncomingMessageLike, toNodeHandler } from '@modelcontextprotocol/node'
import { legacyStatelessFallback, Server } from '@modelcontextprotocol/server'
import type { Answer, Sending } from './support/http.ts'
import { type Case, compareWithOracle } from './support/differential.ts'
import { startTestGateway, type TestGateway } from './support/gateway.ts'
import { type RecordedTool, type RecordingServer, startRecordingServer } from './support/recording-server.ts'
import { type RpcAnswer, toMessage } from './support/rpc.ts'
import { httpServer } from './support/servers.ts'

/**
 * The same requests to our code for the revisions before 2026-07-28 and to the SDK's server with the same tools, which is
 * the oracle: status, error code and the whole result. If they differ on purpose, `ours` says how and why.
 *
 * The media type is not compared: the SDK always streams, and we answer with JSON where nothing comes before the answer.
 */

const LIST_SCHEMA = { type: 'array', items: { $ref: '#/$defs/n' }, $defs: { n: { type: 'number' } } }
const ANY_SCHEMA = { anyOf: [{ type: 'object' }, { type: 'null' }] }
const TEXT = { type: 'text', text: 'ran' }
const TOOLS: readonly (RecordedTool & { readonly outputSchema?: object })[] = [
  { name: 'plain', description: 'A tool.', run: () => ({ content: [TEXT] }) },
  {
    name: 'object',
    outputSchema: { type: 'object', properties: { n: { type: 'number' } } },
    run: () => ({ content: [TEXT], structuredContent: { n: 1 } }),
  },
  { name: 'list', outputSchema: LIST_SCHEMA, run: () => ({ content: [], structuredContent: [1, 2] }) },
  { name: 'list-and-text', outputSchema: LIST_SCHEMA, run: () => ({ content: [TEXT], structuredContent: [1] }) },
  { name: 'any', outputSchema: ANY_SCHEMA, run: () => ({ content: [TEXT], structuredContent: { n: 1 } }) },
  { name: 'number', run: () => ({ content: [], structuredContent: 7 }) },
  { name: 'fails', outputSchema: LIST_SCHEMA, run: () => ({ content: [TEXT], isError: true }) },
  { name: 'no-content', run: () => ({ structuredContent: { n: 1 } }) },
  {
    name: 'more',
    run: () => ({ content: [TEXT], more: 1, resultType: 'complete', _meta: { 'example.com/x': 1 } }),
  },
  {
    name: 'blocks',
    run: () => ({
      content: [
        { type: 'image', data: 'aGk=', mimeType: 'image/png' },
        { type: 'audio', data: 'aGk=', mimeType: 'audio/wav' },
        { type: 'resource_link', name: 'a', uri: 'file:///a' },
        { type: 'resource', resource: { uri: 'file:///a', text: 'a' } },
      ],
    }),
  },
]

let gateway: TestGateway
let upstream: RecordingServer
let oracle: { url: string; close(): Promise<void> }

before(async () => {
  upstream = await startRecordingServer(TOOLS)
  gateway = await startTestGateway({ servers: [httpServer('up', upstream.url)] })
  oracle = await startOracle()
})

after(async () => {
  await gateway?.close()
  await Promise.all([upstream?.close(), oracle?.close()])
})

async function startOracle(): Promise<typeof oracle> {
  const serve = legacyStatelessFallback(() => {
    const server = new Server({ name: 'toolgate', version: '1' }, { capabilities: { tools: { listChanged: true } } })
    const tools = TOOLS.map(({ run: _, ...tool }) => ({
      inputSchema: { type: 'object' },
      ...tool,
      name: `up__${tool.name}`,
    }))
    const sorted = tools.toSorted((a, b) => (a.name < b.name ? -1 : 1))
    server.setRequestHandler('tools/list', () => ({ tools: sorted }) as never)
    server.setRequestHandler('tools/call', async ({ params }) => {
      const tool = TOOLS.find(({ name }) => `up__${name}` === params.name)
      const { resultType: _, ...result } = await tool!.run!({}, { signal: new AbortController().signal })
      return server.projectCallToolResult(result as never, tool?.outputSchema as never) as never
    })
    return server
  })
  const handle = toNodeHandler({ fetch: serve })
  const http: HttpServer = createServer(
    (request, response) => void handle(request as NodeIncomingMessageLike, response),
  )
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp`,
    async close() {
      http.closeAllConnections()
      await new Promise((resolve) => http.close(resolve))
    },
  }
}

type Change = Readonly<Record<string, unknown>>

/** A correct request with parts replaced; `undefined` removes a part. */
function change(method: string, parts: { body?: Change; params?: Change; headers?: Change } = {}): Sending {
  const { headers, body } = toMessage('2025-11-25', method)
  const whole = { ...body, params: { ...body.params, ...parts.params }, ...parts.body }
  const sent = Object.entries({ ...headers, ...parts.headers }).filter(([, value]) => value !== undefined)
  return { headers: Object.fromEntries(sent) as Record<string, string>, body: JSON.stringify(whole) }
}

const INIT = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1' } }
const init = (params: Change = {}, parts: Parameters<typeof change>[1] = {}) =>
  change('initialize', { ...parts, params: { ...INIT, ...params } })
const call = (name: unknown, parts: Parameters<typeof change>[1] = {}) =>
  change('tools/call', { ...parts, params: { name, arguments: {}, ...parts.params } })
const ping = (parts: Parameters<typeof change>[1] = {}) => change('ping', parts)
const withBody = (body: string): Sending => ({ ...ping(), body })

const CLIENTS_MISTAKE = "it is the client's mistake; the SDK calls it its own"
const ACCEPTS = 'a client gets the form that it accepts; the SDK wants both names, in lower case'
const NOT_A_MESSAGE = 'it is JSON, but no message of JSON-RPC'

const CASES: readonly Case[] = [
  // initialize, with each revision.
  ...['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05', '2024-10-07', '2026-07-28', '2027-01-01', 'x', ''].map(
    (protocolVersion) => ({ shows: `initialize with "${protocolVersion}"`, sends: init({ protocolVersion }) }),
  ),
  {
    shows: 'initialize with capabilities',
    sends: init({
      capabilities: { elicitation: { form: {}, url: {} }, sampling: {}, roots: { listChanged: true }, x: 1 },
    }),
  },
  {
    shows: 'initialize with a header of an unknown revision',
    sends: init({}, { headers: { 'mcp-protocol-version': 'x' } }),
  },
  { shows: 'initialize without a header', sends: init({}, { headers: { 'mcp-protocol-version': undefined } }) },
  ...(
    [
      ['a revision that is a number', { protocolVersion: 1 }],
      ['no revision', { protocolVersion: undefined }],
      ['no capabilities', { capabilities: undefined }],
      ['capabilities in a list', { capabilities: [] }],
      ['a capability that is a number', { capabilities: { elicitation: 1 } }],
      ['no client info', { clientInfo: undefined }],
      ['client info without a version', { clientInfo: { name: 'x' } }],
    ] as const
  ).map(([shows, params]): Case => ({
    shows: `initialize with ${shows}`,
    sends: init(params),
    ours: ['200 -32602', CLIENTS_MISTAKE],
  })),

  // The session's own methods.
  { shows: 'ping', sends: ping() },
  { shows: 'ping with params', sends: ping({ params: { more: 1 } }) },
  { shows: 'ping without params', sends: ping({ body: { params: undefined } }) },
  { shows: 'a notification', sends: change('notifications/initialized', { body: { id: undefined } }) },
  { shows: 'an unknown notification', sends: change('notifications/x', { body: { id: undefined } }) },
  {
    shows: 'a cancellation of nothing',
    sends: change('notifications/cancelled', { body: { id: undefined }, params: { requestId: 99 } }),
  },
  {
    shows: 'a cancellation without an id',
    sends: change('notifications/cancelled', { body: { id: undefined } }),
  },
  { shows: 'an answer nobody asked for', sends: withBody('{"jsonrpc":"2.0","id":1,"result":{}}') },
  { shows: 'an error nobody asked for', sends: withBody('{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}') },
  { shows: 'an unknown method', sends: change('x/y') },
  { shows: 'a method of 2026-07-28', sends: change('server/discover') },
  { shows: 'a method that objects inherit', sends: change('constructor') },
  { shows: 'a method of servers', sends: change('sampling/createMessage') },

  // Tools.
  { shows: 'tools/list', sends: change('tools/list') },
  { shows: 'tools/list without params', sends: change('tools/list', { body: { params: undefined } }) },
  ...TOOLS.map(({ name }) => ({ shows: `tools/call of ${name}`, sends: call(`up__${name}`) })),
  { shows: 'a call without arguments', sends: call('up__plain', { params: { arguments: undefined } }) },
  { shows: 'a call with a progress token', sends: call('up__plain', { params: { _meta: { progressToken: 'p' } } }) },
  {
    shows: 'a call as a task',
    sends: call('up__plain', { params: { task: { ttl: 1 } } }),
    ours: ['200 -32601', 'the tool does not run as a task, and a client is told so'],
  },
  { shows: 'a call without a revision', sends: call('up__plain', { headers: { 'mcp-protocol-version': undefined } }) },
  { shows: 'a name that is a number', sends: call(5) },
  { shows: 'no name', sends: call(undefined) },
  { shows: 'arguments in a list', sends: call('up__plain', { params: { arguments: [] } }) },
  {
    shows: 'arguments null',
    ours: ['200 result', 'null is another spelling of an absent member'],
    sends: call('up__plain', { params: { arguments: null } }),
  },
  {
    shows: 'a cursor that is none',
    sends: change('tools/list', { params: { cursor: 'x' } }),
    ours: ['200 -32602', "MCP asks for this error; the SDK's server has no pages and does not look"],
  },
  {
    shows: 'a cursor that is a number',
    sends: change('tools/list', { params: { cursor: 1 } }),
    ours: ['200 -32602', CLIENTS_MISTAKE],
  },

  // The headers.
  ...['application/json', 'text/event-stream', '*/*', '', 'APPLICATION/JSON, TEXT/EVENT-STREAM'].map((accept) => ({
    shows: `an Accept of "${accept}"`,
    sends: ping({ headers: { accept } }),
    ours: ['200 result', ACCEPTS] as const,
  })),
  { shows: 'an Accept of other types', sends: ping({ headers: { accept: 'text/html' } }) },
  {
    shows: 'no Accept',
    sends: ping({ headers: { accept: undefined } }),
    ours: ['200 result', ACCEPTS],
  },
  {
    shows: 'no Accept for a notification',
    sends: change('notifications/x', { body: { id: undefined }, headers: { accept: undefined } }),
    ours: ['202 nothing', 'a notification has no answer that a client could take'],
  },
  { shows: 'an unknown revision in the header', sends: ping({ headers: { 'mcp-protocol-version': 'x' } }) },
  { shows: 'an empty revision in the header', sends: ping({ headers: { 'mcp-protocol-version': '' } }) },
  {
    shows: 'an unknown revision for a notification',
    sends: change('notifications/x', { body: { id: undefined }, headers: { 'mcp-protocol-version': 'x' } }),
  },
  { shows: 'the first revision of all', sends: ping({ headers: { 'mcp-protocol-version': '2024-10-07' } }) },
  { shows: 'a text media type', sends: ping({ headers: { 'content-type': 'text/plain' } }) },
  {
    shows: 'a charset in the media type',
    sends: ping({ headers: { 'content-type': 'application/json; charset=utf-8' } }),
  },
  { shows: 'GET without a session', sends: { method: 'GET', headers: { accept: 'text/event-stream' } } },
  { shows: 'DELETE without a session', sends: { method: 'DELETE' } },
  { shows: 'PUT', sends: { ...ping(), method: 'PUT' } },

  // The message.
  { shows: 'an id that is a text', sends: ping({ body: { id: 'a' } }) },
  { shows: 'an id that is empty', sends: ping({ body: { id: '' } }) },
  { shows: 'id 0', sends: ping({ body: { id: 0 } }) },
  { shows: 'a negative id', sends: ping({ body: { id: -7 } }) },
  { shows: 'an empty body', sends: withBody('') },
  { shows: 'no JSON', sends: withBody('{') },
  ...(
    [
      ['null', 'null'],
      ['a text', '"x"'],
      ['an empty object', '{}'],
      ['no method, result or error', '{"jsonrpc":"2.0","id":1}'],
      ['another jsonrpc', '{"jsonrpc":"1.0","id":1,"method":"ping"}'],
      ['a method that is a number', '{"jsonrpc":"2.0","id":1,"method":1}'],
      ['id null', '{"jsonrpc":"2.0","id":null,"method":"ping"}'],
      ['an id with a fraction', '{"jsonrpc":"2.0","id":1.5,"method":"ping"}'],
      ['params in a list', '{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}'],
      ['a _meta that is a text', '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":"x"}}'],
      [
        'a progress token that is an object',
        '{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{"progressToken":{}}}}',
      ],
      [
        'a progress token with a fraction',
        '{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{"progressToken":1.5}}}',
      ],
      ['a result that is a number', '{"jsonrpc":"2.0","id":1,"result":1}'],
      ['an error without a message', '{"jsonrpc":"2.0","id":1,"error":{"code":1}}'],
      ['an answer with id null', '{"jsonrpc":"2.0","id":null,"result":{}}'],
      ['a request that is an answer too', '{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}'],
    ] as const
  ).map(([shows, body]): Case => ({ shows, sends: withBody(body), ours: ['400 -32600', NOT_A_MESSAGE] })),
  {
    shows: 'a batch',
    sends: withBody(`[${ping().body as string}]`),
    ours: ['400 -32600', 'the last revision with batches is 2025-03-26, and no client of it sends any'],
  },
  {
    shows: 'an empty batch',
    sends: withBody('[]'),
    ours: ['400 -32600', 'no batches are served'],
  },
  { shows: 'a body over the cap', sends: withBody(' '.repeat(4 * 1024 * 1024 + 1)) },
]

describe('our code for earlier revisions, compared with the SDK', () => {
  compareWithOracle({ cases: CASES, urls: () => ({ ours: gateway.mcpUrl, oracle: oracle.url }), summaryOf })
})

/** The parts of an answer that a client depends on. */
function summaryOf(answer: Answer) {
  const { status, headers, text } = answer
  const body = text === '' ? undefined : (answer.json() as RpcAnswer)
  const { serverInfo, ...result } = withoutTasks(body?.result ?? {})
  return {
    status,
    // With a session there is GET and DELETE. 405 is the same for all others.
    allow: status === 405 ? undefined : headers.allow,
    outcome: body?.error?.code ?? (body?.result ? (body.result.isError === true ? 'isError' : 'result') : 'nothing'),
    // The SDK leaves the id out where it refuses the HTTP request.
    id: status === 200 ? body?.id : undefined,
    result,
    server: (serverInfo as { name?: string } | undefined)?.name,
  }
}

/** The SDK has no tasks, so it does not announce them. */
function withoutTasks(result: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  if (result['capabilities'] === undefined) return result
  const { tasks: _, ...capabilities } = result['capabilities'] as Readonly<Record<string, unknown>>
  return { ...result, capabilities }
}
