import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, it } from 'node:test'
import { authenticateKeys } from '../../auth/keyring.ts'
import { createOriginRules } from '../../auth/origin.ts'
import { createMetricsEndpoint } from './metrics-endpoint.ts'

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0)) await close()
})

describe('GET /metrics', () => {
  it('needs a console key', async () => {
    const get = await setup()
    const [without, wrong, agent, console] = await Promise.all([
      get(),
      get('no-such-key'),
      get('agent-key'),
      get('person-key'),
    ])
    assert.deepEqual([without.status, wrong.status, agent.status, console.status], [401, 401, 403, 200])
    assert.match(without.headers.get('www-authenticate') ?? '', /^Bearer/)
    assert.deepEqual(await agent.json(), {
      error: {
        code: 'key_not_for_console',
        message: "This is an agent's key, for /mcp. The metrics need a console key.",
      },
    })
    assert.equal(await console.text(), 'up 1 for vera\n')
  })

  it('needs no key if the configuration makes it public, but still checks the host name', async () => {
    const get = await setup({ isPublic: true })
    assert.equal(await (await get('person-key')).text(), 'up 1 for everybody\n')
    assert.equal((await get(undefined, { origin: 'http://evil.example' })).status, 403)
  })

  it('names the version of the format, and is not cached', async () => {
    const get = await setup({ isPublic: true })
    const plain = await get()
    assert.equal(plain.headers.get('content-type'), 'text/plain; version=0.0.4; charset=utf-8')
    assert.equal(plain.headers.get('cache-control'), 'no-store')
    const later = await get(undefined, {
      accept: 'application/openmetrics-text;version=1.0.0;q=0.6,text/plain;version=1.0.0;q=0.5',
    })
    assert.equal(later.headers.get('content-type'), 'text/plain; version=1.0.0; charset=utf-8')
  })

  it('is for reading', async () => {
    const get = await setup({ isPublic: true })
    const posted = await get(undefined, {}, 'POST')
    assert.deepEqual([posted.status, posted.headers.get('allow')], [405, 'GET, HEAD'])
    const head = await get(undefined, {}, 'HEAD')
    assert.deepEqual([head.status, await head.text()], [200, ''])
  })
})

async function setup({ isPublic = false } = {}) {
  const hash = (key: string) => createHash('sha256').update(key).digest()
  const authenticator = authenticateKeys([
    { keyHash: hash('agent-key'), for: 'mcp', caller: { user: 'bot' } },
    { keyHash: hash('person-key'), for: 'console', caller: { user: 'vera' } },
  ])
  const server = createServer((request, response) => void endpoint(request, response))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const origins = createOriginRules({ host: '127.0.0.1', port })
  const endpoint = createMetricsEndpoint({
    authenticator,
    origins,
    isPublic,
    metrics: async (person) => `up 1 for ${person?.user ?? 'everybody'}\n`,
  })
  closers.push(() => {
    server.closeAllConnections()
    return new Promise((resolve) => server.close(resolve))
  })
  return (key?: string, headers: Record<string, string> = {}, method = 'GET') =>
    fetch(`http://127.0.0.1:${port}/metrics`, {
      method,
      headers: { ...headers, ...(key === undefined ? {} : { authorization: `Bearer ${key}` }) },
    })
}
