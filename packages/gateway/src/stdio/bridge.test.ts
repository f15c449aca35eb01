import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, it, type TestContext } from 'node:test'
import type { JsonObject } from '@toolgate/values/json'
import { META } from '@toolgate/mcp'
import { StdioBridge } from './bridge.ts'

interface Got {
  readonly method: string
  readonly headers: IncomingHttpHeaders
  readonly body: JsonObject
}
type Answer = (got: Got, response: ServerResponse) => void

const MODERN = { _meta: { [META.protocolVersion]: '2026-07-28' } }

/** A bridge before a gateway that answers as it is told. */
async function setUp(t: TestContext, answer: Answer) {
  const got: Got[] = []
  const server = createServer((request, response) => {
    let text = ''
    request.on('data', (chunk) => (text += String(chunk)))
    request.on('end', () => {
      const one = {
        method: request.method ?? '',
        headers: request.headers,
        body: JSON.parse(text || '{}') as JsonObject,
      }
      got.push(one)
      answer(one, response)
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const written: JsonObject[] = []
  const logged: string[] = []
  let onChange = () => {}
  const bridge = new StdioBridge({
    url: new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`),
    key: 'the-key',
    write(text) {
      written.push(JSON.parse(text) as JsonObject)
      onChange()
    },
    log: (text) => logged.push(text),
    hints: { start: '', key: 'Give a key.' },
  })
  t.after(async () => {
    await bridge.close()
    server.close()
    server.closeAllConnections()
  })
  return {
    bridge,
    got,
    written,
    logged,
    send: (...messages: readonly (object | string)[]) =>
      bridge.receive(
        Buffer.from(messages.map((one) => (typeof one === 'string' ? one : JSON.stringify(one))).join('\n') + '\n'),
      ),
    async until(isDone: () => boolean) {
      while (!isDone()) await new Promise<void>((resolve) => (onChange = resolve))
    },
    bodies: (method: string) => got.flatMap(({ body }) => (body['method'] === method ? [body] : [])),
  }
}

function reply(response: ServerResponse, body: JsonObject, headers: Record<string, string> = {}, status = 200): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))
}
const resultOf = ({ body }: Got, result: object): JsonObject => ({ jsonrpc: '2.0', id: body['id'], result })
const echo: Answer = (got, response) => {
  if (got.method !== 'POST') response.writeHead(405).end()
  else if (got.body['id'] === undefined) response.writeHead(202).end()
  else reply(response, resultOf(got, { heard: got.body['method'] }))
}

describe('StdioBridge', () => {
  it('passes a request on as it came, with the key, and its answer back', async (t) => {
    const { send, until, written, got, bridge } = await setUp(t, echo)
    send({ jsonrpc: '2.0', id: 'a', method: 'tools/list', params: MODERN })
    await until(() => written.length === 1)
    assert.deepEqual(written, [{ jsonrpc: '2.0', id: 'a', result: { heard: 'tools/list' } }])
    const { authorization, 'mcp-protocol-version': version, 'mcp-method': method } = got[0]?.headers ?? {}
    assert.deepEqual([authorization, version, method], ['Bearer the-key', '2026-07-28', 'tools/list'])
    assert.equal(bridge.outcome, 'served')
  })

  it('answers lines that are no messages by itself', async (t) => {
    const { send, written, got } = await setUp(t, echo)
    send('{', '[]', { id: {}, method: 'x' })
    const codes = written.map(({ id, error }) => [id, (error as JsonObject)['code']])
    assert.deepEqual(codes, [
      [null, -32_700],
      [null, -32_600],
      [null, -32_600],
    ])
    assert.deepEqual(got, [])
  })

  it('bounds what runs, and refuses an id that runs', async (t) => {
    const { send, written, got } = await setUp(t, () => {})
    for (let id = 0; id < 1_024; id++) send({ id, method: 'x', params: MODERN })
    send({ id: 7, method: 'x', params: MODERN }, { id: 'more', method: 'x', params: MODERN })
    const texts = written.map(({ error }) => (error as JsonObject)['message'])
    assert.deepEqual(texts, ['A request with this id is running.', 'More than 1024 requests are running.'])
    assert.ok(got.length <= 1_024)
  })

  it('forwards notifications of a client that has begun a session only', async (t) => {
    const { send, until, written, bodies, bridge } = await setUp(t, echo)
    send({ method: 'notifications/roots/list_changed' }, { id: 1, method: 'ping', params: MODERN })
    await until(() => written.length === 1)
    send({ id: 2, method: 'initialize', params: {} })
    await until(() => written.length === 2)
    send({ method: 'notifications/roots/list_changed' })
    send({ id: 3, method: 'ping' })
    await until(() => written.length === 3)
    await bridge.close()
    assert.equal(bodies('notifications/roots/list_changed').length, 1)
  })

  it('begins a lost session again, once for all that lost it, with what shaped it', async (t) => {
    let session = 0
    let isLost = false
    const { send, until, written, bodies, logged } = await setUp(t, (got, response) => {
      const { method, headers, body } = got
      if (method !== 'POST') return void response.writeHead(405).end()
      if (body['method'] === 'initialize') {
        isLost = false
        const result = { protocolVersion: '2025-11-25', capabilities: { tools: {}, logging: {} } }
        return reply(response, resultOf(got, result), { 'mcp-session-id': `s${++session}` })
      }
      if (isLost || headers['mcp-session-id'] !== `s${session}`) return void response.writeHead(404).end()
      echo(got, response)
    })
    send({ id: 1, method: 'initialize', params: { protocolVersion: '2025-11-25' } })
    await until(() => written.length === 1)
    send({ id: 2, method: 'logging/setLevel', params: { level: 'error' } })
    await until(() => written.length === 2)
    isLost = true
    send({ id: 3, method: 'tools/list' }, { id: 4, method: 'ping' })
    await until(() => written.length === 5)
    assert.equal(session, 2)
    assert.deepEqual(
      bodies('logging/setLevel').map(({ params }) => params),
      [{ level: 'error' }, { level: 'error' }],
    )
    assert.deepEqual(
      new Set(written.slice(2).map(({ id, method }) => id ?? method)),
      new Set([3, 4, 'notifications/tools/list_changed']),
    )
    assert.deepEqual(logged, ['The gateway began a new session.'])
  })

  it('cancels in the way of the era: by a notification, or by the end of the connection', async (t) => {
    const closed: unknown[] = []
    const { send, bodies, until, written } = await setUp(t, (got, response) => {
      response.once('close', () => {
        if (!response.writableEnded) closed.push(got.body['id'])
      })
      if (got.body['method'] !== 'tools/call') echo(got, response)
    })
    send({ id: 1, method: 'initialize', params: {} })
    await until(() => written.length === 1)
    send({ id: 2, method: 'tools/call', params: { name: 'slow' } })
    send({ id: 3, method: 'tools/call', params: { name: 'slow', ...MODERN } })
    while (bodies('tools/call').length < 2) await new Promise((resolve) => setImmediate(resolve))
    for (const requestId of [2, 3]) send({ method: 'notifications/cancelled', params: { requestId } })
    while (closed.length < 2) await new Promise((resolve) => setImmediate(resolve))
    assert.deepEqual(
      bodies('notifications/cancelled').map(({ params }) => params),
      [{ requestId: 2 }],
    )
    assert.equal(written.length, 1)
  })

  it('says what a refused key, a broken answer and another program mean', async (t) => {
    const answers: Answer[] = [
      (got, response) =>
        reply(response, { jsonrpc: '2.0', id: got.body['id'], error: { code: -1, message: 'No key.' } }, {}, 401),
      (_, response) => reply(response, { jsonrpc: '2.0', id: null, error: { code: -2, message: 'No key.' } }, {}, 401),
      (_, response) => void response.writeHead(404).end('<html>'),
      (_, response) => void response.writeHead(200, { 'content-type': 'application/json' }).end('{'),
    ]
    const { send, until, written, bridge } = await setUp(t, (one, response) => answers.shift()?.(one, response))
    for (let id = 1; id <= 4; id++) {
      send({ id, method: 'ping', params: MODERN })
      await until(() => written.length === id)
      if (id === 2) assert.equal(bridge.outcome, 'refused')
    }
    const texts = written.map(({ error }) => String((error as JsonObject)['message']))
    assert.deepEqual(texts.slice(0, 2), ['No key.', 'No key. Give a key.'])
    assert.match(texts[2] ?? '', /Something that is not a Toolgate gateway/)
    assert.match(texts[3] ?? '', /ended the answer too early/)
  })
})
