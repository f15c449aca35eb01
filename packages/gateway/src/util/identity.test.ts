import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, it, type TestContext } from 'node:test'
import { challengeOf, listensAt, proveIdentity } from './identity.ts'

const SECRET = randomBytes(32)
const PATIENCE_MS = 10_000

async function serve(t: TestContext, listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** Answers as a gateway with this secret does. */
const gateway =
  (secret: Uint8Array): RequestListener =>
  ({ headers, socket }, response) =>
    response.writeHead(200, proveIdentity(secret, challengeOf(headers), socket.localPort)).end('{}')

describe('listensAt', () => {
  it('knows the gateway that has the secret, and no other', async (t) => {
    assert.equal(await listensAt(await serve(t, gateway(SECRET)), SECRET, PATIENCE_MS), true)
    assert.equal(await listensAt(await serve(t, gateway(randomBytes(32))), SECRET, PATIENCE_MS), false)
  })

  it('takes no proof that a program got from the gateway at another port', async (t) => {
    const real = await serve(t, gateway(SECRET))
    const relay = await serve(t, (request, response) => {
      const headers = { 'toolgate-challenge': String(challengeOf(request.headers)) }
      void fetch(`${real}/healthz`, { headers }).then((answer) => {
        assert.ok(answer.headers.get('toolgate-proof'))
        response.setHeader('toolgate-proof', answer.headers.get('toolgate-proof') ?? '').end('{}')
      })
    })
    assert.equal(await listensAt(relay, SECRET, PATIENCE_MS), false)
    const redirect = await serve(t, (_, response) => response.writeHead(307, { location: `${real}/healthz` }).end())
    assert.equal(await listensAt(redirect, SECRET, PATIENCE_MS), false)
  })

  it('sends no key, asks with another challenge each time, and does not wait for ever', async (t) => {
    const seen: string[] = []
    const silent = await serve(t, ({ headers }) => {
      assert.equal(headers.authorization, undefined)
      seen.push(String(challengeOf(headers)))
    })
    for (let time = 1; time <= 2; time++) assert.equal(await listensAt(silent, SECRET, 100), false)
    assert.equal(new Set(seen).size, 2)
    assert.equal(await listensAt('http://127.0.0.1:1', SECRET, PATIENCE_MS), false)
  })
})

describe('proveIdentity', () => {
  it('proves nothing to who asks nothing, or something odd', () => {
    for (const challenge of [undefined, '', 'short', 'x'.repeat(65), 'a b'.repeat(10), ['x'.repeat(30)]])
      assert.equal(proveIdentity(SECRET, challenge, 80), undefined)
    assert.ok(proveIdentity(SECRET, 'x'.repeat(22), 80))
  })
})
