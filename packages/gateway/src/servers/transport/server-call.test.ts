import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, it, type TestContext } from 'node:test'
import { LeaseEndedError } from '@toolgate/core/call'
import { serverConfig } from '../../../fixtures/servers.ts'
import { AskedClients } from './asked-clients.ts'
import type { Connection } from './connection.ts'
import { HttpCall } from './http-call.ts'
import { HttpEndpoint } from './http-endpoint.ts'
import { ServerCaller } from './server-call.ts'
import type { CallMethod } from '../../model/upstream.ts'

const ended = () => {
  throw new LeaseEndedError()
}
const { signal } = new AbortController()
const asked = (method: CallMethod) => ({ method, params: { name: 't' }, caller: {}, signal })

function fakeConnection() {
  const sent: string[] = []
  const connection: Connection = {
    era: 'modern',
    protocolVersion: '2026-07-28',
    serverInfo: undefined,
    capabilities: {},
    instructions: undefined,
    async request(method) {
      sent.push(method)
      return { resultType: 'complete' }
    },
    close: async () => {},
  }
  return { sent, target: { connection, headers: undefined, onHeaderMismatch: () => {} } }
}

describe('ServerCaller', () => {
  it('sends no call once the lease of its replica has ended, and cancels what has begun', async () => {
    const { sent, target } = fakeConnection()
    const caller = new ServerCaller(serverConfig({ url: 'http://127.0.0.1:1/' }), { checkStart: ended })
    for (const method of ['tools/call', 'resources/read', 'prompts/get', 'completion/complete'] as const)
      await assert.rejects(caller.call(target, asked(method)), LeaseEndedError)
    assert.deepEqual(sent, [])
    await caller.call(target, asked('tasks/cancel'))
    assert.deepEqual(sent, ['tasks/cancel'])
  })
})

/** Returns the address of a server that counts its requests. */
async function counting(t: TestContext) {
  let requests = 0
  const server = createServer((_, response) => {
    requests++
    response.end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => server.close())
  const { port } = server.address() as AddressInfo
  return { url: new URL(`http://127.0.0.1:${port}/mcp`), count: () => requests }
}

describe('HttpCall', () => {
  it('asks after it has waited for the credential of its user, in the turn in which it sends', async (t) => {
    const { url, count } = await counting(t)
    const token = Promise.withResolvers<void>()
    let hasLease = true
    const credential = { header: 'Bearer a', prepare: () => token.promise, renew: async () => false }
    const endpoint = new HttpEndpoint(url, {}, { credential })
    t.after(() => endpoint.close())
    const host = {
      endpoint,
      clients: new AskedClients(),
      onMessage: () => {},
      proven: new WeakSet(),
      onBroken: () => {},
    }
    const options = { timeoutMs: 10_000, checkStart: () => (hasLease ? undefined : ended()) }
    const call = new HttpCall(host, endpoint.bareSession('modern'), 1, 'tools/call', options)
    const sending = call.send({ name: 't' }, options)
    hasLease = false
    token.resolve()
    await assert.rejects(sending, (error: Error) => error.cause instanceof LeaseEndedError)
    assert.equal(count(), 0)
  })
})
