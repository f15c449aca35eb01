import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { describe, it } from 'node:test'
import { historyStoreContract } from '@toolgate/testing'
import { join } from 'node:path'
import { openScratchStores } from '../testing/open-scratch-stores.ts'
import { scratchFolder } from '../testing/scratch-folder.ts'

historyStoreContract('openSqliteStores', async (t, histories) => {
  const path = join(scratchFolder(t), 'state.db')
  const open = () => openScratchStores(t, { path, histories }).histories
  return { store: open(), beside: async () => open() }
})

describe('the sums of histories', () => {
  it('are those of the rows, whatever was made, changed, refused, ended or has expired', async (t) => {
    const path = join(scratchFolder(t), 'state.db')
    const { histories } = openScratchStores(t, { path, histories: { maxBytes: 12_000, maxBytesOfOwner: 6000 } })
    const db = new DatabaseSync(path, { readOnly: true })
    t.after(() => db.close())
    const wanted = 'SELECT owner, sum(bytes) AS bytes FROM histories GROUP BY owner ORDER BY owner'
    const kept =
      "SELECT substr(whose, 4) AS owner, bytes FROM history_sums WHERE whose NOT IN ('all', 'shadows') ORDER BY owner"
    const totals =
      "SELECT coalesce(sum(iif(shadow, bytes, 0)), 0) AS shadows, coalesce(sum(iif(shadow, 0, bytes)), 0) AS 'all' FROM histories"
    let [nowMs, refused] = [1000, 0]
    for (let i = 0; i < 300; i++) {
      const name = `run ${(i * 7) % 13}`
      const isShadow = ((i * 7) % 13) % 2 === 1
      const owner = `${isShadow ? 'shadow ' : ''}user ${((i * 7) % 13) % 3}`
      const times = { nowMs: (nowMs += 10), expiresAt: nowMs + 400 }
      const text = 'x'.repeat((i * 37) % 900)
      try {
        const since = await histories.open(name, { owner, ...(isShadow && { isShadow }), kept: [], ...times })
        const items = [{ kind: i % 3 === 0 ? ('untrusted' as const) : ('label' as const), text, atMs: nowMs }]
        await histories.add(name, { items, since, unlessChanged: i % 5 === 0, ...times })
      } catch (error) {
        assert.match(String(error), /no room/)
        refused++
      }
      if (i % 11 === 0) await histories.end(`run ${i % 13}`)
      assert.deepEqual(db.prepare(kept).all(), db.prepare(wanted).all())
      for (const [whose, bytes] of Object.entries(db.prepare(totals).get() ?? {}))
        assert.equal(
          db.prepare('SELECT bytes FROM history_sums WHERE whose = ?').get(whose)?.['bytes'] ?? 0,
          bytes,
          whose,
        )
    }
    assert.ok(refused > 0, 'nothing was refused')
  })
})
