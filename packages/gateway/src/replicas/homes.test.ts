import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { describe, it } from 'node:test'
import { ownerOf } from '../model/owner.ts'
import { Homes } from './homes.ts'
import { memoryOwners } from '../testing/owners.ts'

const userOf = (user: string) => {
  const owner = ownerOf({ user })
  assert.ok(owner)
  return owner
}

function setup(max?: number) {
  const store = memoryOwners()
  const busy = new Set<string>()
  const instances = () => ({ endIdle: async () => {}, endOfOwner: async () => {}, owners: busy })
  const homesOf = (self: string) =>
    new Homes({ owners: store, self, instances, onFault: assert.ifError, ...(max !== undefined && { max }) })
  return { store, busy, a: homesOf('a'), b: homesOf('b') }
}

const responseOf = () => Object.assign(new EventEmitter(), { destroyed: false })

describe('Homes', () => {
  it('are given up when the requests that were let in are answered, and no instance runs', async () => {
    const { a, b, busy } = setup()
    const vera = userOf('vera')
    assert.equal(a.enter(vera, responseOf()), false)
    assert.equal(await a.isHere(vera), true)
    const response = responseOf()
    assert.equal(a.enter(vera, response), true)
    assert.equal(await a.handOver(), true)
    assert.equal(await b.isHere(vera), false)
    response.emit('close')
    busy.add(vera.key)
    assert.equal(await a.handOver(), true)
    busy.clear()
    assert.equal(await a.handOver(), false)
    assert.equal(await b.isHere(vera), true)
    assert.equal(await a.isHere(vera), false)
  })

  it('count no request whose client has gone already', async () => {
    const { a } = setup()
    await a.isHere(userOf('vera'))
    a.enter(userOf('vera'), Object.assign(responseOf(), { destroyed: true }))
    assert.equal(await a.handOver(), false)
  })

  it('are bounded: the one that was used longest ago goes, unless something is kept there', async () => {
    const { a, b } = setup(3)
    for (const user of ['kept', 'open', 'idle']) await a.isHere(userOf(user))
    a.note(userOf('kept'), 'files', true)
    a.enter(userOf('open'), responseOf())
    await a.isHere(userOf('next'))
    assert.deepEqual(
      ['kept', 'open', 'idle', 'next'].map((user) => a.has(userOf(user))),
      [true, true, false, true],
    )
    assert.equal(await b.isHere(userOf('idle')), true)
    a.enter(userOf('next'), responseOf())
    await assert.rejects(async () => a.find(userOf('last')), { rule: 'owner_unreachable' })
    a.note(userOf('kept'), 'files', false)
    assert.equal(await a.isHere(userOf('last')), true)
    assert.equal(a.has(userOf('kept')), false)
  })

  it('are not taken while they are given up', async () => {
    const { a, store } = setup()
    const vera = userOf('vera')
    await a.isHere(vera)
    const given = store.pause()
    const leaving = a.handOver()
    await given.reached
    const asking = a.isHere(vera)
    given.goOn()
    await leaving
    assert.equal(await asking, true)
    const [key = ''] = await store.keysOf('a')
    assert.equal((await store.find(key, 'b'))?.owner, 'a')
  })
})
