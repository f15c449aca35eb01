import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  LoggingMessageNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js'
import type { AgentCallBody } from '@toolgate/gateway'
import { startTestGateway, type TestGateway } from './support/gateway.ts'
import { KEYS } from './support/keys.ts'
import { startSayingServer } from './support/saying-http.ts'
import { httpServer, nodeServer } from './support/servers.ts'

const SAYING = ['--conditions=toolgate-source', join(import.meta.dirname, 'support/saying-server.ts')]
const INFO = { name: 'test', version: '1' }
const MAY = { elicit: true, sample: true, roots: true, log: true, open: ['https://login.example.com'] }
const requestInit = { headers: { authorization: `Bearer ${KEYS.admin}` } }
const ACCEPT = { action: 'accept' as const, content: {} }

/** Calls a tool, and returns everything that the client was told, as JSON. */
type Say = (tool: string, text: string) => Promise<string>

async function earlierClient(url: string): Promise<{ readonly say: Say; close(): Promise<void> }> {
  let told: unknown[] = []
  const client = new ClientV1(INFO, { capabilities: { elicitation: { form: {}, url: {} }, sampling: {} } })
  client.setRequestHandler(ElicitRequestSchema, ({ params }) => (told.push(params), ACCEPT))
  client.setRequestHandler(CreateMessageRequestSchema, ({ params }) => {
    told.push(params)
    return { role: 'assistant', model: 'm', content: { type: 'text', text: 'sampled' } }
  })
  client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => void told.push(params))
  await client.connect(new TransportV1(new URL(url), { requestInit }))
  const say: Say = async (name, text) => {
    told = []
    const onprogress = (progress: object) => void told.push(progress)
    const call = client.callTool({ name, arguments: { text } }, undefined, { onprogress })
    told.push(await call.catch(({ message, data }: { message: string; data?: unknown }) => ({ message, data })))
    return JSON.stringify(told)
  }
  return { say, close: () => client.close() }
}

async function modernClient(url: string): Promise<{ readonly say: Say; close(): Promise<void> }> {
  let told: unknown[] = []
  const client = new Client(INFO, {
    versionNegotiation: { mode: { pin: '2026-07-28' } },
    capabilities: { elicitation: { form: {}, url: {} } },
  })
  client.setRequestHandler('elicitation/create', ({ params }) => (told.push(params), ACCEPT))
  client.setNotificationHandler('notifications/message', ({ params }) => void told.push(params))
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit }))
  const say: Say = async (name, text) => {
    told = []
    const onprogress = (progress: object) => void told.push(progress)
    const _meta = { 'io.modelcontextprotocol/logLevel': 'debug' }
    const call = client.callTool({ name, arguments: { text }, _meta }, { onprogress })
    told.push(await call.catch(({ message, data }: { message: string; data?: unknown }) => ({ message, data })))
    return JSON.stringify(told)
  }
  return { say, close: () => client.close() }
}

const CLIENTS = { 'an earlier client': earlierClient, 'a client of MCP 2026-07-28': modernClient } as const
const WAYS = [
  'old__log',
  'old__progress',
  'old__ask',
  'old__sample',
  'old__page',
  'old__error',
  'new__log',
  'new__progress',
  'new__ask',
  'new__error',
] as const
/** Sampling is for earlier clients alone. */
const NOT_RELAYED: Readonly<Record<string, readonly string[]>> = { 'a client of MCP 2026-07-28': ['old__sample'] }

for (const [who, connect] of Object.entries(CLIENTS))
  describe(`what a server says before its result, to ${who}`, () => {
    let gateway: TestGateway
    let server: Awaited<ReturnType<typeof startSayingServer>>
    let client: Awaited<ReturnType<typeof earlierClient>>
    before(async () => {
      server = await startSayingServer()
      gateway = await startTestGateway({
        servers: [
          nodeServer('old', SAYING, { may: MAY, per: 'user' }),
          httpServer('new', server.url, { may: MAY, per: 'user' }),
        ],
        policy: [{ deny: [{ match: 'old:send', input: "origin(input.to) == 'untrusted'", message: 'It was read.' }] }],
      })
      client = await connect(gateway.mcpUrl)
    })
    after(async () => {
      await client?.close()
      await gateway?.close()
      await server?.close()
    })

    for (const [i, way] of WAYS.entries())
      it(`is untrusted output of the run: ${way}`, async () => {
        const address = `eve${i}@evil.example`
        assert.equal(await sendTo(address), 'done', 'nobody has said it')
        const told = await client.say(way, address)
        if (NOT_RELAYED[who]?.includes(way)) {
          assert.doesNotMatch(told, new RegExp(address))
          return
        }
        assert.match(told, new RegExp(address), 'the client was told')
        assert.equal(await sendTo(address), 'refused')
      })

    async function sendTo(to: string) {
      const options = { key: KEYS.admin, method: 'POST', body: { tool: 'old:send', input: { to } } }
      return ((await gateway.api('/api/call', options)).body as AgentCallBody).status
    }
  })
