import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { defineCaller, defineTool } from '@toolgate/core'
import type { AuditReader, AuditExporter } from '@toolgate/core/audit'
import { type RulesOfChange, whatIf } from '@toolgate/change'
import { openSqliteAudit } from '@toolgate/stores/sqlite'
import { type Case, measure, printFigures } from './lib.ts'

const folder = mkdtempSync(join(tmpdir(), 'toolgate-bench-'))
const RECORDS = 100_000
const path = join(folder, 'audit.db')
const catalog = Array.from({ length: 40 }, (_, i) =>
  defineTool({ namespace: 'files', name: `tool_${i}`, execute: () => 1 }),
)
const callers = Array.from({ length: 50 }, (_, i) =>
  defineCaller({ user: `user-${i}`, roles: [i % 5 ? 'viewer' : 'operator'] }),
)

/** As a gateway writes them: two records of each call. */
async function fill(): Promise<void> {
  const audit = openSqliteAudit({ path, checkpoints: false })
  for (let i = 0; i < RECORDS / 2; i++) {
    const call = {
      tool: `files:tool_${i % 40}`,
      tool_call_id: `d56a8c1e-9c6a-4f0a-8d3b-${i}`,
      user_id: `user-${i % 50}`,
      run_id: `run-${i % 2000}`,
      policy_revision: 1,
      catalog_revision: 2,
      wallMs: 1_700_000_000_000 + i,
    }
    await audit.write({ ...call, event: 'tool_call', input: { path: `/workspace/${i}.txt`, head: 10 } })
    await audit.write({ ...call, event: 'tool_result', duration_ms: 1.234 })
    if (i % 5000 === 0) await audit.flush()
  }
  await audit.close()
}

await fill()
const audit: AuditReader & AuditExporter & { close(): Promise<void> } = openSqliteAudit({ path, readOnly: true })
const rules = { catalog, callers, policy: { name: 'base', deny: ['files:tool_39'] } }
const stricter = {
  ...rules,
  policy: { name: 'base', deny: ['files:tool_39', { match: 'files:tool_1*', when: "'viewer' in caller.roles" }] },
}
const ofRuns = {
  ...rules,
  policy: { name: 'base', deny: ['files:tool_39', { match: 'files:tool_1*', when: "'untrusted' in run.labels" }] },
}

function asking(name: string, after: RulesOfChange): Case {
  return {
    name,
    budget: '60 µs',
    async run(rounds) {
      for (let i = 0; i < rounds; i++) {
        const { records } = await whatIf({ before: rules, after, records: audit.exportRecords() })
        if (records < RECORDS) throw new Error(`${records} records`)
      }
    },
  }
}

const floor = 'reading the records'
const reading: Case = {
  name: floor,
  async run(rounds) {
    for (let i = 0; i < rounds; i++) for await (const { seq } of audit.exportRecords()) if (seq === 0) throw new Error()
  },
}
const cases = [reading, asking('another rule about roles', stricter), asking('another rule about runs', ofRuns)]
const figures = await measure(cases, { rounds: 3, roundMs: 1 })
const perRecord = figures.map((figure) => ({
  ...figure,
  us: figure.us / RECORDS,
  lowUs: figure.lowUs / RECORDS,
  highUs: figure.highUs / RECORDS,
}))
printFigures(`What-if, one record of ${RECORDS}`, perRecord, floor)
await audit.close()
rmSync(folder, { recursive: true })
