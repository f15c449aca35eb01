import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { describe, it } from 'node:test'
import { probeTcp, toAddress } from './tcp-probe.ts'

const options = { timeoutMs: 1000, signal: new AbortController().signal }

describe('probeTcp', () => {
  it('gives nothing where something listens, and the reason where nothing does', async () => {
    const server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as { port: number }
    assert.equal(await probeTcp({ host: '127.0.0.1', port }, options), undefined)
    server.close()
    await once(server, 'close')
    const reason = await probeTcp({ host: '127.0.0.1', port }, options)
    assert.equal(reason, `nothing listens on 127.0.0.1:${port} (ECONNREFUSED)`)
  })

  it('names a host that is not found', async () => {
    const reason = await probeTcp({ host: 'no-such-host.invalid', port: 1 }, { ...options, timeoutMs: 5000 })
    assert.match(reason ?? '', /^the name no-such-host\.invalid is not found|did not answer/)
  })

  it('gives up at its deadline', async (test) => {
    test.mock.timers.enable({ apis: ['setTimeout'] })
    const probe = probeTcp({ host: '127.0.0.1', port: 9 }, options)
    test.mock.timers.tick(1000)
    assert.equal(await probe, '127.0.0.1:9 did not answer within 1 s')
  })

  it('settles when it is aborted', async () => {
    const controller = new AbortController()
    const probe = probeTcp({ host: '192.0.2.1', port: 9 }, { timeoutMs: 60_000, signal: controller.signal })
    controller.abort()
    assert.match((await probe) ?? '', /cannot be reached/)
  })
})

describe('toAddress', () => {
  it('puts an IPv6 address in brackets', () => {
    assert.equal(toAddress({ host: '::1', port: 80 }), '[::1]:80')
    assert.equal(toAddress({ host: 'localhost', port: 80 }), 'localhost:80')
  })
})
