import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Cancellations, Sessions } from './sessions.ts'

const VERA = { user: 'vera', tenant: 'acme' }

function timed(options: { maxOfOne?: number; maxSessions?: number } = {}) {
  let now = 0
  const sessions = new Sessions({ clock: { monotonicMs: () => now, wallMs: () => now }, idleMs: 1000, ...options })
  return { sessions, pass: (ms: number) => void (now += ms) }
}

describe('Sessions', () => {
  it('has the sessions that it began, and no others', () => {
    const { sessions } = timed()
    const id = sessions.begin(VERA)
    assert.equal(sessions.has(VERA, id), true)
    assert.equal(sessions.has(VERA, 'made up'), false)
    assert.notEqual(sessions.begin(VERA), id)
  })

  it('has a session for every key of its user, and for no key of another', () => {
    const { sessions } = timed()
    const id = sessions.begin(VERA)
    assert.equal(sessions.has({ ...VERA, roles: ['admin'] }, id), true)
    assert.equal(sessions.has({ user: 'vera' }, id), false)
    assert.equal(sessions.has({ ...VERA, user: 'paul' }, id), false)
  })

  it('forgets an ended session, and ends its streams', () => {
    const { sessions } = timed()
    const id = sessions.begin(VERA)
    let ended = 0
    sessions.hold(VERA, id, () => ended++)
    assert.equal(sessions.end(VERA, id), true)
    assert.equal(ended, 1)
    assert.equal(sessions.has(VERA, id), false)
    assert.equal(sessions.end(VERA, id), false)
  })

  it('forgets an idle session, and keeps one that is used or has a stream', () => {
    const { sessions, pass } = timed()
    const [unused, used, open] = [sessions.begin(VERA), sessions.begin(VERA), sessions.begin(VERA)]
    const release = sessions.hold(VERA, open, () => {})
    pass(600)
    assert.equal(sessions.has(VERA, used), true)
    pass(600)
    assert.deepEqual(
      [unused, used, open].map((id) => sessions.has(VERA, id)),
      [false, true, true],
    )
    pass(600)
    release()
    pass(1000)
    assert.equal(sessions.has(VERA, open), false)
  })

  it('drops the least recently used session at a limit, of one user or of all', () => {
    const { sessions } = timed({ maxOfOne: 2, maxSessions: 3 })
    const other = sessions.begin({ user: 'paul' })
    const [first, second] = [sessions.begin(VERA), sessions.begin(VERA)]
    sessions.has(VERA, first)
    const third = sessions.begin(VERA)
    assert.deepEqual(
      [first, second, third].map((id) => sessions.has(VERA, id)),
      [true, false, true],
    )
    assert.equal(sessions.has({ user: 'paul' }, other), true)
    sessions.begin({ user: 'nina' })
    assert.equal(sessions.has(VERA, first), false)
  })
})

describe('Cancellations', () => {
  const vera = Object.freeze({ user: 'vera' })
  const other = Object.freeze({ user: 'vera' })

  it('cancels the call of this caller, session and id', () => {
    const calls = new Cancellations()
    const { signal } = calls.open(vera, 's', 1)
    calls.cancel(vera, 's', 1)
    assert.equal(signal.aborted, true)
  })

  it('does not cancel the calls of other callers, sessions and ids', () => {
    const calls = new Cancellations()
    const { signal } = calls.open(vera, 's', 1)
    calls.cancel(other, 's', 1)
    calls.cancel(vera, 't', 1)
    calls.cancel(vera, 's', 2)
    calls.cancel(vera, 's', '1')
    calls.cancel(vera, '__proto__', 'constructor')
    assert.equal(signal.aborted, false)
  })

  it('forgets a call that has ended, but not another with the same id', () => {
    const calls = new Cancellations()
    const first = calls.open(vera, 's', 1)
    const second = calls.open(vera, 's', 1)
    first.end()
    calls.cancel(vera, 's', 1)
    assert.deepEqual([first.signal.aborted, second.signal.aborted], [false, true])
    const third = calls.open(vera, 's', 3)
    third.end()
    calls.cancel(vera, 's', 3)
    assert.equal(third.signal.aborted, false)
  })
})
