import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { AuditSink } from '@toolgate/core/audit'
import { sha256Hex } from '@toolgate/values'
import { openJsonlAudit } from '@toolgate/stores/jsonl'
import { openSqliteAudit } from '@toolgate/stores/sqlite'
import { verifyAudit } from '@toolgate/stores/verify'
import { type Case, measure, printFigures } from './lib.ts'

const folder = mkdtempSync(join(tmpdir(), 'toolgate-bench-'))
const RECORDS = 10_000

/** As a gateway writes them: of two records of a call, one has the input. */
async function fill(audit: AuditSink): Promise<void> {
  for (let i = 0; i < RECORDS / 2; i++) {
    const call = {
      tool: 'files:read_file',
      tool_call_id: `d56a8c1e-9c6a-4f0a-8d3b-${i}`,
      session_id: 'session-1',
      tenant: 'acme',
      user_id: `user-${i % 50}`,
      policy_revision: 1,
      catalog_revision: 2,
      wallMs: 1_700_000_000_000 + i,
    }
    await audit.write({ ...call, event: 'tool_call', input: { path: `/workspace/${i}.txt`, head: 10 } })
    await audit.write({ ...call, event: 'tool_result', duration_ms: 1.234 })
  }
  await audit.close()
}

async function verifying(name: string, path: string, open: (options: { path: string }) => AuditSink): Promise<Case> {
  await fill(open({ path }))
  return {
    name,
    budget: '5 µs',
    async run(rounds) {
      for (let i = 0; i < rounds; i++) {
        const { status, findings } = await verifyAudit({ path })
        if (status !== 'ok') throw new Error(findings[0]?.text)
      }
    },
  }
}

const lines = await verifying('JSON lines', join(folder, 'a.jsonl'), openJsonlAudit)
const rows = await verifying('SQLite', join(folder, 'a.db'), openSqliteAudit)
const texts = readFileSync(join(folder, 'a.jsonl'), 'utf8').split('\n')
const floor = 'SHA-256 of each record'
const hashing: Case = {
  name: floor,
  run(rounds) {
    for (let i = 0; i < rounds * RECORDS; i++)
      if (sha256Hex(texts[i % RECORDS] as string) === '') throw new Error('nothing')
  },
}
const figures = await measure([hashing, lines, rows], { rounds: 5, roundMs: 1 })
const perRecord = figures.map((figure) => ({
  ...figure,
  us: figure.us / RECORDS,
  lowUs: figure.lowUs / RECORDS,
  highUs: figure.highUs / RECORDS,
}))
printFigures(`Verifying one record, of ${RECORDS} with checkpoints`, perRecord, floor)
for (const { name, us } of perRecord) console.log(`${name}: ${Math.round(1_000_000 / us)} records a second`)
rmSync(folder, { recursive: true })
