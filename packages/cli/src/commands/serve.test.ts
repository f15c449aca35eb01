import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { createGate, defineTool } from '@toolgate/core'
import { type GatewayConfig, type RunningGateway, startGateway } from '@toolgate/gateway'
import { configReader, runGateway, serveCommand, type StartGateway } from './serve.ts'
import { CliError } from '../exit.ts'
import { readRunning } from '../project/running-file.ts'
import { createStopSignals } from '../stop-signals.ts'
import { fakeIo } from '../testing/fake-io.ts'

describe('toolgate serve', () => {
  it('prints the addresses for agents and people when it is ready', async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'toolgate-serve-'))
    t.after(() => rmSync(folder, { recursive: true }))
    const config = join(folder, 'toolgate.yaml')
    writeFileSync(config, 'servers: {}\npolicy: [{ allow: ["*"] }]\n')
    const source = new EventEmitter()
    const io = fakeIo()
    const gateway: Partial<RunningGateway> = {
      url: 'http://127.0.0.1:9000',
      port: 9000,
      gate: createGate({ tools: [defineTool({ name: 'look' })] }),
      ready: Promise.resolve(),
      servers: () => [],
      groups: () => [],
      close: async () => {},
    }
    const signals = createStopSignals({ source, exit: () => {}, nowMs: () => 0 })
    const running = serveCommand({ config }, { io, signals, start: async () => gateway as RunningGateway })
    while (io.out() === '') await new Promise((resolve) => setImmediate(resolve))
    const announced = join(folder, '.toolgate/toolgate.yaml.running.json')
    assert.equal(statSync(announced).mode & 0o777, 0o600)
    assert.equal(readRunning(config)?.url, 'http://127.0.0.1:9000')
    source.emit('SIGINT', 'SIGINT')
    assert.equal(await running, 'ok')
    assert.equal(existsSync(announced), false)
    assert.equal(
      io.out(),
      'ready  http://127.0.0.1:9000/mcp  1 tool of 0 servers\n       http://127.0.0.1:9000/     console\n',
    )
  })
})

describe('configReader', () => {
  it('reads the same port again, so that a reload needs no restart for it', async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'toolgate-serve-'))
    t.after(() => rmSync(folder, { recursive: true }))
    const file = join(folder, 'toolgate.yaml')
    const write = (policy: string) =>
      writeFileSync(
        file,
        `servers: {}\nlisten: { port: 1 }\npolicy: ${policy}\naudit: { store: memory }\nstate: { store: memory }\n`,
      )
    write('[{ allow: ["*"] }]')
    const read = configReader(file, 0, fakeIo())
    const gateway = await startGateway(await read(), { read })
    t.after(() => gateway.close())
    write('[{ allow: ["files:*"] }]')
    const { isApplied, restartNeeded } = await gateway.reload()
    assert.deepEqual([isApplied, restartNeeded], [true, []])
  })
})

const CONFIG = { listen: { host: '127.0.0.1', port: 80 }, drainMs: 0 } as GatewayConfig

describe('runGateway', () => {
  const world = (gateway: Partial<RunningGateway> & { failure?: Error } = {}) => {
    const source = new EventEmitter()
    const io = fakeIo()
    const happened: string[] = []
    const start: StartGateway = async (_config, { log } = {}) => {
      if (gateway.failure) throw gateway.failure
      log?.({ level: 'warn', message: 'down \u001b[2J', server: 'files', detail: 'first\nsecond' })
      log?.({ level: 'warn', message: 'is down', server: 'browser', user: 'vera\u001b[2J' })
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

  it('reports when it is ready, runs until a signal, and closes', async () => {
    const { run, happened, stop, source, io } = world()
    while (!happened.includes('ready')) await new Promise((resolve) => setImmediate(resolve))
    stop()
    assert.equal(await run, 'ok')
    assert.deepEqual(happened, ['ready', 'closed'])
    assert.deepEqual(source.eventNames(), [])
    const TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z {2}/gm
    assert.equal(
      io.err().replace(TIME, 'AT '),
      'AT warn  files: down \\u001b[2J (first)\nAT warn  browser of vera\\u001b[2J: is down\n',
    )
  })

  it('closes also when the signal comes before it is ready', async () => {
    const { run, happened, stop } = world({ ready: new Promise(() => {}) })
    stop()
    assert.equal(await run, 'ok')
    assert.deepEqual(happened, ['closed'])
  })

  it('waits at most 2 s for parts that do not stop', async () => {
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
