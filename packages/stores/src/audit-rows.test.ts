import assert from 'node:assert/strict'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, it, type TestContext } from 'node:test'
import {
  type AuditCountQuery,
  type AuditExportQuery,
  type AuditRecord,
  checkAuditQuery,
  createOutcomeTally,
  matchesAuditQuery,
  outcomeOfRecord,
} from '@toolgate/core/audit'
import { auditEntry } from '@toolgate/testing'
import { AUDIT_OUTCOMES } from '@toolgate/core/words'
import fc from 'fast-check'
import { type AuditRows, countIn, exportRows, newestOf, rowsIn } from './audit-rows.ts'
import { openSqliteAudit } from './sqlite.ts'
import { scratchFolder } from './testing/scratch-folder.ts'

const RECORDS = 230
const START = Date.UTC(2026, 10, 23)
const NAMES = ['a', 'b', 'say "hi"', 'run_id":"a'] as const

const filters = fc.record(
  {
    tool: fc.constantFrom('files:read', 'files:write', 'files:none'),
    user: fc.constantFrom(...NAMES),
    tenant: fc.constantFrom(...NAMES),
    run: fc.constantFrom(...NAMES),
    call: fc.nat(RECORDS).map((i) => `call-${i}`),
    outcome: fc.constantFrom(...AUDIT_OUTCOMES),
    since: fc.integer({ min: 0, max: 400 }).map((i) => START + i * 1000),
    until: fc.integer({ min: 0, max: 400 }).map((i) => START + i * 1000),
    beforeSeq: fc.integer({ min: 1, max: RECORDS + 20 }),
    afterSeq: fc.integer({ min: 0, max: RECORDS + 20 }),
  },
  { requiredKeys: [] },
)

describe('the rows of an audit, read part by part', () => {
  it('are the newest that match, whatever the size of a part', async (t) => {
    const { rows, all } = await written(t)
    await fc.assert(
      fc.asyncProperty(
        filters,
        fc.integer({ min: 1, max: 60 }),
        fc.integer({ min: 1, max: 90 }),
        async (query, limit, size) => {
          const found = await newestOf(rows, { ...query, limit }, size)
          const expected = matching(all, query).toReversed().slice(0, limit)
          assert.deepEqual(
            found.map(({ seq }) => seq),
            expected.map(({ seq }) => seq),
          )
        },
      ),
      { numRuns: 300 },
    )
  })

  it('are counted as one by one, whatever the size of a part and whichever was counted before', async (t) => {
    const { rows, all } = await written(t)
    const counts = [3, 50, 1000].map((size) => countIn(rows, size))
    const range = fc.tuple(fc.integer({ min: -50, max: 350 }), fc.integer({ min: 1, max: 200 }))
    await fc.assert(
      fc.asyncProperty(filters, range, async ({ beforeSeq: _, afterSeq: __, ...query }, [from, seconds]) => {
        const since = START + from * 1000
        const asked = { ...query, since, until: since + seconds * 1000, bucketMs: 7000 }
        const expected = counted(all, asked)
        for (const count of counts) assert.deepEqual(await count(asked), expected)
      }),
      { numRuns: 200 },
    )
  })

  it('leave the turn to calls between two pages of an export', async (t) => {
    const { rows } = await written(t, 1200)
    let turns = 0
    const timer = setInterval(() => {}, 1)
    const watch = (): void => void (turns++, (next = setImmediate(watch)))
    let next = setImmediate(watch)
    for await (const { seq } of exportRows(rows, {})) assert.ok(seq > 0)
    clearImmediate(next)
    clearInterval(timer)
    assert.ok(turns >= 2, `${turns} turns`)
  })
})

/** Returns rows whose clock went back twice, and the records. */
async function written(t: TestContext, count = RECORDS): Promise<{ rows: AuditRows; all: readonly AuditRecord[] }> {
  const path = join(scratchFolder(t), 'audit.db')
  const audit = openSqliteAudit({ path, checkpoints: false })
  for (let i = 0; i < count; i++)
    await audit.write({
      ...auditEntry({ tool_call_id: `call-${i}`, tool: i % 3 === 0 ? 'files:write' : 'files:read' }),
      event: i % 4 === 0 ? 'tool_call' : i % 4 === 1 ? 'tool_blocked' : 'tool_result',
      ...(i % 8 === 3 && { error: 'it failed' }),
      user_id: NAMES[i % 3],
      tenant: i % 5 === 0 ? undefined : NAMES[i % 4],
      run_id: NAMES[(i >> 2) % 4],
      wallMs: START + (i % 90) * 3000,
    })
  await audit.close()
  const reader = openSqliteAudit({ path, readOnly: true })
  const all = await Array.fromAsync(reader.exportRecords())
  await reader.close()
  const db = new DatabaseSync(path, { readOnly: true })
  t.after(() => db.close())
  return { rows: rowsIn(db), all }
}

function matching(all: readonly AuditRecord[], query: AuditExportQuery): readonly AuditRecord[] {
  const { beforeSeq = Number.POSITIVE_INFINITY, afterSeq = 0 } = query
  const checked = checkAuditQuery({ ...query, limit: 1 })
  return all.filter((record) => record.seq < beforeSeq && record.seq > afterSeq && matchesAuditQuery(record, checked))
}

function counted(all: readonly AuditRecord[], query: AuditCountQuery): object {
  const tally = createOutcomeTally(query)
  const { bucketMs: _, ...filter } = query
  for (const record of matching(all, filter)) {
    const outcome = outcomeOfRecord(record)
    if (outcome !== undefined) tally.add(Date.parse(record.ts), outcome, 1)
  }
  return tally.counts(all.length)
}
