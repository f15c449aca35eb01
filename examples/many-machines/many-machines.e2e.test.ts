import assert from 'node:assert/strict'
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { openRedisCounters } from '@toolgate/stores/redis'
import { withBinaries } from '../../tests/support/binaries.ts'
import { ownPostgres, ownRedis } from '../../tests/support/own-stores.ts'
import type { Order } from './process.ts'

const VERA = { user: 'vera' }
const COUNT = 8

interface Answered {
  readonly status: string
  readonly text: string
}

/** One process of the application. */
class Worker {
  readonly child: ChildProcess

  constructor(env: Readonly<Record<string, string>>) {
    const execArgv = ['--conditions=toolgate-source']
    this.child = fork(path.join(import.meta.dirname, 'process.ts'), { execArgv, env: { ...process.env, ...env } })
  }

  async answer(): Promise<unknown> {
    const [answer] = (await once(this.child, 'message')) as [{ value?: unknown; problem?: string }]
    if (answer.problem !== undefined) throw new Error(answer.problem)
    return answer.value
  }

  send(order: Order): Promise<unknown> {
    const answer = this.answer()
    this.child.send(order)
    return answer
  }

  call(tool: string, times = 1): Promise<readonly Answered[]> {
    return this.send({ does: 'call', caller: VERA, tool, times }) as Promise<readonly Answered[]>
  }

  async kill(): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return
    const ended = once(this.child, 'exit')
    this.child.kill('SIGKILL')
    await ended
  }
}

withBinaries(['postgres', 'initdb', 'redis-server'], ({ 'redis-server': server, ...paths }) => {
  describe('the example', () => {
    const postgres = ownPostgres(paths)
    const redis = ownRedis(server)
    let folder = ''
    const ledger = () =>
      existsSync(`${folder}/ledger`) ? readFileSync(`${folder}/ledger`, 'utf8').trim().split('\n') : []
    const done = (all: readonly Answered[]) => all.filter(({ status }) => status === 'done').length
    const envOf = (engine: 'Redis' | 'Postgres') => ({
      POSTGRES: postgres.url,
      LEDGER: `${folder}/ledger`,
      // A machine that is busy with other tests is slow, not silent.
      ...(engine === 'Redis' && { REDIS: redis.url, SILENCE_MS: '30000' }),
    })
    const running: Worker[] = []
    const open = async (engine: 'Redis' | 'Postgres', count: number): Promise<readonly Worker[]> => {
      const opened = Array.from({ length: count }, () => new Worker(envOf(engine)))
      running.push(...opened)
      await Promise.all(opened.map((worker) => worker.answer()))
      return opened
    }

    const pools = new Map<string, Promise<readonly Worker[]>>()
    const pool = (engine: 'Redis' | 'Postgres'): Promise<readonly Worker[]> => {
      const opened = pools.get(engine) ?? open(engine, COUNT)
      pools.set(engine, opened)
      return opened
    }

    before(async () => {
      folder = mkdtempSync(path.join(tmpdir(), 'toolgate-many-'))
      const counters = await openRedisCounters({ url: redis.url, silenceMs: 30_000 })
      await counters.reopen()
      counters.close()
    })
    after(async () => {
      await Promise.all(running.map((worker) => worker.kill()))
      rmSync(folder, { recursive: true, force: true })
    })

    for (const engine of ['Redis', 'Postgres'] as const)
      describe(`with limits in ${engine}`, () => {
        it(`lets exactly 100 calls of ${COUNT} processes through`, async () => {
          const workers = await pool(engine)
          const all = await Promise.all(workers.map((worker) => worker.call('mail', 40)))
          assert.equal(done(all.flat()), 100)
          for (const { status, text } of all.flat()) if (status !== 'done') assert.match(text, /rate limited/)
        })

        it('takes a limit once for a step that crashed after its call and is replayed in another process', async () => {
          const earlier = ledger().length
          const journal = path.join(folder, `journal-${engine}`)
          for (const n of [1, 2, 3, 4, 5]) {
            const [worker] = await open(engine, 1)
            const ended = worker && once(worker.child, 'exit')
            worker?.child.send({ does: 'workflow', id: 'w7', journal, crashesAt: `report ${n}` } satisfies Order)
            await ended
          }
          const [last] = await open(engine, 1)
          await last?.send({ does: 'workflow', id: 'w7', journal })
          assert.deepEqual(
            readFileSync(journal, 'utf8')
              .trim()
              .split('\n')
              .map((line) => JSON.parse(line) as unknown),
            [1, 2, 3, 4, 5].map((n) => [`report ${n}`, 'done']),
          )
          assert.equal(ledger().length - earlier, 10, 'each step has made its call twice')
          assert.equal(done((await last?.call('report')) ?? []), 0, 'five uses were left for five steps')
        })
      })

    describe('with both', () => {
      it(`runs what a person approved once, whichever of ${COUNT} processes are asked`, async () => {
        const workers = await pool('Redis')
        for (const worker of workers) assert.equal((await worker.call('pay'))[0]?.status, 'waiting')
        await workers[3]?.send({ does: 'approve', by: VERA })
        const all = await Promise.all(workers.map((worker) => worker.call('pay', 5)))
        assert.equal(ledger().filter((line) => line === 'pay 0').length, 1)
        assert.equal(done(all.flat()), 1)
      })

      it('starts nothing that was halted in another process, also in one that was frozen meanwhile', async () => {
        const [one, other, frozen] = await pool('Redis')
        assert.ok(one && other && frozen)
        assert.equal((await frozen.call('read'))[0]?.status, 'done')
        frozen.child.kill('SIGSTOP')
        await one.send({ does: 'halt', tool: 'read' })
        assert.match((await other.call('read'))[0]?.text ?? '', /it leaks|halted/)
        frozen.child.kill('SIGCONT')
        assert.notEqual((await frozen.call('read'))[0]?.status, 'done')
        await one.send({ does: 'release', tool: 'read' })
        for (;;) {
          if ((await frozen.call('read'))[0]?.status === 'done') break
          await sleep(20)
        }
      })

      it('starts no call in a process that cannot ask Postgres, and goes on when it can', async () => {
        const [worker] = await pool('Redis')
        assert.ok(worker)
        assert.equal((await worker.call('read'))[0]?.status, 'done')
        await postgres.server.end()
        let text = ''
        while (!/the rules cannot be confirmed/.test(text)) {
          ;[{ text }] = (await worker.call('read')) as [Answered]
          await sleep(20)
        }
        await postgres.server.restart()
        while ((await worker.call('read'))[0]?.status !== 'done') await sleep(20)
      })
    })
  })
})
