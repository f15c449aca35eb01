import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { WebSocket } from 'ws'
import { startTestGateway, tempFolder, type TestGateway, until } from './support/gateway.ts'
import { send } from './support/http.ts'
import { KEYS } from './support/keys.ts'
import { MODERN, toMessage } from './support/rpc.ts'
import { nodeServer } from './support/servers.ts'

let gateway: TestGateway

before(async () => {
  gateway = await startTestGateway({ servers: [nodeServer('secret-project', ['--eval', 'process.exit(1)'])] })
})

after(() => gateway?.close())

const bearer = (key: string) => ({ authorization: `Bearer ${key}` })
const own = () => `127.0.0.1:${gateway.port}`

describe('a wrong key', () => {
  const attempts: readonly (readonly [where: string, attempt: (key: string) => Promise<number>])[] = [
    [
      '/mcp',
      async (key) => {
        const { headers, body } = toMessage(MODERN, 'tools/list')
        const sent = { headers: { ...headers, ...bearer(key) }, body: JSON.stringify(body) }
        return (await send(gateway.mcpUrl, sent)).status
      },
    ],
    ['/mcp/<app>', async (key) => (await send(`${gateway.mcpUrl}/x`, { method: 'GET', headers: bearer(key) })).status],
    ['/metrics', async (key) => (await send(`${gateway.url}/metrics`, { method: 'GET', headers: bearer(key) })).status],
    ['/api/tools', async (key) => (await gateway.api('/api/tools', { key })).status],
    ['/api/login', async (key) => (await gateway.api('/api/login', { method: 'POST', body: { key } })).status],
    [
      '/api/live',
      (key) =>
        new Promise((resolve) => {
          const socket = new WebSocket(`ws://${own()}/api/live`, { headers: bearer(key) })
          socket.on('error', () => {})
          socket.on('unexpected-response', (_, response) => resolve(response.statusCode ?? 0))
        }),
    ],
  ]

  for (const [where, attempt] of attempts) {
    it(`is counted at ${where}`, async () => {
      const known = await failedLogins()
      assert.equal(await attempt(`wrong-${where}`), 401)
      assert.equal(await failedLogins(), known + 1)
    })
  }

  it('is not counted if no key is sent', async () => {
    const known = await failedLogins()
    assert.equal((await send(gateway.mcpUrl, { body: '{}' })).status, 401)
    assert.equal((await send(`${gateway.url}/api/tools`, { method: 'GET' })).status, 401)
    assert.equal(await failedLogins(), known)
  })

  it('leaves one record per minute, with the count and without the keys', async () => {
    const folder = tempFolder()
    try {
      const path = join(folder.path, 'audit.jsonl')
      const other = await startTestGateway({ audit: { store: 'jsonl', path, mode: 'batched' } })
      for (let i = 0; i < 4; i++) await other.api('/api/tools', { key: `guess-${i}` })
      await other.close()
      const text = readFileSync(path, 'utf8')
      const records = text.split('\n').filter((line) => line.includes('"login_failed"'))
      assert.equal(records.length, 1)
      assert.match(records[0] ?? '', /127\.0\.0\.1: 4 failed logins, key ids [0-9a-f]{8} /)
      assert.doesNotMatch(text, /guess-/)
    } finally {
      folder.remove()
    }
  })
})

async function failedLogins(): Promise<number> {
  const { text } = await send(`${gateway.url}/metrics`, { method: 'GET', headers: bearer(KEYS.console) })
  return Number(/^toolgate_failed_logins_total (\d+)$/m.exec(text)?.[1])
}

describe('/readyz', () => {
  const readyz = async (headers: Record<string, string>) =>
    (await send(`${gateway.url}/readyz`, { method: 'GET', headers })).text

  it('names servers to a console key only', async () => {
    assert.match(await readyz(bearer(KEYS.console)), /secret-project/)
    for (const headers of [{}, bearer('wrong'), bearer(KEYS.admin), { ...bearer(KEYS.console), host: 'evil.example' }])
      assert.equal(await readyz(headers), '{"status":"ready"}')
  })
})

describe('a foreign Host', () => {
  it('gets no page, no file, no API and no metrics', async () => {
    for (const path of [
      '/',
      '/index.html',
      '/assets/x.js',
      '/anything',
      '/api/session',
      '/metrics',
      '/mcp',
      '/mcp/app',
    ])
      for (const host of ['evil.example', `evil.example:${gateway.port}`, `${own()}.evil.example`]) {
        const answer = await send(`${gateway.url}${path}`, {
          method: 'GET',
          headers: { host, ...bearer(KEYS.console) },
        })
        assert.equal(answer.status, 403, `${path} by ${host}`)
        assert.ok(answer.text.length < 200, answer.text)
        assert.match(answer.text, /is not a name of this gateway/)
      }
  })

  it('is a name that this gateway does not have', async () => {
    for (const host of [own(), `localhost:${gateway.port}`, `[::1]:${gateway.port}`]) {
      const { status } = await send(`${gateway.url}/`, { method: 'GET', headers: { host } })
      assert.notEqual(status, 403, host)
    }
  })
})

describe('many wrong keys', () => {
  it('are answered more and more slowly, while a valid key from the same address is served', async () => {
    let answered = 0
    const wrong = Array.from({ length: 20 }, () => gateway.api('/api/tools', { key: 'wrong' }).then(() => answered++))
    await until(async () => (await failedLogins()) >= 26)
    assert.equal((await gateway.ask('admin', MODERN, 'tools/list')).status, 200)
    assert.equal((await gateway.api('/api/login', { method: 'POST', body: { key: KEYS.console } })).status, 200)
    assert.ok(answered < wrong.length, `${answered} were answered`)
    await Promise.all(wrong)
  })
})
