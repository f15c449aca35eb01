import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { memoryState } from '@toolgate/core/stores'
import { manualClock } from '@toolgate/testing'
import { Logouts } from './logouts.ts'

const ACME = { issuer: 'acme' }

/** Two replicas that share a state. */
async function pair() {
  const clock = manualClock()
  const state = memoryState({ clock })
  const changes: string[] = []
  const open = async (name: string) => {
    const logouts = new Logouts({ clock, onFault: (error) => changes.push(String(error)) })
    await logouts.open(state, () => changes.push(name))
    return logouts
  }
  return { a: await open('a'), b: await open('b'), changes, state, clock }
}

describe('Logouts', () => {
  it('are known at every replica, and announced there', async () => {
    const { a, b, changes } = await pair()
    changes.splice(0)
    await a.add({ ...ACME, sub: 'ann', atMs: 1000 })
    for (const one of [a, b]) assert.equal(one.hasEnded('acme', { sub: 'ann' }, 1000), true)
    assert.ok(changes.includes('a') && changes.includes('b'))
  })

  it('of a session end tokens of that session and tokens of no known session', async () => {
    const { a } = await pair()
    await a.add({ ...ACME, sub: 'ann', sid: 's1', atMs: 1000 })
    const ended = (of: object, atMs: number | undefined = 1000, issuer = 'acme') => a.hasEnded(issuer, of, atMs)
    assert.equal(ended({ sub: 'ann', sid: 's1' }), true)
    // Where an issuer names a person differently to each client, the session still is the same.
    assert.equal(ended({ sub: 'ann-to-another-client', sid: 's1' }), true)
    assert.equal(ended({ sub: 'ann' }), true)
    assert.equal(ended({ sub: 'ann', sid: 's2' }), false)
    assert.equal(ended({ sub: 'bob' }), false)
    assert.equal(ended({ sid: 's2' }), false)
    assert.equal(ended({ sub: 'ann', sid: 's1' }, 1000, 'other'), false)
  })

  it('end no token that was issued later, and one that does not say when', async () => {
    const { a } = await pair()
    await a.add({ ...ACME, sub: 'ann', atMs: 1000 })
    assert.equal(a.hasEnded('acme', { sub: 'ann' }, 999), true)
    assert.equal(a.hasEnded('acme', { sub: 'ann' }, 1001), false)
    assert.equal(a.hasEnded('acme', { sub: 'ann' }, undefined), true)
  })

  it('are remembered beside earlier ones and over a restart', async () => {
    const { a, state, clock } = await pair()
    await a.add({ ...ACME, sub: 'ann', sid: 's1', atMs: 1000 })
    await a.add({ ...ACME, sub: 'ann', sid: 's2', atMs: 2000 })
    await a.add({ ...ACME, sid: 's3', atMs: 3000 })
    const again = new Logouts({ clock, onFault: (error) => assert.fail(String(error)) })
    assert.equal(again.isRead, false)
    await again.open(state, () => {})
    assert.equal(again.isRead, true)
    for (const sid of ['s1', 's2', 's3']) assert.equal(again.hasEnded('acme', { sub: 'ann', sid }, 0), true)
  })

  it('ignore rows that are none', async () => {
    const { a, state } = await pair()
    for (const [n, value] of ['x', { issuer: 'acme' }, { atMs: 1 }, { issuer: 'acme', atMs: 1 }].entries())
      await state.set(`gateway/logouts/${n}`, value)
    assert.equal(a.hasEnded('acme', {}, 0), false)
  })
})
