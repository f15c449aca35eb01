import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Caller } from '@toolgate/core'
import { Sessions, type SessionsOptions } from './sessions.ts'

const CLIENT = { capabilities: {}, protocolVersion: '2025-11-25' }
const VERA = { user: 'vera', tenant: 'acme' }

function timed(options: Partial<SessionsOptions> = {}) {
  let now = 0
  const sessions = new Sessions({ clock: { monotonicMs: () => now, wallMs: () => now }, idleMs: 1000, ...options })
  return { sessions, pass: (ms: number) => void (now += ms) }
}

const hasSession = (sessions: Sessions, caller: Caller, id: string) => sessions.find(caller, id) !== undefined

describe('Sessions', () => {
  it('has the sessions that it began, and no others', () => {
    const { sessions } = timed()
    const id = sessions.begin(VERA, CLIENT).id
    assert.equal(hasSession(sessions, VERA, id), true)
    assert.equal(hasSession(sessions, VERA, 'made up'), false)
    assert.notEqual(sessions.begin(VERA, CLIENT).id, id)
  })

  it('has a session for every key of its user, and for no key of another', () => {
    const { sessions } = timed()
    const id = sessions.begin(VERA, CLIENT).id
    assert.equal(hasSession(sessions, { ...VERA, roles: ['admin'] }, id), true)
    assert.equal(hasSession(sessions, { user: 'vera' }, id), false)
    assert.equal(hasSession(sessions, { ...VERA, user: 'paul' }, id), false)
  })

  it('forgets an ended session, and ends its streams', async () => {
    const { sessions } = timed()
    const id = sessions.begin(VERA, CLIENT).id
    let ended = 0
    sessions.hold(VERA, id, () => ended++)
    const ending = sessions.end(VERA, id)
    assert.equal(ended, 1)
    assert.equal(hasSession(sessions, VERA, id), false)
    assert.equal(await ending, true)
    assert.equal(await sessions.end(VERA, id), false)
  })

  it('has ended a session when nobody else can go on with it', async () => {
    const removals: (() => void)[] = []
    const keeper = {
      put: async () => true,
      has: async () => true,
      free: async () => {},
      remove: () => new Promise<void>((resolve) => removals.push(resolve)),
    }
    const { sessions } = timed({ keeper })
    let isEnded = false
    const ending = sessions.end(VERA, sessions.begin(VERA, CLIENT).id).then(() => (isEnded = true))
    await Promise.resolve()
    assert.deepEqual([isEnded, removals.length], [false, 1])
    removals[0]?.()
    await ending
  })

  it('forgets an idle session, and keeps one that is used or has a stream', () => {
    const { sessions, pass } = timed()
    const [unused, used, open] = [
      sessions.begin(VERA, CLIENT).id,
      sessions.begin(VERA, CLIENT).id,
      sessions.begin(VERA, CLIENT).id,
    ]
    const release = sessions.hold(VERA, open, () => {})
    pass(600)
    assert.equal(hasSession(sessions, VERA, used), true)
    pass(600)
    assert.deepEqual(
      [unused, used, open].map((id) => hasSession(sessions, VERA, id)),
      [false, true, true],
    )
    pass(600)
    release()
    pass(1000)
    assert.equal(hasSession(sessions, VERA, open), false)
  })

  it('drops the least recently used session at a limit, of one user or of all', () => {
    const { sessions } = timed({ maxOfOne: 2, maxSessions: 3 })
    const other = sessions.begin({ user: 'paul' }, CLIENT).id
    const [first, second] = [sessions.begin(VERA, CLIENT).id, sessions.begin(VERA, CLIENT).id]
    hasSession(sessions, VERA, first)
    const third = sessions.begin(VERA, CLIENT).id
    assert.deepEqual(
      [first, second, third].map((id) => hasSession(sessions, VERA, id)),
      [true, false, true],
    )
    assert.equal(hasSession(sessions, { user: 'paul' }, other), true)
    sessions.begin({ user: 'nina' }, CLIENT)
    assert.equal(hasSession(sessions, VERA, first), false)
  })
})

describe('Session', () => {
  const vera = Object.freeze({ user: 'vera' })
  const other = Object.freeze({ user: 'vera' })
  const begin = () => timed().sessions.begin(vera, CLIENT)

  it('cancels the request of this caller and id', () => {
    const session = begin()
    const { canceller } = session.run(vera, 1)
    session.cancel(vera, 1)
    assert.equal(canceller.aborted, true)
  })

  it('cancels a request whose id is given as text, or as a number, unless another request has exactly that id', () => {
    const session = begin()
    const [number, text, negative] = [session.run(vera, 1), session.run(vera, '1'), session.run(vera, '-2')]
    session.cancel(vera, '1')
    assert.deepEqual([number.canceller.aborted, text.canceller.aborted], [false, true])
    text.end()
    session.cancel(vera, '1')
    session.cancel(vera, -2)
    assert.deepEqual([number.canceller.aborted, negative.canceller.aborted], [true, true])
  })

  it('does not cancel the requests of other callers, sessions and ids', () => {
    const session = begin()
    const { canceller } = session.run(vera, 1)
    session.cancel(other, 1)
    begin().cancel(vera, 1)
    session.cancel(vera, 2)
    session.cancel(vera, '01')
    session.cancel(vera, '__proto__')
    assert.equal(canceller.aborted, false)
  })

  it('forgets a request that has ended, but not another with the same id', () => {
    const session = begin()
    const first = session.run(vera, 1)
    const second = session.run(vera, 1)
    first.end()
    session.cancel(vera, 1)
    assert.deepEqual([first.canceller.aborted, second.canceller.aborted], [false, true])
    const third = session.run(vera, 3)
    third.end()
    session.cancel(vera, 3)
    assert.equal(third.canceller.aborted, false)
  })

  it('has one caller for each key, in the session of their own tenant and user', () => {
    const session = begin()
    assert.equal(session.callerOf(vera), session.callerOf(vera))
    assert.equal(session.callerOf(vera).session, `/vera/${session.id}`)
    assert.deepEqual(session.callerOf({ ...vera, roles: ['admin'] }).roles, ['admin'])
  })
})
