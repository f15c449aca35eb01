import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { ConfigError } from '@toolgate/core'
import { withBinaries } from '../../../../tests/support/binaries.ts'
import { freePort, startRedis } from '../../../../tests/support/own-server.ts'
import { openRedisCounters } from './counters.ts'

/** What openRedisCounters says of a URL. It never contains the password. */
async function problemOf(url: string, options = {}): Promise<string> {
  const error = await openRedisCounters({ url, ...options }).then(
    () => assert.fail('it was opened'),
    (reason: unknown) => reason,
  )
  assert.ok(error instanceof ConfigError)
  assert.doesNotMatch(JSON.stringify([error.message, error.detail, String(error.cause), error.stack]), /s3cret/)
  return error.message
}

describe('openRedisCounters', () => {
  it('refuses what is no URL of a Redis', async () => {
    for (const url of ['', 'localhost:6379', 'http://localhost', 5 as unknown as string])
      assert.equal(await problemOf(url), 'openRedisCounters.url: must be a URL such as redis://user:password@host:6379')
  })

  it('says where nothing listens, without the password', async () => {
    const port = await freePort()
    assert.equal(
      await problemOf(`redis://vera:s3cret@127.0.0.1:${port}/0`),
      `openRedisCounters.url: redis://vera@127.0.0.1:${port}/0: nothing listens there`,
    )
    assert.match(await problemOf('redis://:s3cret@no-such-host.invalid'), /: the host is unknown$/)
  })
})

withBinaries(['redis-server'], ({ 'redis-server': command }) => {
  const start = async (t: TestContext, ...args: readonly string[]) => {
    const server = await startRedis(command, args)
    t.after(() => server.stop())
    return { server, url: `redis://:s3cret@127.0.0.1:${server.port}` }
  }

  describe('openRedisCounters refuses at the start', () => {
    it('a wrong password', async (t) => {
      const { server } = await start(t, '--requirepass', 'another')
      for (const login of [':s3cret@', 'vera:s3cret@', ''])
        assert.match(await problemOf(`redis://${login}127.0.0.1:${server.port}`), /: the password is wrong$/)
    })

    it('a server that takes the connection and says nothing', async (t) => {
      const { server, url } = await start(t)
      server.child.kill('SIGSTOP')
      assert.match(await problemOf(url), /: no answer for 10 s$/)
    })

    const cases: readonly (readonly [string, readonly string[], RegExp])[] = [
      ['a server that evicts keys', ['--maxmemory-policy', 'allkeys-lru'], /maxmemory-policy is allkeys-lru/],
      ['a cluster', ['--cluster-enabled', 'yes'], /it is a cluster.*needs one Redis/],
      ['a replica', ['--replicaof', '127.0.0.1 1'], /it is a read-only replica; name the primary/],
      ['a server that keeps snapshots only', ['--save', '3600 1'], /it keeps snapshots only/],
      [
        'a server that evicts keys and whose settings may not be read',
        ['--rename-command', 'CONFIG', '', '--maxmemory-policy', 'volatile-lru'],
        /maxmemory-policy is volatile-lru/,
      ],
    ]
    for (const [what, args, problem] of cases)
      it(what, async (t) => {
        const { url } = await start(t, '--requirepass', 's3cret', ...args)
        assert.match(await problemOf(url), problem)
      })
  })

  describe('openRedisCounters opens', () => {
    for (const [what, args, options] of [
      ['one that appends each write to a file', ['--save', '3600 1', '--appendonly', 'yes'], {}],
      ['one whose settings may not be read, and that evicts nothing', ['--rename-command', 'CONFIG', ''], {}],
      ['one that is stated to be safe', ['--maxmemory-policy', 'allkeys-lru'], { statedSafe: true }],
    ] as const)
      it(what, async (t) => {
        const { url } = await start(t, '--requirepass', 's3cret', ...args)
        const counters = await openRedisCounters({ url, silenceMs: 30_000, ...options })
        t.after(() => counters.close())
        await counters.reopen()
        assert.equal((await counters.take([{ key: 'a', max: 1, windowMs: 1000 }])).allowed, true)
      })
  })
})
