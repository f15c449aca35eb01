import assert from 'node:assert/strict'
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, it } from 'node:test'
import type { ApprovalBinding } from '@toolgate/core/stores'
import { openScratchStores } from '../testing/open-scratch-stores.ts'
import { scratchFolder } from '../testing/scratch-folder.ts'
import { openSqliteStores } from './open-stores.ts'

const NOW = 1_700_000_000_000

function binding(user: string): ApprovalBinding {
  return { tenant: undefined, user, tool: 'pay', definitionHash: 'd', inputHash: 'i', run: undefined }
}

describe('the file of openSqliteStores', () => {
  it('may be read by its owner only, in a folder that need not exist', async (t) => {
    const path = join(scratchFolder(t), 'new', 'state.db')
    const { state } = openScratchStores(t, { path })
    await state.set('a', 1)
    for (const file of [path, `${path}-wal`]) assert.equal(statSync(file).mode & 0o777, 0o600, file)
  })

  it('keeps acknowledged writes when it is opened again', async (t) => {
    const path = join(scratchFolder(t), 'state.db')
    const first = openScratchStores(t, { path })
    const { id } = await first.approvals.request(binding('vera'), { amount: 1 }, NOW)
    await first.approvals.decide(id, { decision: 'approve', by: 'ada', reason: 'fine', atMs: NOW })
    await first.state.set('a', [1])
    await first.counters.take([{ key: 'k', max: 1, windowMs: 3_600_000 }])
    const lease = await first.lock.acquire('s')
    first.close()

    const again = openScratchStores(t, { path })
    const kept = await again.approvals.get(id, NOW)
    assert.deepEqual(
      [kept?.status, kept?.decidedBy, kept?.reason, kept?.input],
      ['approved', 'ada', 'fine', { amount: 1 }],
    )
    assert.equal(await again.approvals.consume(id, NOW), true)
    assert.deepEqual(await again.state.get('a'), [1])
    assert.equal((await again.counters.take([{ key: 'k', max: 1, windowMs: 3_600_000 }])).allowed, false)
    assert.ok((await again.lock.acquire('s')).fencingToken > lease.fencingToken)
  })

  const strangers: readonly (readonly [string, (path: string) => void, RegExp])[] = [
    ['no database', (path) => writeFileSync(path, 'hello '.repeat(1000)), /not a database/],
    [
      "somebody else's database",
      (path) => {
        const db = new DatabaseSync(path)
        db.exec('CREATE TABLE theirs (a)')
        db.close()
      },
      /it is not a state database/,
    ],
    [
      'one of a later version',
      (path) => {
        openSqliteStores({ path }).close()
        const db = new DatabaseSync(path)
        db.exec('PRAGMA user_version = 99')
        db.close()
      },
      /it has version 99, and this Toolgate knows \d: use the Toolgate that wrote it/,
    ],
  ]
  for (const [what, make, message] of strangers) {
    it(`is left as it is when it is ${what}`, (t) => {
      const path = join(scratchFolder(t), 'state.db')
      make(path)
      const before = readFileSync(path)
      assert.throws(() => openSqliteStores({ path }), { code: 'state_unavailable', message })
      assert.deepEqual(readFileSync(path), before)
    })
  }

  it('is refused where it cannot be one', (t) => {
    const folder = scratchFolder(t)
    writeFileSync(join(folder, 'file'), '')
    const unfit = {
      '/dev/full': 'it is not a file',
      [folder]: 'it is not a file',
      [join(folder, 'file/state.db')]: 'ENOTDIR|EEXIST',
    }
    for (const [path, why] of Object.entries(unfit))
      assert.throws(() => openSqliteStores({ path }), {
        code: 'state_unavailable',
        message: new RegExp(`${path} cannot be opened: (${why})`),
      })
    assert.equal(existsSync('/dev/full-journal'), false)
  })

  it('refuses writes without room, and keeps acknowledged ones', async (t) => {
    const path = join(scratchFolder(t), 'state.db')
    const full = openScratchStores(t, { path, maxPages: 60 })
    const { id } = await full.approvals.request(binding('vera'), {}, NOW)
    let acknowledged = 0
    await assert.rejects(
      async () => {
        for (;;) {
          await full.state.set(`k${acknowledged}`, 'x'.repeat(2000))
          acknowledged++
        }
      },
      { code: 'state_unavailable', message: 'The state cannot be read or written.', detail: /full/ },
    )
    assert.ok(acknowledged > 0)
    const big = { text: 'x'.repeat(100_000) }
    await assert.rejects(async () => full.approvals.request(binding('ada'), big, NOW), { code: 'state_unavailable' })
    assert.equal((await full.state.list('k')).length, acknowledged)
    full.close()

    const again = openScratchStores(t, { path })
    assert.equal((await again.state.list('k')).length, acknowledged)
    assert.equal((await again.approvals.get(id, NOW))?.status, 'pending')
    await again.approvals.request(binding('ada'), big, NOW)
  })

  it('waits for another process that writes, in the order of asking, without blocking', async (t) => {
    const path = join(scratchFolder(t), 'state.db')
    const { state } = openScratchStores(t, { path })
    const other = new DatabaseSync(path)
    t.after(() => other.close())
    other.exec('BEGIN IMMEDIATE')
    const writes = [1, 2, 3].map((value) => state.set('a', value))
    assert.ok(writes.every((write) => write instanceof Promise))
    assert.equal(await state.get('a'), undefined)
    other.exec('COMMIT')
    for (const write of writes) await write
    assert.equal(await state.get('a'), 3)
  })

  it('is unavailable when another process never ends its write', async (t) => {
    const path = join(scratchFolder(t), 'state.db')
    const { approvals, state } = openScratchStores(t, { path })
    const { id } = await approvals.request(binding('vera'), {}, NOW)
    await approvals.decide(id, { decision: 'approve', by: 'ada', atMs: NOW })
    const other = new DatabaseSync(path)
    t.after(() => other.close())
    other.exec('BEGIN IMMEDIATE')
    const consumed = approvals.consume(id, NOW)
    await assert.rejects(async () => consumed, { code: 'state_unavailable' })
    other.exec('COMMIT')
    assert.equal(await approvals.consume(id, NOW), true)
    assert.equal(await state.get('a'), undefined)
  })

  it('refuses everything once it is closed', async (t) => {
    const { approvals, counters, lock, state, close } = openScratchStores(t)
    close()
    close()
    const unavailable = { code: 'state_unavailable' }
    await assert.rejects(async () => state.get('a'), unavailable)
    await assert.rejects(async () => state.set('a', 1), unavailable)
    await assert.rejects(async () => approvals.consume('a', NOW), unavailable)
    await assert.rejects(async () => counters.take([{ key: 'a', max: 1, windowMs: 1 }]), unavailable)
    await assert.rejects(lock.acquire('a'), unavailable)
    assert.throws(() => state.subscribe(() => {}), unavailable)
  })
})
