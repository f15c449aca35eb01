import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
  LoggingMessageNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js'
import { type ModernServer, startModernServer } from '../packages/gateway/fixtures/modern-server.ts'
import { startTestGateway, type TestGateway, until } from './support/gateway.ts'
import { KEYS } from './support/keys.ts'
import { everythingServer, HOSTILE, httpServer, nodeServer } from './support/servers.ts'

const INFO = { name: 'test', version: '1' }
const MAY = { elicit: true, sample: true, roots: true, log: true, open: ['https://login.example.com'] }
const requestInit = { headers: { authorization: `Bearer ${KEYS.admin}` } }
const LOGGING = ['--conditions=toolgate-source', join(import.meta.dirname, 'support/logging-server.ts')]
let gateway: TestGateway
let modern: ModernServer

before(async () => {
  modern = await startModernServer()
  gateway = await startTestGateway({
    servers: [
      { ...everythingServer(), name: 'old', per: 'user', may: MAY },
      { ...everythingServer(), name: 'silent' },
      httpServer('modern', modern.url, { may: MAY }),
      httpServer('quiet', modern.url),
      nodeServer('logging', LOGGING, { may: MAY, per: 'shared' }),
      nodeServer('logging_own', LOGGING, { may: MAY, per: 'user' }),
      nodeServer('logging_mute', LOGGING),
      nodeServer('hostile', [HOSTILE, 'banner'], { may: { ...MAY, sample: true } }),
    ],
  })
})

after(async () => {
  await gateway?.close()
  await modern?.close()
})

interface Asked {
  readonly method: string
  readonly params: { readonly message?: string; readonly url?: string }
}

/** A client of the SDK of earlier revisions that accepts what it is asked, and keeps it. */
async function connectV1(capabilities: object = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} }) {
  const asked: Asked[] = []
  const logs: unknown[] = []
  const client = new ClientV1(INFO, { capabilities })
  const keep = ({ method, params = {} }: { method: string; params?: object | undefined }) =>
    void asked.push({ method, params })
  if ('elicitation' in capabilities)
    client.setRequestHandler(ElicitRequestSchema, (request) => {
      keep(request)
      return request.params.mode === 'url'
        ? { action: 'accept' as const }
        : { action: 'accept' as const, content: { name: 'Vera' } }
    })
  if ('sampling' in capabilities)
    client.setRequestHandler(CreateMessageRequestSchema, (request) => {
      keep(request)
      return { role: 'assistant', model: 'm', content: { type: 'text', text: 'sampled' } }
    })
  if ('roots' in capabilities)
    client.setRequestHandler(ListRootsRequestSchema, (request) => {
      keep(request)
      return { roots: [{ uri: 'file:///workspace' }] }
    })
  client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => void logs.push(params))
  await client.connect(new TransportV1(new URL(gateway.mcpUrl), { requestInit }))
  const textOf = async (name: string, args: Record<string, unknown> = {}) =>
    JSON.stringify(await client.callTool({ name, arguments: args }).catch((error: unknown) => String(error)))
  return { client, asked, logs, textOf }
}

async function records() {
  const { body } = await gateway.api('/api/audit?event=server_asked&limit=100')
  return (body as { records: { tool: string; reason: string; detail: string; user_id: string }[] }).records
}

describe('a server of an earlier revision', () => {
  it('asks a client of the same revision: a form, a page to open, a sample, roots', async () => {
    const { client, asked, textOf } = await connectV1()
    assert.match(await textOf('old__trigger-elicitation-request'), /Vera/)
    assert.match(await textOf('old__trigger-url-elicitation', { url: 'https://login.example.com/x' }), /accept/)
    assert.match(await textOf('old__trigger-sampling-request', { prompt: 'p', maxTokens: 5 }), /sampled/)
    assert.match(await textOf('old__get-roots-list'), /workspace/)
    const [form, url] = asked.filter(({ method }) => method === 'elicitation/create')
    assert.match(form?.params.message ?? '', /^Server "old" asks: /)
    assert.match(url?.params.message ?? '', /^Server "old" asks: /)
    await until(async () => (await records()).length >= 4)
    const written = await records()
    assert.ok(written.every(({ reason, user_id: user }) => reason === 'relayed' && user !== undefined))
    await client.close()
  })

  it('has no page opened that its entry does not name, by neither way, on record', async () => {
    const { client, asked, textOf } = await connectV1()
    const url = 'https://evil.example.com/x'
    assert.match(await textOf('old__trigger-url-elicitation', { url }), /may not be opened/)
    const thrown = await textOf('old__trigger-url-elicitation', { url, errorPath: true })
    assert.match(thrown, /refused/)
    assert.deepEqual(asked, [])
    const refused = async () =>
      (await records()).filter(
        ({ reason, detail }) => reason === 'refused' && /evil|modelcontextprotocol\.io/.test(detail),
      )
    await until(async () => (await refused()).length === 2)
    await client.close()
  })

  it('asks nothing if its entry says nothing, and is not told that it could', async () => {
    const { client, asked, textOf } = await connectV1()
    const { tools } = await client.listTools()
    assert.ok(!tools.some(({ name }) => name.startsWith('silent__trigger-elicitation')))
    assert.match(await textOf('silent__echo', { message: 'hi' }), /hi/)
    assert.deepEqual(asked, [])
    await client.close()
  })

  it('gets an error for a client that cannot be asked', async () => {
    const { client, asked, textOf } = await connectV1({})
    assert.match(await textOf('old__trigger-elicitation-request'), /does not support elicitation\/create/)
    assert.deepEqual(asked, [])
    await client.close()
  })

  it('is told the least severe level that the clients of its running calls want', async () => {
    const [one, other] = [await connectV1(), await connectV1()]
    await one.client.setLoggingLevel('error')
    await other.client.setLoggingLevel('info')
    const levels = async ({ client }: typeof one, name: string, ms = 0) => {
      const { content } = (await client.callTool({ name, arguments: { ms } })) as { content: { text: string }[] }
      return content[0]?.text
    }
    assert.equal(await levels(one, 'logging__levels'), 'error')
    assert.equal(await levels(one, 'logging__levels'), 'error', 'it is told once')
    const running = levels(one, 'logging__levels', 500)
    assert.equal(await levels(other, 'logging__levels', 100), 'error info')
    assert.equal(await running, 'error info')
    await one.client.setLoggingLevel('alert')
    assert.equal(await levels(one, 'logging__levels'), 'error info alert')
    assert.equal(await levels(one, 'logging_own__levels'), 'alert')
    assert.equal(await levels(one, 'logging_mute__levels'), '', 'it may not log')
  })

  it('sends its log messages to the client of the call alone, under its name', async () => {
    const one = await connectV1()
    const other = await connectV1()
    await one.textOf('hostile__log-line')
    await until(() => one.logs.length === 1)
    assert.deepEqual(one.logs, [{ level: 'info', logger: 'hostile', data: 'a line' }])
    assert.deepEqual(other.logs, [])
    await one.client.close()
    await other.client.close()
  })
})

describe('a server of MCP 2026-07-28', () => {
  it('asks a client of an earlier revision while its call runs', async () => {
    const { client, asked, textOf } = await connectV1()
    assert.match(await textOf('modern__ask_back'), /Hello Vera, from somewhere/)
    assert.equal(asked[0]?.params.message, 'Server "modern" asks: Who are you?')
    await client.close()
  })

  it('asks a client of the same revision by input_required', async () => {
    const client = new Client(INFO, {
      versionNegotiation: { mode: { pin: '2026-07-28' } },
      capabilities: { elicitation: { form: {} } },
    })
    const messages: unknown[] = []
    client.setRequestHandler('elicitation/create', ({ params }) => {
      messages.push(params.message)
      return { action: 'accept' as const, content: { name: 'Vera' } }
    })
    await client.connect(new StreamableHTTPClientTransport(new URL(gateway.mcpUrl), { requestInit }))
    const { content } = await client.callTool({ name: 'modern__ask_back', arguments: {} })
    assert.deepEqual(content, [{ type: 'text', text: 'Hello Vera, from somewhere.' }])
    assert.deepEqual(messages, ['Server "modern" asks: Who are you?'])
    await client.close()
  })

  it('asks nobody if its entry says nothing, and its call fails with the error of the protocol', async () => {
    const { client, asked, textOf } = await connectV1()
    assert.match(await textOf('quiet__ask_back'), /-32021/)
    assert.deepEqual(asked, [])
    await client.close()
  })

  it('asks nobody who cannot answer: the error names the capability', async () => {
    const { client, textOf } = await connectV1({})
    assert.match(await textOf('modern__ask_back'), /-32021|does not support/)
    await client.close()
  })
})
