import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createEmitter } from './emitter.ts'

describe('createEmitter', () => {
  it('calls every listener, also when one throws or rejects, and reports what they throw', async () => {
    const faults: unknown[] = []
    const { subscribe, emit } = createEmitter<[string]>((error) => faults.push(error))
    const received: string[] = []
    const gone = new Error('gone')
    subscribe(() => {
      throw gone
    })
    subscribe(() => Promise.reject(gone))
    subscribe((message) => received.push(message))
    emit('one')
    await new Promise((resolve) => setImmediate(resolve))
    assert.deepEqual([received, faults], [['one'], [gone, gone]])
  })

  it('calls a listener that subscribed twice twice, and ends each subscription by itself', () => {
    const { subscribe, emit } = createEmitter()
    let calls = 0
    const listener = () => calls++
    const end = subscribe(listener)
    subscribe(listener)
    emit()
    end()
    end()
    emit()
    assert.equal(calls, 3)
  })

  it('calls neither a listener that subscribes meanwhile nor one that was unsubscribed meanwhile', () => {
    const emitter = createEmitter()
    const calls: string[] = []
    emitter.subscribe(() => {
      calls.push('first')
      emitter.subscribe(() => calls.push('late'))
      end()
    })
    const end = emitter.subscribe(() => calls.push('ended'))
    emitter.emit()
    assert.deepEqual([calls, emitter.size], [['first'], 2])
    emitter.clear()
    emitter.emit()
    assert.deepEqual([calls, emitter.size], [['first'], 0])
  })
})
