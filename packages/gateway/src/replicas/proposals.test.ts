import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { LIBRARY } from '@toolgate/stores/replica'
import { Proposals } from './proposals.ts'
import { FakeDatabase } from '../../../stores/src/testing/fake-database.ts'

function setup(t: TestContext) {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const database = new FakeDatabase()
  const faults: unknown[] = []
  const open = async (id: string) => {
    const { state, replicas } = database.connect()
    await replicas.join({ id, incarnation: `start of ${id}`, version: '1' })
    return new Proposals({
      state,
      clock: database.clock,
      incarnation: `start of ${id}`,
      list: () => replicas.list(),
      onFault: (error) => faults.push(error),
    })
  }
  const settle = async <T>(promise: Promise<T>): Promise<T> => {
    const ended = new AbortController()
    const settled = promise.finally(() => ended.abort())
    while (!ended.signal.aborted) {
      for (let turns = 0; turns < 20; turns++) await new Promise(setImmediate)
      database.clock.advance(25)
      t.mock.timers.tick(25)
    }
    return settled
  }
  return { database, open, settle, faults }
}

describe('Proposals', () => {
  it('name the replicas that cannot run a text, and why', async (t) => {
    const { open, settle, faults, database } = setup(t)
    const [a, b, c] = [await open('a'), await open('b'), await open('c')]
    await database.connect().replicas.join({ id: 'd', incarnation: 'of the library', version: LIBRARY })
    const seen: string[] = []
    a.follow(async (text) => seen.push(text))
    b.follow(() => Promise.reject(new Error('no variable'.padEnd(5000, '.'))))
    c.follow(async () => undefined)
    const objections = await settle(a.ask('the text'))
    assert.deepEqual(
      objections.map(({ id, why }) => [id, why.slice(0, 11), why.length]),
      [['b', 'no variable', 1000]],
    )
    assert.deepEqual([seen, faults, await database.state.list('proposed:')], [['the text'], [], []])
  })

  it('are answered once each, whatever else changes meanwhile', async (t) => {
    const { open, settle, database } = setup(t)
    const a = await open('a')
    let checks = 0
    a.follow(async () => {
      checks++
      await database.state.set('halt:x', checks)
    })
    assert.deepEqual(await settle(a.ask('one')), [])
    assert.deepEqual(await settle(a.ask('one')), [])
    assert.equal(checks, 2)
  })

  it('name a live replica that does not answer within 10 s, and wait for none that is lost', async (t) => {
    const { open, settle, database } = setup(t)
    const a = await open('a')
    await open('lost')
    database.clock.advance(2000)
    const { replicas } = database.connect()
    await replicas.join({ id: 'a', incarnation: 'start of a', version: '1' })
    a.follow(async () => undefined)
    const beganMs = database.clock.monotonicMs()
    assert.deepEqual(await settle(a.ask('one')), [])
    assert.ok(database.clock.monotonicMs() - beganMs < 10_000)
    const [row] = await replicas.list()
    assert.ok(row)
    database.rows.set('old', {
      ...row,
      id: 'old',
      incarnation: 'of an older version',
      renewedAt: Number.MAX_SAFE_INTEGER,
    })
    assert.deepEqual(await settle(a.ask('two')), [{ id: 'old', why: 'it does not answer' }])
    assert.ok(database.clock.monotonicMs() - beganMs >= 10_000)
  })

  it('wait for no replica that is about to end', async (t) => {
    const { open, settle, database } = setup(t)
    const a = await open('a')
    await open('b')
    a.follow(async () => undefined)
    const { replicas } = database.connect()
    await replicas.renew({ id: 'b', incarnation: 'start of b', version: '1' }, 0, { isStopping: true })
    const beganMs = database.clock.monotonicMs()
    assert.deepEqual(await settle(a.ask('one')), [])
    assert.ok(database.clock.monotonicMs() - beganMs < 2000)
  })

  it('that cannot be read are answered, too', async (t) => {
    const { open, database } = setup(t)
    const a = await open('a')
    a.follow(async () => assert.fail('nothing to check'))
    await database.state.set('proposed:x', 'nonsense')
    for (let turns = 0; turns < 20; turns++) await new Promise(setImmediate)
    assert.deepEqual(await database.state.get('gateway/answers/x/start of a'), {
      why: 'what is asked cannot be read',
    })
  })
})
