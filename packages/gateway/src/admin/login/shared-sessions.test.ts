import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { memoryState } from '@toolgate/core/stores'
import { manualClock } from '@toolgate/testing'
import type { Credential } from '../../auth/credential.ts'
import { SESSION_TTL_MS } from '../http/access.ts'
import { SharedSessions, type SharedSessionsOptions } from './shared-sessions.ts'

const VERA = { user: 'vera', roles: ['approver'] }

function setup() {
  const clock = manualClock()
  const state = memoryState({ clock })
  const credentials = new Map<string, Pick<Credential, 'caller' | 'for'>>()
  const faults: unknown[] = []
  const open = (options: Partial<SharedSessionsOptions> = {}) =>
    new SharedSessions({
      state,
      clock,
      authenticator: { current: (id) => credentials.get(id) as Credential | undefined },
      use: 'console',
      onFault: (error) => faults.push(error),
      ...options,
    })
  /** Two replicas, whose sessions have followed the state. */
  const pair = async (options?: Partial<SharedSessionsOptions>) => {
    const both = [open(options), open(options)] as const
    const settle = () => Promise.all(both.map((sessions) => sessions.opened()))
    await settle()
    return { a: both[0], b: both[1], settle }
  }
  return { clock, state, credentials, faults, open, pair }
}

describe('SharedSessions', () => {
  it('are known to the others, and closed at one they end at all', async () => {
    const { pair } = setup()
    const { a, b, settle } = await pair()
    const secret = await a.open(VERA, { logoutUrl: 'https://issuer.example/logout' })
    await settle()
    assert.deepEqual(a.find(secret)?.person, b.find(secret)?.person)
    assert.deepEqual(b.find(secret)?.person, VERA)
    let ended = 0
    a.onEnd(secret, () => ended++)
    assert.equal(await b.close(secret), 'https://issuer.example/logout')
    await settle()
    assert.deepEqual([a.find(secret), b.find(secret), ended], [undefined, undefined, 1])
    assert.equal(await b.close(secret), undefined)
  })

  it('are kept without their secrets', async () => {
    const { open, state } = setup()
    const secret = await open().open(VERA)
    assert.equal(JSON.stringify(await state.list('')).includes(secret), false)
  })

  it('end after their time, or that of the login behind them, whichever is first', async () => {
    const { pair, clock } = setup()
    const { a, b, settle } = await pair()
    const long = await a.open(VERA)
    const short = await a.open(VERA, { endsAtMs: clock.wallMs() + 1000 })
    await settle()
    clock.advance(999)
    assert.ok(b.find(short))
    clock.advance(1)
    assert.deepEqual([b.find(short), b.find(long) === undefined], [undefined, false])
    clock.advance(SESSION_TTL_MS - 1000)
    assert.equal(b.find(long), undefined)
  })

  it('stay ended once that was seen, at every replica and after a restart, when the clock goes back', async () => {
    for (const see of ['find', 'people'] as const) {
      const { pair, clock } = setup()
      const { a, b, settle } = await pair()
      const secret = await a.open(VERA, { endsAtMs: clock.wallMs() + 1000 })
      const other = await a.open(VERA)
      await settle()
      let ended = 0
      b.onEnd(secret, () => ended++)
      clock.advance(1000)
      if (see === 'find') b.find(secret)
      else b.people()
      clock.advance(-1000)
      assert.deepEqual([b.find(secret), ended], [undefined, 1])
      await settle()
      const later = await pair()
      for (const one of [a, b, later.a]) assert.equal(one.find(secret), undefined)
      assert.ok(later.a.find(other), 'what had not ended goes on')
    }
  })

  it('have the person that a key has today, and end with it', async () => {
    const { pair, credentials } = setup()
    credentials.set('k1', { caller: VERA, for: 'console' })
    const { a, b, settle } = await pair()
    const secret = await a.open(VERA, { credential: 'k1' })
    await settle()
    credentials.set('k1', { caller: { user: 'vera', roles: [] }, for: 'console' })
    assert.deepEqual(b.find(secret)?.person.roles, [])
    let ended = 0
    b.onEnd(secret, () => ended++)
    b.replace()
    assert.equal(ended, 0)
    credentials.delete('k1')
    b.replace()
    assert.deepEqual([ended, b.find(secret)], [1, undefined])
  })

  it('of the console are for its keys, those of people also for keys of agents, and none for keys of hosts', async () => {
    for (const [use, kind, opens] of [
      ['console', 'console', true],
      ['console', 'mcp', false],
      ['console', 'host', false],
      ['person', 'mcp', true],
      ['person', 'host', false],
    ] as const) {
      const { open, credentials } = setup()
      credentials.set('k1', { caller: VERA, for: kind })
      const sessions = open({ use })
      const secret = await sessions.open(VERA, { credential: 'k1' })
      assert.equal(sessions.find(secret) !== undefined, opens, `${use} ${kind}`)
    }
  })

  it('make room by ending the one that would end first', async () => {
    const { open, clock } = setup()
    const sessions = open({ max: 2 })
    const first = await sessions.open(VERA)
    clock.advance(1)
    const second = await sessions.open(VERA)
    clock.advance(1)
    const third = await sessions.open(VERA)
    assert.deepEqual(
      [first, second, third].map((secret) => sessions.find(secret) !== undefined),
      [false, true, true],
    )
  })

  it('of one use are none of another', async () => {
    const { open } = setup()
    const [console, people] = [open(), open({ use: 'person' })]
    const secret = await console.open(VERA)
    await people.opened()
    assert.equal(people.find(secret), undefined)
  })

  it('that cannot be read open nothing', async () => {
    const { state, open, clock } = setup()
    const sessions = open()
    const secret = await sessions.open(VERA)
    const [{ key, value }] = (await state.list('login:')) as [{ key: string; value: object }]
    for (const broken of [
      'nonsense',
      { ...value, endsAt: 'never' },
      { ...value, person: 5 },
      { loginAt: 0, endsAt: clock.wallMs() + 1 },
    ]) {
      await state.set(key, broken)
      const other = open()
      await other.opened()
      assert.equal(other.find(secret), undefined, JSON.stringify(broken))
    }
  })

  it('are not open where the store does not take them', async () => {
    const { open, state } = setup()
    const sessions = open({ state: { ...state, set: () => Promise.reject(new Error('gone')) } })
    await assert.rejects(async () => sessions.open(VERA), /gone/)
  })

  it('end at every replica when their issuer ends them', async () => {
    const { pair } = setup()
    const { a, b, settle } = await pair()
    const ann = { issuedTo: { sub: 'ann', sid: 's1' } }
    const [first, second] = [await a.open(VERA, ann), await a.open(VERA, { issuedTo: { sub: 'ann', sid: 's2' } })]
    const byKey = await a.open(VERA)
    await settle()
    let told = 0
    a.onEnd(first, () => told++)
    assert.deepEqual(await b.endIssued({ sid: 's1' }), [VERA])
    await settle()
    for (const one of [a, b]) {
      assert.equal(one.find(first), undefined)
      assert.ok(one.find(second))
    }
    assert.equal(told, 1)
    assert.deepEqual(await b.endIssued({ sub: 'ann' }), [VERA])
    assert.equal(a.find(second), undefined)
    assert.ok(a.find(byKey))
    assert.deepEqual(await b.endIssued({}), [])
  })

  it('of people without a key hold under the rules of their login only', async () => {
    const { open, credentials } = setup()
    const before = open({ rules: 'one' })
    await before.opened()
    const secret = await before.open(VERA)
    credentials.set('k', { caller: VERA, for: 'console' })
    const byKey = await before.open(VERA, { credential: 'k' })
    for (const [rules, found] of [
      ['one', true],
      ['other', false],
      [undefined, false],
    ] as const) {
      const after = open({ rules })
      await after.opened()
      assert.equal(after.find(secret) !== undefined, found, rules)
      assert.ok(after.find(byKey))
    }
  })
})
