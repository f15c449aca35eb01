import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as endOfTurn } from 'node:timers/promises'
import { createGate, memoryAudit } from '@toolgate/core'
import { type AuditInputs, type AuditSink, sealEntry } from '@toolgate/core/audit'
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

/** A call through a gate whose rules read the input. */
function call(name: string, inputs: AuditInputs): Case {
  const audit = openSqliteAudit({ path: join(folder, `${name.slice(0, 4)}.db`), inputs })
  sinks.push(audit)
  const policy = { allow: ['*' as const], deny: [{ match: 'read' as const, input: "input.path == '/etc/shadow'" }] }
  const gate = createGate({ tools: { read: { execute: () => 'done' } }, audit, policy })
  const input = { path: '/workspace/a.txt', head: 10, tail: null, text: 'hello world '.repeat(20) }
  return {
    name,
    async run(count) {
      const view = await gate.view({ user: 'vera' })
      for (let i = 0; i < count; i++) {
        await view.call({ tool: 'read', input })
        if (i % 100 === 0) await endOfTurn()
      }
      await audit.flush()
    },
  }
}

const sealed = { keep: 'sealed', key: randomBytes(32) } as const
const calls = await measure([call('facts', 'facts'), call('sealed inputs', sealed), call('redacted', 'redacted')])
printFigures('One call, SQLite, batched', calls, 'facts')
for (const sink of sinks) await sink.close()
rmSync(folder, { recursive: true })
