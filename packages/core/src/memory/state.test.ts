import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { manualClock } from '../../../testing/src/manual-clock.ts'
import { stateStoreContract } from '../../../testing/src/state-store.ts'
import { memoryState } from './state.ts'

stateStoreContract('memoryState', async (_t, { clock }) => ({ store: memoryState({ clock }) }))

describe('memoryState', () => {
  it('holds no entries that have expired for longer than it takes as many new ones to come', () => {
    const clock = manualClock()
    const state = memoryState({ clock })
    for (let round = 0; round < 20; round++) {
      for (let i = 0; i < 100; i++) void state.set(`${round}-${i}`, i, { expiresAt: clock.wallMs() + 1 })
      clock.advance(1)
    }
    assert.ok(state.size <= 300, `${state.size} entries are held`)
  })

  it('has told its listeners by the time that a change returns', () => {
    const state = memoryState()
    let calls = 0
    const end = state.subscribe(() => void calls++)
    void state.set('a', 1)
    void state.add('a', 2)
    void state.take('b')
    assert.equal(calls, 1)
    end()
    end()
    void state.take('a')
    assert.equal(calls, 1)
  })

  it('tells a function that listens twice twice, and once after one was ended', () => {
    const state = memoryState()
    let calls = 0
    const listener = () => void calls++
    const end = state.subscribe(listener)
    state.subscribe(listener)
    void state.set('a', 1)
    end()
    void state.set('a', 2)
    assert.equal(calls, 3)
  })
})
