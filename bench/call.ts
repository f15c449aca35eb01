import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createGate, memoryAudit, type Policy, type View } from '@toolgate/core'
import type { AuditSink } from '@toolgate/core/audit'
import { openJsonlAudit } from '@toolgate/stores/jsonl'
import { openSqliteAudit } from '@toolgate/stores/sqlite'
import { createGlue, type LogRecord, logToMemory, logToPino } from './glue.ts'
import { type Case, measure, printFigures } from './lib.ts'
import { makeTools } from './tools.ts'

const folder = mkdtempSync(join(tmpdir(), 'toolgate-bench-'))
const tools = makeTools(1000)
const tool = 'server0:read_thing_0'
const input = Object.freeze({ path: '/workspace/a.txt' })
const policy = { deny: ['tag:danger', { match: '*:delete_*', unless: "'admin' in caller.roles" }], ask: ['*:send_*'] }
const caller = { user: 'vera', tenant: 'acme', roles: ['viewer'], session: 's1' }
/** Never reached, and always counted. */
const limits = [{ match: '*', max: 1_000_000, windowMs: 100 }]

const sinks: AuditSink[] = []

/** Rules about the tool that hold for no input of the bench. */
const further: Policy = { name: 'further', deny: [{ match: '*:read_*', input: "!within(input.path, '/workspace')" }] }

async function viewWith(audit: AuditSink, limited: boolean, ...more: readonly Policy[]): Promise<View> {
  sinks.push(audit)
  return createGate({ tools, policy: [policy, ...more], audit, ...(limited ? { limits } : {}) }).view(caller)
}

function callsOf(name: string, view: View, budget = ''): Case {
  return {
    name,
    budget,
    async run(count) {
      for (let i = 0; i < count; i++) {
        const outcome = await view.call({ tool, input, callId: 'call-1' })
        if (outcome.status !== 'done') throw new Error(`the call was ${outcome.status}: ${outcome.text}`)
      }
    },
  }
}

async function bare({ path }: { path: string }): Promise<string> {
  return path
}

const bareCall: Case = {
  name: 'a bare async call',
  async run(count) {
    for (let i = 0; i < count; i++) if ((await bare(input)) === '') throw new Error('it gave nothing')
  },
}

// One after the other: what the files leave to collect would be counted as the memory's.
const inMemory = await measure([
  bareCall,
  callsOf('a gated call: decision, audit in memory', await viewWith(memoryAudit(), false)),
  callsOf('… and a limit', await viewWith(memoryAudit(), true), '1.5 µs'),
  callsOf('… one policy more, with a condition about the input', await viewWith(memoryAudit(), false, further)),
  callsOf('… the same policy as a shadow', await viewWith(memoryAudit(), false, { ...further, mode: 'shadow' })),
])
printFigures('One call through the gate, two audit records each', inMemory, bareCall.name)
const inFiles = await measure([
  bareCall,
  callsOf(
    '… audit in JSON lines, batched, chained',
    await viewWith(openJsonlAudit({ path: join(folder, 'a.jsonl') }), true),
    '6 µs',
  ),
  callsOf('… audit in SQLite, batched, chained', await viewWith(openSqliteAudit({ path: join(folder, 'a.db') }), true)),
])
printFigures('The same, in files', inFiles, bareCall.name)

/** The same call through well-known packages, put together by hand. */
function gluedCall(name: string, log: LogRecord): Case {
  const glue = createGlue(tools, log)
  return {
    name,
    async run(count) {
      for (let i = 0; i < count; i++) {
        const outcome = await glue(caller, { tool, input, callId: 'call-1' })
        if (outcome.status !== 'done') throw new Error(`the glued call was ${outcome.status}: ${outcome.reason}`)
      }
    },
  }
}

const glued = gluedCall('casl + ajv + rate-limiter-flexible + pino to /dev/null', logToPino('/dev/null'))
const beside = await measure([
  glued,
  gluedCall('… its records kept in memory instead', logToMemory()),
  callsOf('a gated call: decision, schema, limit, audit in memory', await viewWith(memoryAudit(), true), '0.35 ×'),
  callsOf(
    '… audit in JSON lines, batched, chained',
    await viewWith(openJsonlAudit({ path: join(folder, 'b.jsonl') }), true),
    '1 ×',
  ),
])
printFigures('Beside well-known packages, put together by hand', beside, glued.name)
for (const sink of sinks) await sink.close()
rmSync(folder, { recursive: true })
