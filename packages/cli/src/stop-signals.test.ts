import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { describe, it } from 'node:test'
import { createStopSignals } from './stop-signals.ts'

describe('createStopSignals', () => {
  const listen = () => {
    const source = new EventEmitter()
    const exits: number[] = []
    let timeMs = 1000
    const signals = createStopSignals({ source, exit: (code) => exits.push(code), nowMs: () => timeMs }).once()
    const send = (signal: NodeJS.Signals, afterMs = 0): void => {
      timeMs += afterMs
      source.emit(signal, signal)
    }
    return { ...signals, source, exits, send }
  }

  it('returns the first signal', async () => {
    const { stopped, send, exits } = listen()
    send('SIGTERM')
    assert.equal(await stopped, 'SIGTERM')
    assert.deepEqual(exits, [])
  })

  it('takes the same signal again within a second for its echo, as npm sends it', () => {
    const { send, exits } = listen()
    send('SIGINT')
    send('SIGINT', 1000)
    assert.deepEqual(exits, [])
  })

  it('ends the process at once at a later or another signal', () => {
    const later = listen()
    later.send('SIGINT')
    later.send('SIGINT', 1001)
    assert.deepEqual(later.exits, [130])
    const other = listen()
    other.send('SIGINT')
    other.send('SIGTERM', 1)
    assert.deepEqual(other.exits, [130])
  })

  it('continues on SIGHUP if the command asks for it', async () => {
    const source = new EventEmitter()
    let hangups = 0
    const signals = createStopSignals({ source, exit: () => assert.fail(), nowMs: () => 0 })
    const { stopped, release } = signals.once({ onHangup: () => hangups++ })
    source.emit('SIGHUP', 'SIGHUP')
    source.emit('SIGHUP', 'SIGHUP')
    source.emit('SIGTERM', 'SIGTERM')
    assert.deepEqual([await stopped, hangups], ['SIGTERM', 2])
    release()
    assert.deepEqual(source.eventNames(), [])
  })

  it('stops listening when released', () => {
    const { source, release } = listen()
    release()
    assert.deepEqual(source.eventNames(), [])
  })
})
