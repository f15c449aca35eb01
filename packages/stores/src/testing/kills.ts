import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { type AuditRecord, TERMINAL_EVENTS } from '@toolgate/core/audit'
import { verifyAudit } from '../verify.ts'
import { type Format, openAny } from './open-any.ts'
import { readAll } from './read-all.ts'
import { runWriter } from './run-writer.ts'
import { scratchFolder } from './scratch-folder.ts'

/** Repeatedly kills a process that records calls, and checks the audit. */
export async function surviveKills(t: TestContext, format: Format, kills: number): Promise<void> {
  const path = join(scratchFolder(t), 'audit')
  const acknowledged: string[] = []
  for (let run = 0; run < kills; run++) {
    const mode = run % 2 === 0 ? 'batched' : 'required'
    const killAfter = randomInt(1, 200)
    const result = await runWriter({ format, mode, path, name: `run${run}`, count: 1_000_000, killAfter })
    assert.equal(result.end, undefined, 'it was killed while it wrote')
    assert.ok(result.acknowledged.length > 0)
    acknowledged.push(...result.acknowledged)
  }
  const audit = openAny(format, { path })
  t.after(() => audit.close())
  checkRecords(await readAll(audit), acknowledged)
  await audit.close()
  const verdict = await verifyAudit({ path })
  assert.deepEqual([verdict.findings, verdict.checkpoints.lastSeq], [[], verdict.lastSeq])
}

/** Checks that the records are numbered and contain every acknowledged call, each with one beginning and one end. */
export function checkRecords(records: readonly AuditRecord[], acknowledged: readonly string[]): void {
  assert.ok(records.every((record, i) => record.seq === i + 1))
  const begun = new Set<string | undefined>()
  const ended = new Set<string | undefined>()
  for (const { event, tool_call_id: id } of records) {
    if (event === 'tool_call') {
      assert.ok(!begun.has(id), `${id} begins twice`)
      begun.add(id)
    }
    if (!TERMINAL_EVENTS.has(event)) continue
    assert.ok(begun.has(id), `${id} ends before it began`)
    assert.ok(!ended.has(id), `${id} ends twice`)
    ended.add(id)
  }
  assert.deepEqual(
    acknowledged.filter((id) => !begun.has(id)),
    [],
  )
  assert.deepEqual(
    [...begun].filter((id) => !ended.has(id)),
    [],
  )
}
