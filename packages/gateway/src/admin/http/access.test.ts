import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createSessions } from './access.ts'

const vera = { user: 'vera' }

describe('createSessions', () => {
  it('returns a secret of 256 bits that differs each time', async () => {
    const sessions = createSessions({ clock: { monotonicMs: () => 0, wallMs: () => 0 } })
    const secrets = new Set(await Promise.all(Array.from({ length: 100 }, () => sessions.open(vera))))
    assert.equal(secrets.size, 100)
    for (const secret of secrets) assert.equal(Buffer.from(secret, 'base64url').length, 32)
  })

  it('holds a bounded number: the oldest ends first', async () => {
    const sessions = createSessions({ clock: { monotonicMs: () => 0, wallMs: () => 0 }, max: 2 })
    const secrets = [await sessions.open(vera), await sessions.open(vera), await sessions.open(vera)]
    assert.deepEqual(
      secrets.map((secret) => sessions.find(secret) !== undefined),
      [false, true, true],
    )
  })

  it('drops expired sessions before others', async () => {
    let now = 0
    const sessions = createSessions({ clock: { monotonicMs: () => now, wallMs: () => 0 }, max: 2, ttlMs: 10 })
    await sessions.open(vera)
    now = 5
    const kept = await sessions.open(vera)
    now = 10
    await sessions.open(vera)
    assert.equal(sessions.find(kept)?.person, vera)
    now = 15
    assert.equal(sessions.find(kept), undefined)
  })

  it('ends a session with the claims that it was opened with', async () => {
    let now = 0
    const clock = { monotonicMs: () => now, wallMs: () => 1000 + now }
    const sessions = createSessions({ clock, ttlMs: 100 })
    const short = await sessions.open(vera, { endsAtMs: 1010 })
    const long = await sessions.open(vera, { endsAtMs: 5000 })
    now = 9
    assert.ok(sessions.find(short))
    now = 10
    assert.equal(sessions.find(short), undefined)
    now = 100
    assert.equal(sessions.find(long), undefined)
  })
})
