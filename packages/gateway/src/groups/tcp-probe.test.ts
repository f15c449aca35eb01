import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { describe, it } from 'node:test'
import { asking } from './testing.ts'
import { tcpProbe, toAddress } from './tcp-probe.ts'

describe('tcpProbe', () => {
  it('works where something listens, and says why where nothing does', async () => {
    const server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as { port: number }
    const probe = tcpProbe({ host: '127.0.0.1', port })
    assert.equal(await probe.ask(asking()), true)
    server.close()
    await once(server, 'close')
    assert.deepEqual(await probe.ask(asking()), {
      available: false,
      reason: `nothing listens on 127.0.0.1:${port} (ECONNREFUSED)`,
    })
  })

  it('says the error where a name has several addresses', async () => {
    const server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as { port: number }
    server.close()
    await once(server, 'close')
    const answer = await tcpProbe({ host: 'localhost', port }).ask(asking())
    assert.deepEqual(answer, { available: false, reason: `nothing listens on localhost:${port} (ECONNREFUSED)` })
  })

  it('ends when it is told to', async () => {
    const controller = new AbortController()
    const answer = tcpProbe({ host: '192.0.2.1', port: 9 }).ask(asking(controller.signal))
    controller.abort()
    assert.match(((await answer) as { reason: string }).reason, /^192\.0\.2\.1:9 cannot be reached/)
  })

  it('is one probe for one address', () => {
    assert.equal(tcpProbe({ host: 'a', port: 1 }).key, tcpProbe({ host: 'a', port: 1 }, { timeoutMs: 5 }).key)
    assert.notEqual(tcpProbe({ host: 'a', port: 1 }).key, tcpProbe({ host: 'a', port: 2 }).key)
  })
})

describe('toAddress', () => {
  it('puts an IPv6 address in brackets', () => {
    assert.equal(toAddress({ host: '::1', port: 80 }), '[::1]:80')
    assert.equal(toAddress({ host: 'localhost', port: 80 }), 'localhost:80')
  })
})
