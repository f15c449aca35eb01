import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { openSqliteStores } from './open-stores.ts'
import { killStores } from '../testing/kill-stores.ts'
import { runStoresWorker } from '../testing/run-stores-worker.ts'
import { scratchFolder } from '../testing/scratch-folder.ts'

describe('openSqliteStores in many processes', () => {
  it('loses nothing acknowledged and lets no approval be used twice in 10 kills', async (t) => killStores(t, 10))

  it('counts, uses, adds, takes and takes turns exactly, over 8 processes at once', async (t) => {
    const path = join(scratchFolder(t), 'state.db')
    const { approvals, grants, state, close } = openSqliteStores({ path })
    t.after(close)
    const bound = { tenant: undefined, user: 'vera', tool: 't', definitionHash: 'd', run: undefined, clauses: [] }
    const life = { uses: 70, grantedBy: 'ada', grantedAt: Date.now(), expiresAt: Date.now() + 3_600_000 }
    await grants.create({ ...bound, ...life, id: 'grant', covers: 'tool' }, Date.now())
    const ids: string[] = []
    for (let i = 0; i < 30; i++) {
      const binding = { tenant: undefined, user: 'vera', tool: 't', definitionHash: 'd', inputHash: `${i}`, run: '' }
      const { id } = await approvals.request(binding, {}, Date.now())
      ids.push((await approvals.decide(id, { decision: 'approve', by: 'ada', atMs: Date.now() })).id)
      await state.set(`gift-${i}`, i)
    }
    const names = Array.from({ length: 8 }, (_, i) => `p${i}`)
    const results = await Promise.all(names.map(async (name) => runStoresWorker({ job: 'compete', path, name })))
    const all = (word: string): readonly string[] => results.flatMap((result) => result.said(word)).toSorted()

    assert.equal(all('end').length, 8, 'each came to its end')
    assert.equal(all('wide').length, 100)
    const times = all('fast')
      .map(Number)
      .toSorted((a, b) => a - b)
    assert.ok(times.length >= 3 && times.every((time, i) => i < 3 || time >= (times[i - 3] as number) + 40))
    assert.deepEqual(all('consumed'), ids.toSorted())
    assert.equal(all('granted').length, 70, 'the grant is used as often as it says')
    const numbered = (word: string): readonly string[] => ids.map((_, i) => `${word}-${i}`).toSorted()
    assert.deepEqual(all('added'), numbered('slot'))
    assert.deepEqual(all('taken'), numbered('gift'))

    const turns = readFileSync(`${path}.turns`, 'utf8').trim().split('\n')
    assert.equal(turns.length, 8 * 5 * 2)
    const tokens = turns.filter((_, i) => i % 2 === 0).map((line) => Number(line.slice('in '.length)))
    assert.deepEqual(
      turns,
      tokens.flatMap((token) => [`in ${token}`, `out ${token}`]),
      'nobody came in before the one inside was out',
    )
    assert.ok(tokens.every((token, i) => i === 0 || token > (tokens[i - 1] as number)))
  })

  it('gives the turn of a process that was killed to another, with a greater fencing token', async (t) => {
    const path = join(scratchFolder(t), 'state.db')
    const killed = await runStoresWorker({ job: 'hold-lock', path, killAfter: 1 })
    const { lock, close } = openSqliteStores({ path })
    t.after(close)
    const lease = await lock.acquire('shared', { deadlineMs: 30_000 })
    assert.ok(lease.fencingToken > Number(killed.said('token')[0]))
    await lease.release()
  })

  it('notifies a listener of changes by another process', async (t) => {
    const path = join(scratchFolder(t), 'state.db')
    const { state, close } = openSqliteStores({ path })
    t.after(close)
    const { promise, resolve } = Promise.withResolvers<unknown>()
    t.after(state.subscribe(() => resolve(state.get('news'))))
    await runStoresWorker({ job: 'set', path, name: 'news' })
    assert.equal(await promise, 'from another process')
  })

  it('keeps no process alive that only listens', async (t) => {
    const path = join(scratchFolder(t), 'state.db')
    const { code, said } = await runStoresWorker({ job: 'listen', path })
    assert.deepEqual([code, said('listening')], [0, ['']])
  })
})
