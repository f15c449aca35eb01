import assert from 'node:assert/strict'
import { appendFileSync, existsSync, readFileSync, statSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { canonicalize } from '@toolgate/values/json'
import { auditEntry, auditSinkContract } from '@toolgate/testing'
import { checkpointsPath } from './evidence.ts'
import { openJsonlAudit } from './jsonl.ts'
import { readAll, readCallIds } from './testing/read-all.ts'
import { scratchFolder } from './testing/scratch-folder.ts'
import { verifyAudit } from './verify.ts'

for (const mode of ['batched', 'required'] as const) {
  auditSinkContract(`openJsonlAudit, ${mode}`, async (t) => {
    const path = join(scratchFolder(t), 'audit.jsonl')
    return { sink: openJsonlAudit({ path, mode }), reopen: async () => openJsonlAudit({ path, mode }) }
  })
}

async function withRecords(t: TestContext, count: number): Promise<string> {
  const path = join(scratchFolder(t), 'audit.jsonl')
  const audit = openJsonlAudit({ path })
  for (let i = 1; i <= count; i++) await audit.write(auditEntry({ event: 'tool_result', tool_call_id: `c${i}` }))
  await audit.close()
  return path
}

describe('openJsonlAudit', () => {
  for (const signed of [0, 3])
    it(`signs a long backlog after ${signed} signed records in parts that leave turns to calls`, async (t) => {
      const path = signed > 0 ? await withRecords(t, signed) : join(scratchFolder(t), 'audit.jsonl')
      const unsigned = openJsonlAudit({ path, checkpoints: false })
      for (let i = 0; i < 20_000; i++) await unsigned.write(auditEntry({ event: 'tool_result', wallMs: i }))
      await unsigned.close()
      const audit = openJsonlAudit({ path, mode: 'required', checkpoints: { everyRecords: 1 } })
      await audit.write(auditEntry())
      let turns = 0
      // Records that come meanwhile belong to the next checkpoint.
      const meanwhile: unknown[] = []
      while ((audit.evidence().checkpoints?.signedSeq ?? 0) < 20_000) {
        meanwhile.push(audit.write(auditEntry({ tool_call_id: `meanwhile-${turns}` })))
        await new Promise((resolve) => setImmediate(resolve))
        turns++
      }
      await Promise.all(meanwhile)
      await audit.close()
      assert.ok(turns >= 6, `${turns} turns`)
      const { status, checkpoints, lastSeq } = await verifyAudit({ path, mustBeSigned: true })
      assert.deepEqual([status, checkpoints.lastSeq], ['ok', lastSeq])
      assert.ok(lastSeq > 20_000)
      const counts = [...readFileSync(checkpointsPath(path), 'utf8').matchAll(/\\"count\\":(\d+)/g)].map(([, n]) =>
        Number(n),
      )
      const total = counts.reduce((sum, count) => sum + count, 0)
      assert.equal(total, lastSeq)
    })

  for (const mode of ['batched', 'required'] as const)
    it(`returns functions that work without their object and in a copy of it, ${mode}`, async (t) => {
      const path = join(scratchFolder(t), 'audit.jsonl')
      const audit = openJsonlAudit({ path, mode })
      const { write, flush, query } = audit
      await write(auditEntry({ tool_call_id: 'c1' }))
      await flush()
      assert.equal((await query({ call: 'c1' })).length, 1)
      const copy = { ...audit }
      await copy.write(auditEntry({ tool_call_id: 'c2' }))
      await copy.close()
      const reader = openJsonlAudit({ path, readOnly: true })
      const events = (await reader.query({ call: 'c2' })).map(({ event }) => event)
      assert.deepEqual(events, ['tool_abandoned', 'tool_call'])
      await reader.close()
    })

  it('writes one record a line, in its RFC 8785 form, in a file that only its owner may read', async (t) => {
    const path = join(scratchFolder(t), 'new', 'audit.jsonl')
    const audit = openJsonlAudit({ path })
    await audit.write(auditEntry({ error: 'a\nb\u2028🙂', duration_ms: 0.1 }))
    await audit.write(auditEntry({ event: 'tool_result' }))
    await audit.close()
    const lines = readFileSync(path, 'utf8').split('\n')
    assert.equal(lines.pop(), '')
    assert.equal(lines.length, 4, 'two, its opening and its closing')
    for (const line of lines) assert.equal(line, canonicalize(JSON.parse(line)))
    assert.equal(statSync(path).mode & 0o777, 0o600)
  })

  it('cuts off an incomplete record, keeps it in a file, and continues the numbers', async (t) => {
    const path = await withRecords(t, 3)
    for (const n of [1, 2]) {
      appendFileSync(path, '{"catalog_revision":1,"ev')
      const audit = openJsonlAudit({ path })
      await audit.write(auditEntry({ event: 'tool_result', tool_call_id: `after-${n}` }))
      await audit.close()
      assert.equal(readFileSync(`${path}.torn-${n}`, 'utf8'), '{"catalog_revision":1,"ev')
    }
    const audit = openJsonlAudit({ path, readOnly: true })
    t.after(() => audit.close())
    assert.deepEqual(await readCallIds(audit), ['c1', 'c2', 'c3', 'after-1', 'after-2'])
    const records = await readAll(audit)
    assert.ok(records.every(({ seq }, i) => seq === i + 1))
  })

  it('finds the end of the last whole record, wherever the file was cut', async (t) => {
    const whole = readFileSync(await withRecords(t, 3))
    const ends = [...whole.entries()].filter(([, byte]) => byte === 0x0a).map(([at]) => at + 1)
    const cutAt = async (size: number): Promise<void> => {
      const path = join(scratchFolder(t), 'audit.jsonl')
      writeFileSync(path, whole.subarray(0, size))
      const audit = openJsonlAudit({ path, checkpoints: false })
      const expected = ends.filter((end) => end <= size).length
      assert.equal((await readAll(audit)).length, expected + 1, `cut at ${size}`)
      await audit.close()
      assert.equal(JSON.parse(readFileSync(path, 'utf8').trimEnd().split('\n').at(-1) ?? '').seq, expected + 2)
      assert.equal(existsSync(`${path}.torn-1`), size > 0 && !ends.includes(size))
    }
    const sizes = Array.from({ length: whole.length + 1 }, (_, size) => size)
    // Most of it is waiting for the disk.
    for (let at = 0; at < sizes.length; at += 50) await Promise.all(sizes.slice(at, at + 50).map(cutAt))
  })

  it('puts a tail aside that the machine left full of zeros', async (t) => {
    const path = await withRecords(t, 2)
    appendFileSync(path, Buffer.alloc(100_000))
    appendFileSync(path, '\n')
    const audit = openJsonlAudit({ path })
    t.after(() => audit.close())
    assert.deepEqual(await readCallIds(audit), ['c1', 'c2'])
    assert.equal(statSync(`${path}.torn-1`).size, 100_001)
  })

  it('reads lines of any length, across the chunks that it reads', async (t) => {
    const path = join(scratchFolder(t), 'audit.jsonl')
    const audit = openJsonlAudit({ path })
    t.after(() => audit.close())
    const texts = Array.from({ length: 600 }, (_, i) => 'ä🙂'.repeat((i * 37) % 300))
    for (const detail of texts) await audit.write(auditEntry({ detail }))
    const records = await readAll(audit)
    assert.deepEqual(
      records.slice(1).map((record) => record.detail),
      texts,
    )
  })

  it('skips a damaged line', async (t) => {
    const path = await withRecords(t, 3)
    const lines = readFileSync(path, 'utf8').split('\n')
    writeFileSync(path, lines.with(2, 'not a record').join('\n'))
    const audit = openJsonlAudit({ path })
    t.after(() => audit.close())
    assert.deepEqual(await readCallIds(audit), ['c1', 'c3'])
  })

  it('has one writer: a second is refused until the first is closed, and readers are not', async (t) => {
    const path = join(scratchFolder(t), 'audit.jsonl')
    const first = openJsonlAudit({ path })
    await first.write(auditEntry())
    await first.flush()
    assert.throws(() => openJsonlAudit({ path }), {
      code: 'audit_unavailable',
      message: /another process writes to it/,
    })
    const reader = openJsonlAudit({ path, readOnly: true })
    assert.deepEqual(await readCallIds(reader), ['call-1'])
    await assert.rejects(async () => reader.write(auditEntry()), { code: 'audit_unavailable' })
    await reader.close()
    await first.close()
    await openJsonlAudit({ path }).close()
  })

  it('lets a reader see only whole records', async (t) => {
    const path = await withRecords(t, 2)
    truncateSync(path, statSync(path).size - 5)
    const reader = openJsonlAudit({ path, readOnly: true })
    t.after(() => reader.close())
    assert.deepEqual(
      (await reader.query({})).map((record) => record.seq),
      [3, 2, 1],
    )
    assert.equal(existsSync(`${path}.torn-1`), false)
  })

  it('refuses a file that is something else, and leaves it as it was', (t) => {
    const path = join(scratchFolder(t), 'package.json')
    for (const text of ['{"name":"mine"}', '{"name":"mine"}\n', 'notes\n', '\0\0\0']) {
      writeFileSync(path, text)
      assert.throws(() => openJsonlAudit({ path }), { code: 'audit_unavailable', message: /not an audit file/ })
      assert.equal(readFileSync(path, 'utf8'), text)
    }
  })

  it('says which file it cannot open, and does not keep its lock', (t) => {
    const folder = scratchFolder(t)
    for (let i = 0; i < 2; i++)
      assert.throws(() => openJsonlAudit({ path: folder }), { code: 'audit_unavailable', message: /directory/ })
    assert.throws(() => openJsonlAudit({ path: join(folder, 'missing'), readOnly: true }), { message: /missing/ })
  })
})

describe('openJsonlAudit on a full disk', () => {
  function fullDisk(t: TestContext): string {
    const path = join(scratchFolder(t), 'audit.jsonl')
    symlinkSync('/dev/full', path)
    return path
  }

  it('rejects a required write', async (t) => {
    const audit = openJsonlAudit({ path: fullDisk(t), mode: 'required' })
    t.after(() => audit.close())
    for (let i = 1; i <= 3; i++) {
      await assert.rejects(async () => audit.write(auditEntry()), { code: 'audit_unavailable', detail: /ENOSPC/ })
      assert.equal(audit.droppedCount, i)
    }
  })

  it('keeps batched entries up to a number, and then refuses and counts them', async (t) => {
    const audit = openJsonlAudit({ path: fullDisk(t), maxWaiting: 250 })
    for (let i = 0; i < 250; i++) await audit.write(auditEntry())
    for (let i = 0; i < 3; i++)
      await assert.rejects(async () => audit.write(auditEntry()), { code: 'audit_unavailable', detail: /ENOSPC/ })
    assert.equal(audit.droppedCount, 3)
    await assert.rejects(audit.flush(), { code: 'audit_unavailable' })
    await assert.rejects(audit.close(), { code: 'audit_unavailable' })
    assert.equal(audit.droppedCount, 253)
  })
})
