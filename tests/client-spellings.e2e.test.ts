import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { startTestGateway, type TestGateway } from './support/gateway.ts'
import { type Answer, send, sendRaw } from './support/http.ts'
import { KEYS } from './support/keys.ts'
import { ERAS, type Era, MODERN, type RpcAnswer, toMessage } from './support/rpc.ts'

/** HTTP as clients write it (RFC 9110 §8.3.1, §12.5.1): no rule sees these differences, so each gets its answer. */
let gateway: TestGateway

before(async () => {
  gateway = await startTestGateway({
    search: { offer: 'always' },
    apps: [{ name: 'research', import: [], tools: ['search_tools'], policy: [] }],
  })
})
after(() => gateway.close())

const AUTHORIZATION = `Bearer ${KEYS.admin}`
const JSON_TYPE = 'application/json'
const STREAM = 'text/event-stream'
const LEGACY = '2025-11-25'
const INIT = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'x', version: '1' } }

type Headers = Readonly<Record<string, string | readonly string[] | undefined>>

function post(era: Era, method: string, params: object, more: Headers = {}, path = '/mcp'): Promise<Answer> {
  const { headers, body } = toMessage(era, method, params as never)
  const all = Object.entries({ ...headers, authorization: AUTHORIZATION, ...more })
  const sent = Object.fromEntries(all.filter(([, value]) => value !== undefined)) as Record<string, string>
  return send(gateway.url + path, { headers: sent, body: JSON.stringify(body) })
}

/** The `Accept` header, and the type of the answer to one message. */
const ACCEPTS: readonly (readonly [accept: string | readonly string[] | undefined, type: string])[] = [
  [undefined, JSON_TYPE],
  ['', JSON_TYPE],
  ['*/*', JSON_TYPE],
  ['application/json', JSON_TYPE],
  ['APPLICATION/JSON, TEXT/EVENT-STREAM', JSON_TYPE],
  ['application/json;q=0.1, text/event-stream;q=0.9', JSON_TYPE],
  ['text/event-stream;q=0, */*', JSON_TYPE],
  ['text/html, *; q=.2, */*; q=.2', JSON_TYPE],
  [['application/json', 'text/event-stream'], JSON_TYPE],
  [['text/plain', 'Application/*'], JSON_TYPE],
  ['text/event-stream', STREAM],
  ['Text/*;q=0.5', STREAM],
  ['application/json;q=0, */*', STREAM],
]

describe('a client with another Accept header', () => {
  for (const [accept, type] of ACCEPTS) {
    for (const era of ERAS)
      it(`gets ${type} for ${JSON.stringify(accept)}, in ${era}`, async () => {
        const listed = await post(era, 'tools/list', {}, { accept })
        assert.deepEqual([listed.status, listed.headers['content-type']], [200, type], listed.text)
        assert.ok(((listed.json() as RpcAnswer).result?.tools ?? []).length > 0)
        const call = { name: 'search_tools', arguments: { query: 'x' } }
        const called = await post(era, 'tools/call', call, { accept })
        assert.deepEqual([called.status, called.headers['content-type']], [200, type], called.text)
        assert.ok((called.json() as RpcAnswer).result?.content)
      })

    it(`begins a session with ${JSON.stringify(accept)}`, async () => {
      const begun = await post(LEGACY, 'initialize', INIT, { accept, 'mcp-protocol-version': undefined })
      assert.deepEqual([begun.status, begun.headers['content-type']], [200, type], begun.text)
      const session = begun.headers['mcp-session-id'] as string
      assert.equal((begun.json() as RpcAnswer).result?.['protocolVersion'], '2025-06-18')
      for (const method of ['ping', 'tools/list']) {
        // A client may leave out the revision in a session.
        const headers = { accept, 'mcp-session-id': session, 'mcp-protocol-version': undefined }
        const answer = await post(LEGACY, method, {}, headers)
        assert.deepEqual([answer.status, answer.headers['content-type']], [200, type], answer.text)
      }
      const headers = { authorization: AUTHORIZATION, 'mcp-session-id': session, ...(accept && { accept }) }
      assert.equal((await send(gateway.mcpUrl, { method: 'DELETE', headers })).status, 200)
    })
  }

  it('gets an error of its call in the same form, and an HTTP error as JSON', async () => {
    for (const era of ERAS) {
      const fault = await post(era, 'tools/call', { name: 5 }, { accept: STREAM, 'mcp-name': undefined })
      assert.deepEqual([fault.status, fault.headers['content-type']], [200, STREAM])
      assert.equal((fault.json() as RpcAnswer).error?.code, -32_602)
      const refused = await post(era, 'tools/list', {}, { accept: STREAM, authorization: undefined })
      assert.deepEqual([refused.status, refused.headers['content-type']], [401, JSON_TYPE])
    }
  })

  it('gets 406 if it takes neither, in every era, and nothing runs', async () => {
    for (const era of ERAS)
      for (const accept of ['text/html', '*/*;q=0', 'application/json;q=0, text/event-stream;q=0, */*']) {
        const answer = await post(era, 'tools/list', {}, { accept })
        assert.deepEqual([answer.status, (answer.json() as RpcAnswer).error?.code], [406, -32_000])
      }
  })

  it('needs no Accept header for a notification, which has no answer', async () => {
    const { headers, body } = toMessage(LEGACY, 'notifications/initialized')
    const { id: _, ...notification } = body
    const sent = { ...headers, accept: 'text/html', authorization: AUTHORIZATION }
    const answer = await send(gateway.mcpUrl, { headers: sent, body: JSON.stringify(notification) })
    assert.deepEqual([answer.status, answer.text], [202, ''])
  })
})

describe('the stream of a session', () => {
  const open = async (accept: string | undefined) => {
    const begun = await post(LEGACY, 'initialize', INIT)
    const session = begun.headers['mcp-session-id'] as string
    const abort = new AbortController()
    const url = gateway.mcpUrl
    try {
      const headers = { authorization: AUTHORIZATION, 'mcp-session-id': session, ...(accept && { accept }) }
      const answer = await fetch(url, { headers, signal: abort.signal })
      return [answer.status, answer.headers.get('content-type')]
    } finally {
      abort.abort()
    }
  }

  it('opens for every client that takes an event stream', async () => {
    for (const accept of ['*/*', 'TEXT/EVENT-STREAM', 'text/*;q=0.1', 'application/json, text/event-stream'])
      assert.deepEqual(await open(accept), [200, STREAM], accept)
  })

  it('is 406 for a client that takes only JSON', async () => {
    assert.deepEqual(await open(JSON_TYPE), [406, JSON_TYPE])
    const listen = { notifications: { toolsListChanged: true } }
    assert.equal((await post(MODERN, 'subscriptions/listen', listen, { accept: JSON_TYPE })).status, 406)
  })
})

describe('a body', () => {
  it('may be named application/json in any case, with parameters', async () => {
    for (const era of ERAS)
      for (const type of ['Application/JSON', 'application/json;charset="UTF-8"', 'application/json ; Charset=utf-8'])
        assert.equal((await post(era, 'tools/list', {}, { 'content-type': type })).status, 200, type)
  })

  it('may begin with a byte order mark', async () => {
    for (const era of ERAS) {
      const { headers, body } = toMessage(era, 'tools/list')
      const sent = { ...headers, authorization: AUTHORIZATION }
      const answer = await send(gateway.mcpUrl, { headers: sent, body: `\uFEFF${JSON.stringify(body)}` })
      assert.equal(answer.status, 200)
    }
  })
})

describe('an endpoint with a slash at its end', () => {
  it('is the same endpoint', async () => {
    for (const era of ERAS) {
      const [bare, slash] = await Promise.all(['/mcp', '/mcp/'].map((path) => post(era, 'tools/list', {}, {}, path)))
      assert.deepEqual([slash?.status, slash?.text], [200, bare?.text])
      const app = await Promise.all(
        ['/mcp/research', '/mcp/research/'].map((path) => post(era, 'tools/list', {}, {}, path)),
      )
      assert.deepEqual([app[1]?.status, app[1]?.text], [200, app[0]?.text])
    }
  })

  it('refuses what it refuses without the slash', async () => {
    assert.equal((await post(MODERN, 'tools/list', {}, { authorization: undefined }, '/mcp/')).status, 401)
    assert.equal((await post(MODERN, 'tools/list', {}, { origin: 'https://evil.example' }, '/mcp/')).status, 403)
    for (const path of ['/mcp//', '/mcp/nothing/', '/mcp/research//'])
      assert.equal((await post(MODERN, 'tools/list', {}, {}, path)).status, 404, path)
  })
})

describe('HEAD, OPTIONS and GET of an agent endpoint', () => {
  it('need a key, and name the methods', async () => {
    for (const method of ['HEAD', 'OPTIONS', 'GET', 'PUT']) {
      const bare = await send(gateway.mcpUrl, { method })
      assert.deepEqual([bare.status, typeof bare.headers['www-authenticate']], [401, 'string'], method)
      const answer = await send(gateway.mcpUrl, { method, headers: { authorization: AUTHORIZATION, accept: '*/*' } })
      assert.deepEqual([answer.status, answer.headers.allow], [405, 'POST'], method)
    }
  })
})

describe('/api', () => {
  it('takes JSON bodies in any case, with parameters and a byte order mark, whatever the Accept header says', async () => {
    for (const accept of ['*/*', 'text/html', STREAM, '']) {
      const headers = { authorization: AUTHORIZATION, 'content-type': 'APPLICATION/JSON; charset=utf-8', accept }
      const body = '\uFEFF{"tool":"search_tools","input":{"query":"x"}}'
      const answer = await send(`${gateway.url}/api/decide`, { headers, body })
      assert.deepEqual([answer.status, answer.headers['content-type']], [200, JSON_TYPE], answer.text)
    }
  })
})

describe('headers in raw bytes', () => {
  it('may list types over two lines, in upper case', async () => {
    const { body } = toMessage(LEGACY, 'ping')
    const text = JSON.stringify(body)
    const lines = [
      'POST /mcp HTTP/1.1',
      `HOST: 127.0.0.1:${gateway.port}`,
      `AUTHORIZATION: bearer ${KEYS.admin}`,
      'ACCEPT: TEXT/HTML',
      'ACCEPT: */*;Q=0.1',
      'CONTENT-TYPE: APPLICATION/JSON',
      `CONTENT-LENGTH: ${text.length}`,
      'CONNECTION: close',
    ]
    assert.match(await sendRaw(gateway.port, `${lines.join('\r\n')}\r\n\r\n${text}`), /^HTTP\/1\.1 200 /)
  })
})
