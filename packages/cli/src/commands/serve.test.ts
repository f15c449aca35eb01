import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { createGate, defineTool } from '@toolgate/core'
import type { RunningGateway } from '@toolgate/gateway'
import { createStopSignals } from '../stop-signals.ts'
import { fakeIo } from '../testing/fake-io.ts'
import { serveCommand } from './serve.ts'

describe('toolgate serve', () => {
  it('says where agents and people reach it when it is ready', async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'toolgate-serve-'))
    t.after(() => rmSync(folder, { recursive: true }))
    const config = join(folder, 'toolgate.yaml')
    writeFileSync(config, 'servers: {}\npolicy: [{ allow: ["*"] }]\n')
    const source = new EventEmitter()
    const io = fakeIo()
    const gateway: Partial<RunningGateway> = {
      url: 'http://127.0.0.1:9000',
      gate: createGate({ tools: [defineTool({ name: 'look' })] }),
      ready: Promise.resolve(),
      servers: () => [],
      groups: () => [],
      close: async () => {},
    }
    const signals = createStopSignals({ source, exit: () => {}, nowMs: () => 0 })
    const running = serveCommand({ config }, { io, signals, start: async () => gateway as RunningGateway })
    while (io.out() === '') await new Promise((resolve) => setImmediate(resolve))
    source.emit('SIGINT', 'SIGINT')
    assert.equal(await running, 'ok')
    assert.equal(
      io.out(),
      'ready  http://127.0.0.1:9000/mcp  1 tool of 0 servers\n       http://127.0.0.1:9000/     console\n',
    )
  })
})
