import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createCanceller, toCancelling } from './cancelling.ts'

describe('createCanceller', () => {
  it('tells its listeners once, and keeps the first reason', () => {
    const canceller = createCanceller()
    const heard: unknown[] = []
    canceller.onAbort(() => heard.push(canceller.reason))
    assert.deepEqual([canceller.aborted, canceller.reason], [false, undefined])
    canceller.abort('first')
    canceller.abort('second')
    assert.deepEqual([canceller.aborted, canceller.reason, heard], [true, 'first', ['first']])
  })

  it('does not tell a listener that was taken back', () => {
    const canceller = createCanceller()
    let heard = 0
    const takeBack = canceller.onAbort(() => heard++)
    takeBack()
    canceller.abort('gone')
    assert.equal(heard, 0)
  })

  it('tells the other listeners when one throws', () => {
    const canceller = createCanceller()
    let heard = 0
    canceller.onAbort(() => {
      throw new Error('its own')
    })
    canceller.onAbort(() => heard++)
    canceller.abort('gone')
    assert.equal(heard, 1)
  })
})

describe('toCancelling', () => {
  it('says what an AbortSignal says', () => {
    const controller = new AbortController()
    const cancelling = toCancelling(controller.signal)
    let heard = 0
    cancelling.onAbort(() => heard++)
    const takeBack = cancelling.onAbort(() => heard++)
    takeBack()
    assert.equal(cancelling.aborted, false)
    controller.abort('gone')
    assert.deepEqual([cancelling.aborted, cancelling.reason, heard], [true, 'gone', 1])
  })

  it('leaves what is one already as it is', () => {
    const canceller = createCanceller()
    assert.equal(toCancelling(canceller), canceller)
  })
})
