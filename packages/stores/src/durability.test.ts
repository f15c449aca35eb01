import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { FORMATS, openAny } from './testing/open-any.ts'
import { readAll } from './testing/read-all.ts'
import { runWriter } from './testing/run-writer.ts'
import { scratchFolder } from './testing/scratch-folder.ts'

const MODES = ['batched', 'required'] as const

for (const format of FORMATS) {
  describe(`durability of ${format}`, () => {
    it('loses and tears no acknowledged record in 20 kills, and counts on after each', async (t) => {
      const path = join(scratchFolder(t), 'audit')
      const acknowledged: string[] = []
      for (let run = 0; run < 20; run++) {
        const result = await runWriter({
          format,
          mode: MODES[run % 2] ?? 'batched',
          path,
          name: `run${run}`,
          count: 1_000_000,
          killAfterMs: Math.random() * 40,
        })
        assert.equal(result.end, undefined, 'it was killed while it wrote')
        assert.ok(result.acknowledged.length > 0)
        acknowledged.push(...result.acknowledged)
      }
      const audit = openAny(format, { path })
      t.after(() => audit.close())
      const records = await readAll(audit)
      const written = new Set(records.map((record) => record.tool_call_id))
      assert.deepEqual(
        acknowledged.filter((id) => !written.has(id)),
        [],
      )
      assert.equal(written.size, records.length)
      assert.ok(records.every((record, i) => record.seq === i + 1))
    })

    for (const mode of MODES) {
      it(`refuses, and keeps what it acknowledged, when the disk is full (${mode})`, async (t) => {
        const path = join(scratchFolder(t), 'audit')
        const { acknowledged, end } = await runWriter({ format, mode, path, name: 'full', count: 1e6, fileBlocks: 400 })
        assert.equal(end, 'audit_unavailable')
        assert.ok(acknowledged.length > 0)
        const audit = openAny(format, { path })
        t.after(() => audit.close())
        const records = await readAll(audit)
        const written = new Set(records.map((record) => record.tool_call_id))
        assert.deepEqual(
          acknowledged.filter((id) => !written.has(id)),
          [],
        )
        assert.ok(records.every((record, i) => record.seq === i + 1))
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
    const records = await readAll(audit)
    assert.deepEqual(
      records.map((record) => record.seq),
      Array.from({ length: 1200 }, (_, i) => i + 1),
    )
    assert.equal(new Set(records.map((record) => record.tool_call_id)).size, 1200)
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
