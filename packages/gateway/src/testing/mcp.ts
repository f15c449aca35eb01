import { Instructions } from '../servers/catalog/instructions.ts'
import { createHash } from 'node:crypto'
import { createServer, type IncomingMessage, request as httpRequest } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'
import { createGate, memoryAudit, type Tool } from '@toolgate/core'
import { memoryState } from '@toolgate/core/stores'
import { ToolLists } from '@toolgate/mcp'
import { authenticateKeys } from '../auth/keyring.ts'
import { createOriginRules } from '../auth/origin.ts'
import { createRounds } from '../calls/rounds.ts'
import { ChangeStreams } from '../mcp/change-streams.ts'
import { type EndpointDeps, McpEndpoints } from '../mcp/endpoint.ts'
import { HeldStreams } from '../mcp/held-streams.ts'
import { createKeepAlive } from '../mcp/answer-stream.ts'
import { LOGGING } from '../mcp/logging/start.ts'
import { ClientQuestions } from '../mcp/questions.ts'
import { Sessions } from '../calls/sessions.ts'

/** Two keys of one user, and one of another. */
const KEYS = { vera: 'vera-1', vera2: 'vera-2', paul: 'paul-1' } as const
export type Key = keyof typeof KEYS

/** A JSON-RPC message in a test. */
// oxlint-disable-next-line typescript/no-explicit-any -- a test asserts what it is
type Json = any

/** The response to a request, which may still be open. */
interface Incoming {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  /** The messages so far: from the events of a stream, or from the body. */
  readonly messages: readonly Json[]
  readonly eventIds: readonly string[]
  text(): string
  /** Resolves with the message at an index, counted from 0, once it has arrived. */
  message(number: number): Promise<Json>
  /** Resolves when the response has ended. */
  ended(): Promise<void>
  /** Closes the connection. */
  break(): void
}

interface SendOptions {
  readonly method?: string
  readonly key?: Key
  readonly session?: string | undefined
  readonly headers?: Readonly<Record<string, string>>
  /** Closes the connection, even before the response has begun. */
  readonly signal?: AbortSignal
}

interface TestEndpoint {
  readonly deps: EndpointDeps
  send(message: object | undefined, options?: SendOptions): Promise<Incoming>
  /** Begins a session and returns its id. */
  initialize(options?: {
    readonly key?: Key
    readonly version?: string
    readonly capabilities?: object
  }): Promise<string>
  call(name: string, options?: SendOptions & { readonly id?: number; readonly meta?: object }): Promise<Incoming>
  records(): readonly Json[]
}

/** Serves tools on a separate port, over the real endpoint. */
export async function serveMcp(
  t: TestContext,
  tools: readonly Tool[],
  given: Partial<EndpointDeps> = {},
): Promise<TestEndpoint> {
  const audit = memoryAudit()
  const gate = createGate({ tools, audit })
  const clock = { monotonicMs: () => performance.now(), wallMs: () => Date.now() }
  const serverInfo = { name: 'test', version: '1' }
  const onFault = () => {}
  let endpoints: McpEndpoints | undefined
  const server = createServer((request, response) => void endpoints?.serve(request, response))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const deps: EndpointDeps = {
    texts: {
      own: undefined,
      servers: new Instructions({
        servers: () => [],
        catalogOf: (caller) => gate.catalog.of(caller),
        check: 'off',
        warn: () => {},
      }),
    },
    gate,
    lists: new ToolLists(gate),
    listTtlMs: 1000,
    capabilities: () => ({ tools: { listChanged: true }, logging: {} }),
    methods: () => LOGGING,
    availability: { subscribe: () => () => {} },
    authenticator: authenticateKeys(
      Object.entries(KEYS).map(([name, key]) => ({
        keyHash: createHash('sha256').update(key).digest(),
        for: 'mcp',
        caller: { user: name.replace(/\d$/, ''), roles: [name] },
      })),
    ),
    origins: createOriginRules({ host: '127.0.0.1', port }),
    streams: new ChangeStreams({ serverInfo, onFault }),
    sessions: new Sessions({ clock }),
    keepAlive: createKeepAlive(),
    held: new HeldStreams({ clock }),
    questions: new ClientQuestions(),
    rounds: createRounds({ gate, clock, state: memoryState({ clock }), publicUrl: undefined, isStopping: () => false }),
    stopping: { isStopping: false },
    serverInfo,
    onFault,
    ...given,
  }
  endpoints = new McpEndpoints(deps)
  t.after(async () => {
    endpoints.close()
    server.close()
    server.closeAllConnections()
    await gate.close()
  })
  const send: TestEndpoint['send'] = (message, options = {}) => open(port, message, options)
  return {
    deps,
    send,
    async initialize({ key, version = '2025-11-25', capabilities = {} } = {}) {
      const params = { protocolVersion: version, capabilities, clientInfo: { name: 'test', version: '1' } }
      const { headers } = await send({ jsonrpc: '2.0', id: 0, method: 'initialize', params }, key ? { key } : {})
      return String(headers['mcp-session-id'])
    },
    call: (name, { id = 1, meta, ...options } = {}) =>
      send(
        {
          jsonrpc: '2.0',
          id,
          method: 'tools/call',
          params: { name, arguments: {}, ...(meta === undefined ? {} : { _meta: meta }) },
        },
        options,
      ),
    records: () => audit.records,
  }
}

function open(
  port: number,
  message: object | undefined,
  { method = 'POST', key = 'vera', session, headers = {}, signal }: SendOptions,
): Promise<Incoming> {
  return new Promise((resolve, reject) => {
    const sent = httpRequest(
      {
        port,
        host: '127.0.0.1',
        path: '/mcp',
        method,
        agent: false,
        signal,
        headers: {
          authorization: `Bearer ${KEYS[key]}`,
          accept: method === 'GET' ? 'text/event-stream' : 'application/json, text/event-stream',
          ...(message === undefined ? {} : { 'content-type': 'application/json' }),
          ...(session === undefined ? {} : { 'mcp-session-id': session }),
          ...headers,
        },
      },
      (response) => resolve(read(response)),
    )
    sent.on('error', reject)
    sent.end(message === undefined ? undefined : JSON.stringify(message))
  })
}

function read(response: IncomingMessage): Incoming {
  const isStream = response.headers['content-type'] === 'text/event-stream'
  let text = ''
  let hasEnded = false
  const waiting = new Set<() => void>()
  const wake = () => {
    for (const one of waiting) one()
  }
  const messages = (): readonly Json[] => {
    if (!isStream) return hasEnded && text !== '' ? [JSON.parse(text)] : []
    return [...text.matchAll(/^data: (.+)\n\n/gm)].map(([, data = '']) => JSON.parse(data))
  }
  response.setEncoding('utf8')
  response.on('data', (chunk: string) => {
    text += chunk
    wake()
  })
  response.on('error', () => {})
  response.on('close', () => {
    hasEnded = true
    wake()
  })
  const until = <T>(find: () => T | undefined): Promise<T> =>
    new Promise((resolve, reject) => {
      const look = () => {
        const found = find()
        if (found !== undefined) resolve(found)
        else if (hasEnded) reject(new Error(`the response has ended: ${text}`))
        else return
        waiting.delete(look)
      }
      waiting.add(look)
      look()
    })
  return {
    status: response.statusCode ?? 0,
    headers: response.headers,
    get messages() {
      return messages()
    },
    get eventIds() {
      return [...text.matchAll(/^id: (.+)$/gm)].map(([, id = '']) => id)
    },
    text: () => text,
    message: (number) => until(() => messages()[number]),
    ended: () => until(() => (hasEnded ? null : undefined)).then(() => {}),
    break: () => response.destroy(),
  }
}
