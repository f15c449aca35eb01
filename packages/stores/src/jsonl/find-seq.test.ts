import assert from 'node:assert/strict'
import { closeSync, fstatSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { readSeq } from '@toolgate/core/audit'
import { auditEntry } from '@toolgate/testing'
import { openJsonlAudit } from '../jsonl.ts'
import { scratchFolder } from '../testing/scratch-folder.ts'
import { endBefore } from './find-seq.ts'

describe('endBefore', () => {
  it('is near each record, and never before it', async (t) => {
    const path = join(scratchFolder(t), 'audit.jsonl')
    const audit = openJsonlAudit({ path })
    for (let i = 0; i < 4000; i++)
      await audit.write(auditEntry({ tool_call_id: `c${i}`, detail: 'ä'.repeat((i * 37) % 900) }))
    await audit.close()
    const starts: number[] = []
    let at = 0
    for (const line of readFileSync(path, 'utf8').trimEnd().split('\n')) {
      starts[readSeq(line)] = at
      at += Buffer.byteLength(line) + 1
    }
    const fd = openSync(path, 'r')
    t.after(() => closeSync(fd))
    const { size } = fstatSync(fd)
    assert.ok(size > 2_000_000)
    for (let seq = 1; seq < starts.length; seq += 7) {
      const found = endBefore(fd, size, seq)
      const start = starts[seq] ?? 0
      assert.ok(found >= start && found - start <= 256 * 1024, `${seq}: ${found - start} bytes after it`)
    }
    assert.equal(endBefore(fd, size, starts.length + 10), size)
  })

  it('lets a page that is far from the end be read like the first, whatever its number', async (t) => {
    const path = join(scratchFolder(t), 'audit.jsonl')
    const audit = openJsonlAudit({ path, rotate: { bytes: 300_000 } })
    for (let i = 0; i < 4000; i++) {
      await audit.write(auditEntry({ tool_call_id: `c${i}`, tool: i % 1000 === 0 ? 'rare:one' : 'files:read_file' }))
      if (i % 500 === 0) await audit.flush()
    }
    const seqs: number[] = []
    for (let beforeSeq: number | undefined; ;) {
      const page = await audit.query({ limit: 333, ...(beforeSeq !== undefined && { beforeSeq }) })
      seqs.push(...page.map(({ seq }) => seq))
      if (page.length < 333) break
      beforeSeq = page.at(-1)?.seq
    }
    assert.deepEqual(
      seqs,
      Array.from({ length: seqs[0] ?? 0 }, (_, i) => (seqs[0] ?? 0) - i),
    )
    const found = await audit.query({ tool: 'rare:one', beforeSeq: 2000 })
    await audit.close()
    assert.deepEqual(
      found.map(({ tool_call_id: id }) => id),
      ['c1000', 'c0'],
    )
  })
})
