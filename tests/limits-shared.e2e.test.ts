import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { after, describe, it } from 'node:test'
import { tempFolder } from './support/gateway.ts'
import { send } from './support/http.ts'
import { ERAS, MODERN, type RpcAnswer, toMessage } from './support/rpc.ts'

/** Limits across gateways and restarts. Each gateway is its own process, as with `toolgate serve`. */

const BIN = join(import.meta.dirname, '../packages/cli/bin/toolgate.js')
const SLOW = join(import.meta.dirname, 'support/slow-server.js')
const folder = tempFolder()
const running = new Set<ChildProcess>()
after(() => {
  for (const child of running) child.kill('SIGKILL')
  folder.remove()
})

interface Gateway {
  readonly url: string
  stop(signal?: NodeJS.Signals): Promise<void>
}

async function serve(name: string, state: string, limit: string): Promise<Gateway> {
  const config = join(folder.path, `${name}.yaml`)
  writeFileSync(
    config,
    `
listen: { port: 0 }
servers: { slow: { command: ${process.execPath}, args: [${SLOW}] } }
callers: [{ key: demo-viewer, user: viewer }]
policy: [{ allow: ['*'] }]
limits: ['${limit}']
state: ${state}
audit: { store: memory }
`,
  )
  const { PORT: _, ...env } = process.env
  const args = ['--conditions=toolgate-source', BIN, 'serve', '--config', config]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'ignore'], env: { ...env, NO_COLOR: '1' } })
  running.add(child)
  const [ready] = (await once(createInterface({ input: child.stdout }), 'line')) as [string]
  return {
    url: /http:\/\/\S+\/mcp/.exec(ready)?.[0] ?? '',
    async stop(signal = 'SIGTERM') {
      const ended = once(child, 'exit')
      child.kill(signal)
      await ended
      running.delete(child)
    },
  }
}

async function isAllowed(gateway: Gateway, i: number): Promise<boolean> {
  const { headers, body } = toMessage(ERAS[i % ERAS.length] ?? MODERN, 'tools/call', {
    name: 'slow__echo',
    arguments: {},
  })
  const answer = await send(gateway.url, {
    headers: { ...headers, authorization: 'Bearer demo-viewer' },
    body: JSON.stringify(body),
  })
  const { result } = answer.json() as RpcAnswer
  assert.ok(result, 'each call is answered')
  return result.isError !== true
}

async function allowedOf(gateways: readonly Gateway[], calls: number): Promise<number> {
  const asked = Array.from({ length: calls }, (_, i) => isAllowed(gateways[i % gateways.length] as Gateway, i >> 1))
  return (await Promise.all(asked)).filter(Boolean).length
}

describe('limits of gateways that share a state file', () => {
  const shared = `{ path: ${join(folder.path, 'shared.db')} }`

  it('allow 3 of 24 concurrent calls to two gateways under 3/3600', async () => {
    const gateways = await Promise.all(['one', 'two'].map((name) => serve(name, shared, 'slow:*:3/3600')))
    assert.equal(await allowedOf(gateways, 24), 3)
    await Promise.all(gateways.map((gateway) => gateway.stop()))
  })

  it('survive a restart: a used-up quota stays used up', async () => {
    const again = await serve('one', shared, 'slow:*:3/3600')
    assert.equal(await allowedOf([again], 2), 0)
    await again.stop()
  })

  it('survive a kill: every answered call is counted', async () => {
    const state = `{ path: ${join(folder.path, 'killed.db')} }`
    const first = await serve('killed', state, 'slow:*:3/86400')
    assert.equal(await allowedOf([first], 2), 2)
    await first.stop('SIGKILL')
    const second = await serve('killed', state, 'slow:*:3/86400')
    assert.equal(await allowedOf([second], 4), 1)
    await second.stop()
  })

  it('start again at a restart if the state is in memory', async () => {
    const first = await serve('memory', '{ store: memory }', 'slow:*:3/3600')
    assert.equal(await allowedOf([first], 4), 3)
    await first.stop()
    const second = await serve('memory', '{ store: memory }', 'slow:*:3/3600')
    assert.equal(await allowedOf([second], 4), 3)
    await second.stop()
  })
})
