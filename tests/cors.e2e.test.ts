import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { findChromium, launchChromium } from '../packages/console/test/chromium.ts'
import { startTestGateway, type TestGateway } from './support/gateway.ts'
import { type Answer, send } from './support/http.ts'
import { KEYS } from './support/keys.ts'
import { ERAS, type Era, MODERN, toMessage } from './support/rpc.ts'

/** The pages of `listen.corsOrigins`, and the pages of everyone else. */
const PAGE = 'https://inspector.example.com'
const EXTENSION = 'vscode-webview://1ab2'
const EXPOSED = 'Mcp-Session-Id, WWW-Authenticate, Retry-After'
const INIT = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'x', version: '1' } }
const FOREIGN = [
  'https://evil.example',
  'null',
  'http://inspector.example.com',
  'https://inspector.example.com:8443',
  'https://inspector.example.com.evil.example',
  'https://inspector.example.com/',
  'HTTPS://INSPECTOR.EXAMPLE.COM',
  'https://own.example.com',
]
const PATHS = ['/mcp', '/mcp/', '/mcp/research']

let gateway: TestGateway
before(async () => {
  gateway = await startTestGateway({
    listen: {
      host: '127.0.0.1',
      port: 0,
      origins: ['https://own.example.com'],
      corsOrigins: [`${PAGE}/`, EXTENSION, 'https://OTHER.example:443'],
    },
    search: { offer: 'always' },
    apps: [{ name: 'research', import: [], tools: ['search_tools'], policy: [] }],
  })
})
after(() => gateway.close())

const url = (path: string) => gateway.url + path

function preflight(path: string, origin: string, more: Readonly<Record<string, string>> = {}): Promise<Answer> {
  const asked = 'authorization, content-type, mcp-protocol-version, mcp-param-city'
  const headers = {
    origin,
    'access-control-request-method': 'POST',
    'access-control-request-headers': asked,
    ...more,
  }
  return send(url(path), { method: 'OPTIONS', headers })
}

function post(
  era: Era,
  method: string,
  params: object,
  headers: Readonly<Record<string, string>>,
  path = '/mcp',
): Promise<Answer> {
  const message = toMessage(era, method, params as never)
  return send(url(path), { headers: { ...message.headers, ...headers }, body: JSON.stringify(message.body) })
}

const corsOf = ({ headers }: Answer) => Object.keys(headers).filter((name) => name.startsWith('access-control-'))

describe('a preflight', () => {
  it('of an allowed page is answered without a key, and allows what it asks for', async () => {
    for (const origin of [PAGE, EXTENSION, 'https://other.example'])
      for (const path of PATHS) {
        const { status, headers, text } = await preflight(path, origin)
        assert.deepEqual([status, text], [204, ''], path)
        assert.equal(headers['access-control-allow-origin'], origin)
        assert.equal(headers['access-control-allow-methods'], 'GET, POST, DELETE')
        const allowed = 'authorization, content-type, mcp-protocol-version, mcp-param-city'
        assert.equal(headers['access-control-allow-headers'], allowed)
        assert.equal(headers.vary, 'Origin')
        assert.equal(headers['access-control-allow-credentials'], undefined)
      }
  })

  it('of an allowed page may be about a private network', async () => {
    const name = 'access-control-request-private-network'
    const { headers } = await preflight('/mcp', PAGE, { [name]: 'true' })
    assert.equal(headers['access-control-allow-private-network'], 'true')
    const foreign = await preflight('/mcp', 'https://evil.example', { [name]: 'true' })
    assert.deepEqual([foreign.status, corsOf(foreign)], [403, []])
  })

  it('of any other page is refused, also from the own names of the gateway and with a key', async () => {
    for (const origin of FOREIGN)
      for (const path of PATHS)
        for (const more of [{}, { authorization: `Bearer ${KEYS.admin}` }]) {
          const answer = await preflight(path, origin, more)
          assert.ok([401, 403, 405].includes(answer.status), `${origin}: ${answer.status}`)
          assert.deepEqual(corsOf(answer), [])
        }
  })

  it('under a name that is not of the gateway is refused, even from an allowed page', async () => {
    const answer = await preflight('/mcp', PAGE, { host: 'evil.example' })
    assert.deepEqual([answer.status, corsOf(answer)], [403, []])
  })

  it('of the API, the console and the metrics is refused, even from an allowed page', async () => {
    for (const path of ['/api/call', '/api/session', '/', '/metrics', '/approvals/x']) {
      const answer = await preflight(path, PAGE)
      assert.ok(answer.status >= 400, `${path}: ${answer.status}`)
      assert.deepEqual(corsOf(answer), [])
    }
  })
})

describe('an allowed page', () => {
  it('reads its answers and the id of its session, in every era', async () => {
    const headers = { origin: PAGE, authorization: `Bearer ${KEYS.admin}` }
    for (const era of ERAS)
      for (const path of PATHS) {
        const answer = await post(era, 'tools/list', {}, headers, path)
        assert.equal(answer.status, 200)
        assert.equal(answer.headers['access-control-allow-origin'], PAGE)
        assert.equal(answer.headers['access-control-expose-headers'], EXPOSED)
        assert.equal(answer.headers.vary, 'Origin')
        assert.equal(answer.headers['access-control-allow-credentials'], undefined)
      }
    const begun = await post('2025-11-25', 'initialize', INIT, headers)
    assert.equal(typeof begun.headers['mcp-session-id'], 'string')
    const session = { ...headers, 'mcp-session-id': begun.headers['mcp-session-id'] as string }
    const stream = await fetch(gateway.mcpUrl, { headers: session })
    assert.deepEqual([stream.status, stream.headers.get('access-control-allow-origin')], [200, PAGE])
    await stream.body?.cancel()
    const ended = await send(gateway.mcpUrl, { method: 'DELETE', headers: session })
    assert.deepEqual([ended.status, ended.headers['access-control-allow-origin']], [200, PAGE])
  })

  it('reads errors, so that it can log in, wait or begin again', async () => {
    const key = { origin: PAGE, authorization: `Bearer ${KEYS.admin}` }
    const answers = [
      [401, await post(MODERN, 'tools/list', {}, { origin: PAGE })],
      [401, await post(MODERN, 'tools/list', {}, { origin: PAGE, authorization: 'Bearer wrong' })],
      [404, await post('2025-11-25', 'tools/list', {}, { ...key, 'mcp-session-id': 'x' })],
      [404, await post(MODERN, 'tools/list', {}, key, '/mcp/nothing')],
      [406, await post(MODERN, 'tools/list', {}, { ...key, accept: 'text/html' })],
      [415, await post(MODERN, 'tools/list', {}, { ...key, 'content-type': 'text/plain' })],
    ] as const
    for (const [status, answer] of answers) {
      assert.deepEqual([answer.status, answer.headers['access-control-allow-origin']], [status, PAGE], answer.text)
      assert.equal(answer.headers['access-control-expose-headers'], EXPOSED)
      if (status === 401) assert.ok(answer.headers['www-authenticate'])
    }
  })

  it('reads 429 when it has too many streams', async () => {
    const headers = { origin: PAGE, authorization: `Bearer ${KEYS.operator}` }
    const begun = await post('2025-11-25', 'initialize', INIT, headers)
    const session = { ...headers, 'mcp-session-id': begun.headers['mcp-session-id'] as string }
    const abort = new AbortController()
    try {
      for (;;) {
        const stream = await fetch(gateway.mcpUrl, { headers: session, signal: abort.signal })
        if (stream.status === 200) continue
        assert.deepEqual([stream.status, stream.headers.get('access-control-allow-origin')], [429, PAGE])
        break
      }
    } finally {
      abort.abort()
    }
  })

  it('has no rights at the API: its requests are refused as those of every foreign page', async () => {
    const headers = { origin: PAGE, authorization: `Bearer ${KEYS.console}` }
    const answer = await send(url('/api/tools?as=viewer'), { method: 'GET', headers })
    assert.deepEqual([answer.status, corsOf(answer)], [403, []])
  })
})

describe('a page that is not allowed', () => {
  it('is refused with a good key, and its own origin is not allowed in the answer', async () => {
    for (const origin of FOREIGN.filter((one) => one !== 'https://own.example.com')) {
      const answer = await post(MODERN, 'tools/list', {}, { origin, authorization: `Bearer ${KEYS.admin}` })
      assert.deepEqual([answer.status, corsOf(answer)], [403, []], origin)
      assert.equal(answer.headers.vary, 'Origin')
    }
  })

  it('is refused by a gateway without such pages, which sends no headers for them', async () => {
    const plain = await startTestGateway({})
    try {
      const message = toMessage(MODERN, 'tools/list')
      const headers = { ...message.headers, authorization: `Bearer ${KEYS.admin}` }
      const body = JSON.stringify(message.body)
      const foreign = await send(plain.mcpUrl, { headers: { ...headers, origin: PAGE }, body })
      assert.deepEqual([foreign.status, corsOf(foreign), foreign.headers.vary], [403, [], undefined])
      const own = await send(plain.mcpUrl, { headers, body })
      assert.deepEqual([own.status, corsOf(own), own.headers.vary], [200, [], undefined])
    } finally {
      await plain.close()
    }
  })
})

const chromium = findChromium()
if (chromium !== undefined)
  describe('a real browser', () => {
    /** Serves an empty page on an origin of its own. */
    const servePage = async () => {
      const server = createServer((_, response) => response.end('<title>page</title>')).listen(0, '127.0.0.1')
      await new Promise((resolve) => server.once('listening', resolve))
      return { origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close: () => server.close() }
    }

    it('lets an allowed page begin a session and call, and no other page', async () => {
      const [allowed, evil] = [await servePage(), await servePage()]
      const listen = { host: '127.0.0.1', port: 0, corsOrigins: [allowed.origin] }
      const own = await startTestGateway({ listen, search: { offer: 'always' } })
      const browser = await launchChromium(chromium)
      const askFrom = async (origin: string) => {
        const page = await browser.newPage()
        await page.goto(origin)
        return page.evaluate(
          async ({ endpoint, key, params }) => {
            const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
            const ask = (method: string, more: object, body: object = {}) =>
              fetch(endpoint, {
                method: 'POST',
                headers: { ...headers, ...more },
                body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: body }),
              })
            try {
              const wrong = await fetch(endpoint, {
                method: 'POST',
                headers: { 'content-type': 'application/json' },
                body: '{}',
              })
              const begun = await ask('initialize', {}, params)
              const session = begun.headers.get('mcp-session-id') ?? ''
              const listed = await ask('tools/list', {
                'mcp-session-id': session,
                'mcp-protocol-version': '2025-11-25',
              })
              const { result } = (await listed.json()) as { result: { tools: object[] } }
              return [wrong.status, wrong.headers.get('www-authenticate') !== null, result.tools.length > 0]
            } catch (error) {
              return (error as Error).message
            }
          },
          { endpoint: own.mcpUrl, key: KEYS.viewer, params: INIT },
        )
      }
      try {
        assert.deepEqual(await askFrom(allowed.origin), [401, true, true])
        assert.equal(await askFrom(evil.origin), 'Failed to fetch')
      } finally {
        await browser.close()
        await own.close()
        allowed.close()
        evil.close()
      }
    })
  })
