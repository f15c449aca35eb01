import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import path from 'node:path'
import { text as readText } from 'node:stream/consumers'
import { describe, it } from 'node:test'
import { withBinaries } from '../tests/support/binaries.ts'
import { until } from '../tests/support/gateway.ts'
import { descendantsOf, isAlive } from '../tests/support/processes.ts'

const ARGS = ['--conditions=toolgate-source', path.join(import.meta.dirname, 'replicas.ts')]

function start(args: readonly string[] = [], env: NodeJS.ProcessEnv = process.env) {
  return spawn(process.execPath, [...ARGS, ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] })
}

describe('npm run replicas', () => {
  it('names the programs that are missing, with their packages, and starts nothing', async () => {
    const child = start([], { PATH: '' })
    const [err, [code]] = await Promise.all([readText(child.stderr), once(child, 'exit')])
    assert.equal(code, 2)
    assert.match(err, /^replicas: not on this machine: .*redis-server.*\. On Debian: apt-get install .*redis-server/)
  })
})

withBinaries(['postgres', 'initdb', 'redis-server', 'haproxy'], () => {
  describe('npm run replicas, on this machine', () => {
    it('sees every promise hold while parts are killed and paused', { timeout: 300_000 }, async () => {
      const child = start(['--patience', '30'])
      const [out, err, [code]] = await Promise.all([
        readText(child.stdout),
        readText(child.stderr),
        once(child, 'exit'),
      ])
      assert.equal(code, 0, out + err)
      assert.match(out, /^14 of 14 promises held, in \d+ s$/m)
    })

    it('leaves nothing behind when it is interrupted', async (t) => {
      const child = start()
      t.after(() => child.kill('SIGKILL'))
      let printed = ''
      child.stdout.on('data', (chunk: Buffer) => (printed += chunk.toString()))
      await until(() => printed.includes('✔') || child.exitCode !== null)
      const started = descendantsOf(child.pid ?? 0)
      assert.ok(started.length >= 6, `${started.length} processes`)
      child.kill('SIGINT')
      const [code] = await once(child, 'exit')
      assert.equal(code, 130)
      await until(() => !started.some(isAlive))
    })
  })
})
