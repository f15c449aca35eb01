import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { checkRecords, surviveKills } from './testing/kills.ts'
import { FORMATS, openAny } from './testing/open-any.ts'
import { readAll } from './testing/read-all.ts'
import { runWriter } from './testing/run-writer.ts'
import { scratchFolder } from './testing/scratch-folder.ts'
import { verifyAudit } from './verify.ts'

const MODES = ['batched', 'required'] as const

for (const format of FORMATS) {
  describe(`durability of ${format}`, () => {
    it('loses and tears nothing it acknowledged in 10 kills, and each call has its beginning and one end', async (t) => {
      await surviveKills(t, format, 10)
    })

    for (const mode of MODES) {
      it(`refuses, and keeps what it acknowledged, when the disk is full (${mode})`, async (t) => {
        const path = join(scratchFolder(t), 'audit')
        const { acknowledged, end } = await runWriter({ format, mode, path, name: 'full', count: 1e6, fileBlocks: 400 })
        assert.equal(end, 'audit_unavailable')
        assert.ok(acknowledged.length > 0)
        const audit = openAny(format, { path })
        t.after(() => audit.close())
        checkRecords(await readAll(audit), acknowledged)
        await audit.close()
        assert.deepEqual((await verifyAudit({ path })).findings, [])
      })
    }
  })
}

describe('openSqliteAudit in two processes', () => {
  it('numbers the records of both without a gap', async (t) => {
    const path = join(scratchFolder(t), 'audit.db')
    const runs = MODES.map(async (mode) => runWriter({ format: 'sqlite', mode, path, name: mode, count: 600 }))
    const results = await Promise.all(runs)
    assert.deepEqual(
      results.map(({ end, acknowledged }) => [end, acknowledged.length]),
      [
        ['well', 600],
        ['well', 600],
      ],
    )
    const audit = openAny('sqlite', { path, readOnly: true })
    t.after(() => audit.close())
    checkRecords(
      await readAll(audit),
      results.flatMap(({ acknowledged }) => acknowledged),
    )
    const verdict = await verifyAudit({ path })
    assert.deepEqual([verdict.findings, verdict.records], [[], 2 * (1200 + 2)])
    assert.equal(verdict.checkpoints.lastSeq, verdict.lastSeq)
  })
})

describe('a disk that fails for jsonl', () => {
  it('leaves no part of a record in the file', async (t) => {
    const path = join(scratchFolder(t), 'audit.jsonl')
    await runWriter({ format: 'jsonl', mode: 'required', path, name: 'full', count: 1e6, fileBlocks: 64 })
    assert.equal(readFileSync(path, 'utf8').at(-1), '\n')
    assert.equal(existsSync(`${path}.torn-1`), false)
  })
})
