import assert from 'node:assert/strict'
import { createServer, IncomingMessage, type Server, ServerResponse } from 'node:http'
import { type AddressInfo, Socket } from 'node:net'
import { describe, it, type TestContext } from 'node:test'
import { memoryState } from '@toolgate/core/stores'
import { ownerOf } from '../model/owner.ts'
import { Elsewhere } from './elsewhere.ts'
import { ForwardProof } from './forward-proof.ts'
import { memoryOwners } from '../testing/owners.ts'

const caller = { user: 'vera' }

/** This replica, `a`, and the home of Vera, `b`, which takes a request and then closes the connection without an answer. */
async function setup(t: TestContext, afterwards: (store: ReturnType<typeof memoryOwners>, key: string) => unknown) {
  const store = memoryOwners()
  let taken = 0
  const b: Server = createServer((request) => {
    taken++
    void (async () => {
      await afterwards(store, (await store.keysOf('b'))[0] ?? '')
      request.socket.destroy()
    })()
  })
  await new Promise<void>((resolve) => b.listen(0, '127.0.0.1', resolve))
  t.after(() => b.close())
  store.urls.set('b', `http://127.0.0.1:${(b.address() as AddressInfo).port}`)
  const elsewhereOf = async (self: string) => {
    const proof = await ForwardProof.open(memoryState({ clock: { wallMs: () => 0 } }))
    return new Elsewhere(
      { self, owners: store, replicas: async () => [], proof, onFault: assert.ifError },
      {
        sessions: () => ({ handOver: async () => false, restore: () => assert.fail(), retain: () => {} }),
        instances: () => ({ endIdle: async () => {}, endOfOwner: async () => {}, owners: new Set() }),
        needsInstance: () => true,
        addresses: { of: () => '192.0.2.1' },
        isStopping: () => false,
      },
    )
  }
  const [a, home] = [await elsewhereOf('a'), await elsewhereOf('b')]
  t.after(() => a.close())
  const owner = ownerOf(caller)
  assert.ok(owner && (await home.homes.isHere(owner)))
  const request = Object.assign(new IncomingMessage(new Socket()), { method: 'POST', url: '/mcp', headers: {} })
  const asked = { caller, request, response: new ServerResponse(request), text: '{}' }
  return { a, asked, taken: () => taken }
}

describe('a request whose owner closes the connection without an answer', () => {
  it('is made again where the owner has given up what it had: it did not run', async (t) => {
    const { a, asked, taken } = await setup(t, (store, key) => store.free([key], 'b'))
    assert.equal(await a.placeAtHome(asked), false)
    assert.equal(taken(), 1)
  })

  it('is not made again where the owner was lost, also once somebody else has taken over and given up', async (t) => {
    for (const isTakenOver of [false, true]) {
      const { a, asked, taken } = await setup(t, async (store, key) => {
        store.gone.add('b')
        if (!isTakenOver) return
        await store.find(key, 'c')
        await store.free([key], 'c')
      })
      await assert.rejects(async () => a.placeAtHome(asked), { rule: 'owner_lost' })
      assert.equal(taken(), 1)
    }
  })

  it('is not made again while the owner has it', async (t) => {
    const { a, asked, taken } = await setup(t, () => {})
    await assert.rejects(async () => a.placeAtHome(asked), { rule: 'owner_lost' })
    assert.equal(taken(), 1)
  })
})
