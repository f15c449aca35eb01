import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createCancellations } from './cancellations.ts'

describe('createCancellations', () => {
  const vera = Object.freeze({ user: 'vera' })
  const other = Object.freeze({ user: 'vera' })

  it('cancels the call of this caller, session and id', () => {
    const calls = createCancellations()
    const { signal } = calls.open(vera, 's', 1)
    calls.cancel(vera, 's', 1)
    assert.equal(signal.aborted, true)
  })

  it('leaves alone the calls of other callers, sessions and ids', () => {
    const calls = createCancellations()
    const { signal } = calls.open(vera, 's', 1)
    calls.cancel(other, 's', 1)
    calls.cancel(vera, 't', 1)
    calls.cancel(vera, 's', 2)
    calls.cancel(vera, 's', '1')
    calls.cancel(vera, '__proto__', 'constructor')
    assert.equal(signal.aborted, false)
  })

  it('forgets a call that has ended, and not another of the same id', () => {
    const calls = createCancellations()
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
