import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as endOfTurn } from 'node:timers/promises'
import { memoryAudit } from '@toolgate/core'
import { type AuditSink, sealEntry } from '@toolgate/core/audit'
import { openJsonlAudit } from '@toolgate/stores/jsonl'
import { openSqliteAudit } from '@toolgate/stores/sqlite'
import { entryOf as entry } from './audit-entry.ts'
import { type Case, measure, printFigures } from './lib.ts'

const folder = mkdtempSync(join(tmpdir(), 'toolgate-bench-'))
const CALLERS_AT_ONCE = 16

const entryOf = (i: number) => entry(i, { perMs: 20 })

const sinks: AuditSink[] = []

function batched(name: string, sink: AuditSink): Case {
  sinks.push(sink)
  return {
    name,
    async run(count) {
      for (let i = 0; i < count; i++) {
        await sink.write(entryOf(i))
        if (i % 100 === 0) await endOfTurn()
      }
      await sink.flush()
    },
  }
}

function required(name: string, sink: AuditSink): Case {
  sinks.push(sink)
  return {
    name,
    async run(count) {
      let next = 0
      const writer = async (): Promise<void> => {
        while (next < count) await sink.write(entryOf(next++))
      }
      await Promise.all(Array.from({ length: CALLERS_AT_ONCE }, writer))
    },
  }
}

const figures = await measure([
  {
    name: 'the sealed record as JSON',
    run(count) {
      for (let i = 0; i < count; i++) if (JSON.stringify(sealEntry(entryOf(i), i)) === '') throw new Error('nothing')
    },
  },
  batched('memory', memoryAudit()),
  batched('JSON lines, batched', openJsonlAudit({ path: join(folder, 'a.jsonl') })),
  batched('SQLite, batched', openSqliteAudit({ path: join(folder, 'a.db') })),
  required(
    `JSON lines, required, ${CALLERS_AT_ONCE} at once`,
    openJsonlAudit({ path: join(folder, 'b.jsonl'), mode: 'required' }),
  ),
  required(
    `SQLite, required, ${CALLERS_AT_ONCE} at once`,
    openSqliteAudit({ path: join(folder, 'b.db'), mode: 'required' }),
  ),
])
printFigures('One audit record', figures, 'the sealed record as JSON')
for (const sink of sinks) await sink.close()
rmSync(folder, { recursive: true })
