import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { describe, it } from 'node:test'
import type { GatewayConfig, RunningGateway } from '@toolgate/gateway'
import { CliError } from '../exit.ts'
import { createStopSignals } from '../stop-signals.ts'
import { fakeIo } from '../testing/fake-io.ts'
import { runGateway, type StartGateway } from './run-gateway.ts'

const CONFIG = { listen: { host: '127.0.0.1', port: 80 }, drainMs: 0 } as GatewayConfig

describe('runGateway', () => {
  const world = (gateway: Partial<RunningGateway> & { failure?: Error } = {}) => {
    const source = new EventEmitter()
    const io = fakeIo()
    const happened: string[] = []
    const start: StartGateway = async (_config, { log } = {}) => {
      if (gateway.failure) throw gateway.failure
      log?.({ level: 'warn', message: 'down \u001b[2J', server: 'files', detail: 'first\nsecond' })
      log?.({ level: 'info', message: 'not for people' })
      return {
        ready: Promise.resolve(),
        close: async () => void happened.push('closed'),
        ...gateway,
      } as RunningGateway
    }
    const signals = createStopSignals({ source, exit: () => {}, nowMs: () => 0 })
    const onReady = async () => void happened.push('ready')
    const run = runGateway(CONFIG, { io, signals, start, portHint: 'Choose another.', onReady })
    return { run, io, happened, stop: () => source.emit('SIGINT', 'SIGINT'), source }
  }

  it('tells when it is ready, runs until a signal, and closes', async () => {
    const { run, happened, stop, source, io } = world()
    while (!happened.includes('ready')) await new Promise((resolve) => setImmediate(resolve))
    stop()
    assert.equal(await run, 'ok')
    assert.deepEqual(happened, ['ready', 'closed'])
    assert.deepEqual(source.eventNames(), [])
    assert.equal(io.err(), 'warn  files: down \\u001b[2J (first)\n')
  })

  it('closes also when the signal comes before it is ready', async () => {
    const { run, happened, stop } = world({ ready: new Promise(() => {}) })
    stop()
    assert.equal(await run, 'ok')
    assert.deepEqual(happened, ['closed'])
  })

  it('does not wait longer than 2 s for what does not stop', async () => {
    const { run, stop, io } = world({ close: () => new Promise(() => {}) })
    stop()
    assert.equal(await run, 'no')
    assert.match(io.err(), /Not everything had stopped after 2 s/)
  })

  it('closes and passes the error on when telling fails', async () => {
    const { run, happened } = world({ ready: Promise.reject(new Error('a fault')) })
    await assert.rejects(run, /a fault/)
    assert.deepEqual(happened, ['closed'])
  })

  it('names a port that may not be used', async () => {
    const { run } = world({ failure: Object.assign(new Error('listen EACCES'), { code: 'EACCES' }) })
    await assert.rejects(run, (error: CliError) => {
      assert.deepEqual([error.exit, error.message], ['port', 'Port 80 on 127.0.0.1 cannot be used (EACCES).'])
      return true
    })
  })
})
