import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { auditEntry } from '@toolgate/testing'
import { openJsonlAudit } from './jsonl.ts'
import { openSqliteStores } from './state/open-stores.ts'

function fileOf(t: TestContext): string {
  const folder = mkdtempSync(path.join(tmpdir(), 'toolgate-full-'))
  t.after(() => rmSync(folder, { recursive: true }))
  return path.join(folder, 'store')
}

describe('a full disk', () => {
  it('is found by a check of the state, which leaves nothing, and so is room again', async (t) => {
    const stores = openSqliteStores({ path: fileOf(t), maxPages: 64 })
    t.after(() => stores.close())
    stores.checkWritable()
    const before = await stores.state.list('')
    const kept: string[] = []
    await assert.rejects(async () => {
      for (let n = 0; n < 100; n++) {
        await stores.state.set(`k${n}`, 'x'.repeat(4096))
        kept.push(`k${n}`)
      }
    })
    assert.throws(() => stores.checkWritable(), { code: 'state_unavailable' })
    for (const key of kept.slice(0, 8)) await stores.state.take(key)
    stores.checkWritable()
    for (const key of kept.slice(8)) await stores.state.take(key)
    assert.deepEqual(await stores.state.list(''), before)
  })

  for (const mode of ['batched', 'required'] as const)
    it(`is the problem of an audit whose last write it refused: ${mode}`, async (t) => {
      const file = fileOf(t)
      symlinkSync('/dev/full', file)
      let nowMs = Date.now()
      const audit = openJsonlAudit({ path: file, mode, checkpoints: false, nowMs: () => nowMs })
      t.after(() => audit.close().catch(() => {}))
      await Promise.resolve(audit.write(auditEntry())).catch(() => {})
      await audit.flush().catch(() => {})
      assert.deepEqual(audit.problem, {
        code: 'disk',
        message: 'the audit cannot be written: ENOSPC: no space left on device, write',
      })
      nowMs += 60_000
      assert.equal(audit.problem, undefined)
    })
})
