import assert from 'node:assert/strict'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, it } from 'node:test'
import { createGate, type Gate, type Tool } from '@toolgate/core'
import { defineResource } from '@toolgate/core/toolset'
import { ItemLists, ResourceOwners, RpcError, ToolLists } from '@toolgate/mcp'
import type { Method } from '../../calls/method.ts'
import { ChangeStreams } from '../change-streams.ts'
import { resourceMethods } from './methods.ts'
import { ResourceSubscriptions, type ResourceSubscriptionsDeps } from './subscriptions.ts'
import { serveMcp } from '../../testing/mcp.ts'

function serve(watchResource: ResourceSubscriptionsDeps['watchResource']) {
  const source = {
    name: 's',
    namespaces: ['s'],
    tools: (): readonly Tool[] => [],
    unlisted: (uri: string) => defineResource({ namespace: 's', uri, execute: () => ({}) }),
  }
  const gate = createGate({
    sources: [source],
    policy: { allow: ['resource:s:*'], deny: ['resource:s:x://secret/*'] },
  })
  const subscriptions = subscriptionsOf(gate, watchResource)
  return (uri: string) => subscriptions.subscribe({ uri, caller: {}, owner: {}, era: 'legacy', updated: () => {} })
}

function subscriptionsOf(gate: Gate, watchResource: ResourceSubscriptionsDeps['watchResource']) {
  const owners = new ResourceOwners(gate.catalog, () => ['s'])
  return new ResourceSubscriptions({ gate, names: new ToolLists(gate), owners, watchResource, onFault: assert.ifError })
}

function methodsOf(gate: Gate, watchResource: ResourceSubscriptionsDeps['watchResource']): readonly Method[] {
  const owners = new ResourceOwners(gate.catalog, () => ['s'])
  const names = new ToolLists(gate)
  const subscriptions = subscriptionsOf(gate, watchResource)
  return resourceMethods({ names, owners, lists: new ItemLists(names, owners), subscriptionsOf: () => subscriptions })
}

describe('a subscription', () => {
  it('to a resource that its server does not have is answered as that to a hidden one', async () => {
    const subscribe = serve(async () => {
      throw new RpcError(-32_002, 'Resource x://open/1 not found', { uri: 'x://open/1' })
    })
    const answerOf = async (uri: string) => JSON.stringify(await subscribe(uri)).replaceAll(uri, 'URI')
    assert.equal(await answerOf('x://open/1'), await answerOf('x://secret/1'))
  })

  it('to a resource in a spelling with needless coding is one to that resource', async () => {
    const watched: string[] = []
    const subscribe = serve(async (_, uri) => {
      watched.push(uri)
      return () => {}
    })
    for (const uri of ['x://open/(a)', 'x://open/%28a%29']) assert.ok('end' in (await subscribe(uri)), uri)
    assert.ok('error' in (await subscribe('x://%73ecret/%28a%29')))
    assert.deepEqual(watched, ['x://open/(a)', 'x://open/(a)'])
  })

  it('ends with its session, also with one that ends before the server has answered', async (t) => {
    const { promise: asked, resolve: onAsked } = Promise.withResolvers<void>()
    const { promise: answered, resolve: answer } = Promise.withResolvers<void>()
    let watched = 0
    const uri = 'x://open/1'
    const gate = createGate({
      tools: [defineResource({ namespace: 's', uri, execute: () => ({}) })],
      policy: { allow: ['resource:s:*'] },
    })
    const methods = methodsOf(gate, async () => {
      onAsked()
      await answered
      watched++
      return () => void watched--
    })
    const endpoint = await serveMcp(t, [], { gate, lists: new ToolLists(gate), methods: () => methods })
    const session = await endpoint.initialize()
    const message = { jsonrpc: '2.0', id: 1, method: 'resources/subscribe', params: { uri } }
    const subscribing = endpoint.send(message, { session })
    await asked
    await endpoint.send(undefined, { method: 'DELETE', session })
    answer()
    await (await subscribing).ended()
    assert.equal(watched, 0)
  })

  it('ends in another spelling of its resource', async (t) => {
    let watched = 0
    const gate = createGate({
      tools: [defineResource({ namespace: 's', uri: 'x://open/(1)', execute: () => ({}) })],
      policy: { allow: ['resource:s:*'] },
    })
    const methods = methodsOf(gate, async () => {
      watched++
      return () => void watched--
    })
    const endpoint = await serveMcp(t, [], { gate, lists: new ToolLists(gate), methods: () => methods })
    const session = await endpoint.initialize()
    const send = async (method: string, uri: string) =>
      (await endpoint.send({ jsonrpc: '2.0', id: 1, method, params: { uri } }, { session })).ended()
    await send('resources/subscribe', 'x://open/%281%29')
    assert.equal(watched, 1)
    await send('resources/unsubscribe', 'x://open/(2)')
    assert.equal(watched, 1)
    await send('resources/unsubscribe', 'x://open/(1)')
    assert.equal(watched, 0)
  })

  it('takes the place of its stream before its server has answered', async (t) => {
    const { promise: answered, resolve } = Promise.withResolvers<void>()
    const streams = new ChangeStreams({
      serverInfo: { name: 'test', version: '1' },
      onFault: assert.ifError,
      offers: () => ['resources'],
      maxOfOne: 2,
    })
    const caller = {}
    const subscriptions = { subscribe: () => answered.then(() => ({ end: () => {} })) }
    const watch = { watch: async () => () => {} }
    const params = { notifications: { resourceSubscriptions: ['x://open/1'] } }
    const refused: unknown[] = []
    const server = createServer((_, response) => {
      streams.listen({ watch, subscriptions }, params, 1, caller, response).catch((error: unknown) => {
        refused.push(error)
        response.end()
        resolve()
      })
    })
    t.after(() => {
      streams.close()
      server.closeAllConnections()
      server.close()
    })
    await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
    const { port } = server.address() as AddressInfo
    for (let i = 0; i < 3; i++)
      request({ port, host: '127.0.0.1' })
        .on('error', () => {})
        .end()
    const tooLate = setTimeout(() => resolve(), 30_000)
    await answered
    clearTimeout(tooLate)
    assert.match(String(refused), /too many streams/)
    assert.equal(streams.count, 2)
  })
})
