import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type Caller, createGate, defineTool, type Gate, memoryAudit } from '@toolgate/core'
import { auditEntry, manualClock } from '@toolgate/testing'
import type { ServerRow } from '../../model/rows.ts'
import { countCalls } from '../../telemetry/call-counts.ts'
import type { ListedRoom, Room } from '../../heart/room.ts'
import { Rooms } from '../../heart/rooms.ts'
import { ROOMS } from '../../compose/rooms.ts'
import { toExposition } from '../../telemetry/exposition.ts'
import { gateWith, heartOf } from '../../testing/heart.ts'
import { budgetFamilies } from '../limits/start.ts'
import { listFamily } from '../overview/start.ts'
import { certificateFamilies, processFamilies } from './process-families.ts'

const LINE =
  /^(?:# (?:HELP|TYPE) [a-z_:0-9]+ .*|[a-z_:0-9]+(?:\{[a-z]+="[^"\n]*"(?:,[a-z]+="[^"\n]*")*\})? (?:[0-9.e+-]+|\+Inf|NaN))$/

describe('the metrics of all rooms', () => {
  it('exposes calls, servers, tools, approvals, warnings, the audit and the process', async () => {
    const { read, counts, audit } = setup()
    const call = { tool: { id: 'files:read', name: 'read', description: '' }, callId: 'c', caller: {}, run: undefined }
    counts.startCall(call)?.end({ status: 'done', code: undefined })
    counts.startCall(call)?.end({ status: 'refused', code: 'rate_limited' })
    counts.startCall({ ...call, tool: undefined })?.end({ status: 'refused', code: 'tool_not_found' })
    counts.startCall(call)
    audit.write(auditEntry())
    const text = await read()
    for (const expected of [
      'toolgate_calls_total{status="done",reason=""} 1',
      'toolgate_calls_total{status="refused",reason="rate_limited"} 1',
      'toolgate_tool_calls_total{tool="files:read",status="done"} 1',
      'toolgate_tool_calls_total{tool="_unknown",status="refused"} 1',
      'toolgate_refused_calls_total 2',
      'toolgate_rate_limited_calls_total 1',
      'toolgate_running_calls 1',
      'toolgate_call_duration_seconds_bucket{status="done",le="+Inf"} 1',
      'toolgate_call_duration_seconds_count{status="done"} 1',
      'toolgate_server_up{server="files"} 1',
      'toolgate_pins{status="changed"} 1',
      'toolgate_pins{status="suspended"} 0',
      'toolgate_halts 0',
      'toolgate_issuer_up{issuer="corp"} 1',
      'toolgate_issuer_up{issuer="other"} 0',
      'toolgate_audit_problems{code="checkpoints_missing"} 0',
      'toolgate_audit_problems{code="checkpoints_failing"} 1',
      'toolgate_audit_signed_records 7',
      'toolgate_audit_signed_seconds 1795392000',
      'toolgate_certificate_expires_seconds 1800000000',
      'toolgate_calls_total{status="refused",reason="store_failed"} 0',
      'toolgate_server_up{server="web"} 0',
      'toolgate_servers{status="ready"} 1',
      'toolgate_server_restarts_total{server="web"} 3',
      'toolgate_catalog_tools 1',
      'toolgate_pending_approvals 0',
      'toolgate_policy_warnings{code="selector_unmatched"} 1',
      'toolgate_audit_records_total 1',
      'toolgate_audit_dropped_records_total 0',
    ])
      assert.ok(text.split('\n').includes(expected), `${expected} is not in\n${text}`)
    assert.match(text, /^process_resident_memory_bytes [1-9]\d+$/m)
  })

  it('has the budgets by their rule, and names no holder', async () => {
    const families = budgetFamilies([
      { rule: 'pay:*', limit: '500/60', max: 500, used: 450, remaining: 50 },
      { rule: 'pay:*', limit: '500/60', max: 500, used: 500, remaining: 0 },
      { rule: 'sms:*', limit: '10/60', max: 10, used: 0, remaining: 10 },
    ])
    assert.deepEqual(
      families.map(({ name, samples }) => [name, samples]),
      [
        [
          'toolgate_budget_used_ratio',
          [
            { labels: { rule: 'pay:*', limit: '500/60' }, value: 1 },
            { labels: { rule: 'sms:*', limit: '10/60' }, value: 0 },
          ],
        ],
        [
          'toolgate_budgets_spent',
          [
            { labels: { rule: 'pay:*', limit: '500/60' }, value: 1 },
            { labels: { rule: 'sms:*', limit: '10/60' }, value: 0 },
          ],
        ],
      ],
    )
  })

  it('is text that a scraper reads: every line a comment or a sample, and each metric once', async () => {
    const text = await setup().read()
    assert.ok(text.endsWith('\n'))
    const lines = text.slice(0, -1).split('\n')
    assert.deepEqual(
      lines.filter((line) => !LINE.test(line)),
      [],
    )
    const names = lines.filter((line) => line.startsWith('# TYPE ')).map((line) => line.split(' ')[2])
    assert.equal(new Set(names).size, names.length)
  })

  it('counts the approvals that wait', async () => {
    const { gate, read } = setup()
    await (await gate.view({ user: 'vera' })).call({ tool: 'files:read', input: {} })
    assert.match(await read(), /^toolgate_pending_approvals 1$/m)
  })

  it('shows a person what the lists cost of the callers that they may see, and everybody no names', async () => {
    const { read } = setup()
    assert.match(await read({ user: 'ben', tenant: 'beta' }), /^toolgate_list_tokens\{user="vera of beta"\} 8$/m)
    assert.doesNotMatch(await read(), /toolgate_list_tokens/)
  })

  it('leaves out figures that cannot be read, and exposes the rest', async () => {
    const faults: unknown[] = []
    const fail = async (): Promise<never> => {
      throw new Error('disk')
    }
    const { read } = setup({ audit: { query: fail, droppedCount: 7 }, approvals: { list: fail }, faults })
    const text = await read()
    assert.doesNotMatch(text, /toolgate_(?:audit_records_total|pending_approvals)/)
    assert.match(text, /^toolgate_audit_dropped_records_total 7$/m)
    assert.equal(faults.length, 2)
  })
})

interface Given {
  readonly audit?: object
  readonly approvals?: object
  readonly faults?: unknown[]
}

/** The rooms that serve or watch need a whole gateway. */
const NOT_FIGURES = new Set(['mcp', 'groups', 'reload', 'metrics'])
const FIGURES = ROOMS.flatMap(({ start }): readonly ListedRoom[] =>
  start && !NOT_FIGURES.has(start.name) ? [{ start }] : [],
)
const LISTS: Room = {
  name: 'lists',
  open: () => ({
    metrics: [(person) => (person ? listFamily([{ user: `vera of ${person.tenant}`, tokens: 8 }]) : [])],
  }),
}
const PROCESS: Room = {
  name: 'process',
  open: ({ door }) => ({ metrics: [() => certificateFamilies(door.certificateExpiresAtMs()), processFamilies] }),
}

function setup({ audit: given, approvals, faults = [] }: Given = {}) {
  const audit = memoryAudit()
  const counts = countCalls(manualClock())
  const tool = defineTool({ namespace: 'files', name: 'read', execute: () => 'read' })
  const gate = createGate({
    sources: [{ name: 'files', tools: () => [tool], subscribe: () => () => {} }],
    policy: { deny: ['gone:tool'], ask: ['files:read'] },
    audit: memoryAudit(),
  })
  const evidence = () => ({
    checkpoints: { signedSeq: 7, signedAt: '2026-11-23T00:00:00.000Z' },
    problems: [{ code: 'checkpoints_failing', message: 'The disk is full.' }],
  })
  const pins = { list: () => [{ status: 'pinned' }, { status: 'changed' }] } as object as Gate['pins']
  const heart = heartOf({
    gate: gateWith(gate, { pins, ...(approvals && { approvals: approvals as Gate['approvals'] }) }),
    audit: given ?? Object.assign(audit, { evidence }),
    config: { pins: 'off' },
    fleet: { rows: () => [row('files', 'ready', 0), row('web', 'down', 3)] },
    servers: { counts },
    door: {
      issuers: () => [
        { name: 'corp', issuer: 'https://a.example', status: 'unknown' },
        { name: 'other', issuer: 'https://b.example', status: 'down' },
      ],
      certificateExpiresAtMs: () => 1_800_000_000_000,
    },
    warnings: { list: gate.lint },
    onFault: (error) => faults.push(error),
  })
  const rooms = new Rooms([...FIGURES, { start: LISTS }, { start: PROCESS }], heart)
  const opening = rooms.open()
  const read = async (person?: Caller) => {
    await opening
    return toExposition(await rooms.metrics(person))
  }
  return { gate, audit, counts, read }
}

function row(name: string, status: ServerRow['status'], restarts: number): ServerRow {
  return { name, status, since: 0, restarts, toolCount: 0, rejected: [] }
}
