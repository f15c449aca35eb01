import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { describe, it } from 'node:test'
import { binary, withBinaries } from './binaries.ts'
import { isAlive } from './processes.ts'
import { startOwnServer, startPostgres, startRedis } from './own-server.ts'

describe('withBinaries', () => {
  it('leaves tests out by name without a program, and fails in CI', () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'toolgate-binaries-'))
    const file = path.join(folder, 'some.test.ts')
    const support = JSON.stringify(path.join(import.meta.dirname, 'binaries.ts'))
    writeFileSync(file, `import { withBinaries } from ${support}\nwithBinaries(['no-such-program'], () => {})\n`)
    try {
      const run = (CI: string) => {
        const { NODE_TEST_CONTEXT: _, ...env } = process.env
        return spawnSync(process.execPath, ['--test-reporter=tap', file], { env: { ...env, CI }, encoding: 'utf8' })
      }
      const here = run('')
      assert.equal(here.status, 0)
      assert.match(here.stderr, /some\.test\.ts: tests left out, not on this machine: no-such-program/)
      const inCi = run('true')
      assert.equal(inCi.status, 1)
      assert.match(inCi.stdout, /not ok 1 - has the programs no-such-program/)
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  })

  it('finds programs outside of PATH', () => {
    assert.equal(binary('no-such-program'), undefined)
    assert.ok(binary('sh'))
  })
})

withBinaries(['redis-server', 'redis-cli'], ({ 'redis-server': redisServer, 'redis-cli': cli }) => {
  describe('startRedis', () => {
    it('starts an empty Redis, starts it again, and removes it', async () => {
      const redis = await startRedis(redisServer)
      const ask = (...args: readonly string[]) =>
        execFileSync(cli, ['-p', String(redis.port), ...args], { encoding: 'utf8' }).trim()
      assert.equal(ask('set', 'a', '1'), 'OK')
      await redis.restart()
      assert.equal(ask('get', 'a'), '')
      const pid = redis.child.pid as number
      await redis.stop()
      assert.equal(isAlive(pid), false)
      assert.equal(existsSync(redis.folder), false)
    })
  })
})

withBinaries(['postgres', 'initdb', 'psql'], ({ postgres, initdb, psql }) => {
  describe('startPostgres', () => {
    it('starts a Postgres that answers, and keeps its rows after a kill', async () => {
      const server = await startPostgres({ postgres, initdb })
      try {
        const ask = (sql: string) =>
          execFileSync(psql, ['-h', '127.0.0.1', '-p', String(server.port), '-U', 'postgres', '-Atc', sql], {
            encoding: 'utf8',
          }).trim()
        ask('create table t (a int)')
        ask('insert into t values (7)')
        const ended = new Promise((resolve) => server.child.once('exit', resolve))
        server.child.kill('SIGKILL')
        await ended
        await server.restart()
        assert.equal(ask('select a from t'), '7')
      } finally {
        await server.stop()
      }
    })
  })
})

describe('startOwnServer', () => {
  it('throws what a server printed that ends at once', async () => {
    const starting = startOwnServer({ command: 'sh', args: () => ['-c', 'echo no such option; exit 3'] })
    await assert.rejects(starting, /sh does not answer:\nno such option/)
    await assert.rejects(startOwnServer({ command: '/no/such/program', args: () => [] }), /ENOENT/)
  })
})
