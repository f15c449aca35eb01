import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { AuditRecord } from '@toolgate/core/audit'
import { CallerTally, personKey } from './caller-tally.ts'
import { RunTally } from './run-tally.ts'

const NOW = Date.parse('2026-11-23T12:00:00Z')
let seq = 0
const record = (fields: Partial<AuditRecord>, agoMs = 0): AuditRecord => ({
  event: 'tool_result',
  tool: 'files:read',
  policy_revision: 1,
  catalog_revision: 1,
  seq: ++seq,
  ts: new Date(NOW - agoMs).toISOString(),
  ...fields,
})

describe('RunTally', () => {
  it('counts what ended, and holds labels, the host and the end of each run', () => {
    const tally = new RunTally()
    const of = { run_id: 'r-1', user_id: 'vera' }
    tally.add(record({ ...of, event: 'run_started', actor: 'runner' }, 5000))
    tally.add(record({ ...of, event: 'tool_call', tool_call_id: 'c' }, 4000))
    tally.add(record({ ...of, tool_call_id: 'c', labels: 'private', client: 'desk' }, 3000))
    tally.add(record({ ...of, event: 'tool_blocked', run_labels: 'private untrusted' }, 2000))
    tally.add(record({ ...of, is_error: true }, 1000))
    tally.add(record({ ...of, event: 'run_ended', reason: 'expired', user_id: 'vera' }))
    const [run, ...others] = tally.read(undefined, NOW)
    assert.equal(others.length, 0)
    assert.deepEqual([run?.calls, run?.refused, run?.failed], [3, 1, 1])
    assert.deepEqual([run?.user, run?.host, run?.client], ['vera', 'runner', 'desk'])
    assert.deepEqual([...(run?.labels ?? [])], ['private', 'untrusted'])
    assert.deepEqual(
      [run?.startedAt, run?.lastAt, run?.ended],
      [NOW - 5000, NOW - 1000, { at: NOW, reason: 'expired' }],
    )
  })

  it('keeps runs and sessions of two tenants with one id apart, and shows a tenant its own', () => {
    const tally = new RunTally()
    tally.add(record({ run_id: 'same', tenant: 'acme' }))
    tally.add(record({ run_id: 'same', tenant: 'other' }))
    tally.add(record({ run_id: 'same' }))
    tally.add(record({ session_id: 'same', tenant: 'acme' }))
    tally.add(record({ tenant: 'acme' }))
    assert.equal(tally.read(undefined, NOW).length, 4)
    assert.deepEqual(
      tally.read('acme', NOW).map(({ kind, id }) => [kind, id]),
      [
        ['session', 'same'],
        ['run', 'same'],
      ],
    )
  })

  it('keeps those with the latest records, of the last week, the latest first', () => {
    const tally = new RunTally({ maxRuns: 3 })
    for (const id of ['a', 'b', 'c', 'd', 'b']) tally.add(record({ run_id: id }))
    assert.deepEqual(
      tally.read(undefined, NOW).map(({ id }) => id),
      ['b', 'd', 'c'],
    )
    assert.equal(tally.read(undefined, NOW + 8 * 86_400_000).length, 0)
  })

  it('holds a bounded number of labels', () => {
    const tally = new RunTally()
    for (let i = 0; i < 100; i++) tally.add(record({ run_id: 'a', run_labels: `label-${i}` }))
    assert.equal(tally.read(undefined, NOW)[0]?.labels.size, 64)
  })
})

describe('CallerTally', () => {
  it('counts by user and tenant, with the roles of the latest facts, and keeps those who called last', () => {
    const tally = new CallerTally({ maxCallers: 2 })
    const facts = (roles: unknown): string => JSON.stringify({ caller: { roles }, input: {} })
    for (const user of ['old', 'vera', 'otto']) tally.add(record({ user_id: user, facts: facts(['reader']) }))
    tally.add(record({ user_id: 'vera', event: 'tool_blocked', facts: facts(['viewer', 7]) }))
    tally.add(record({ user_id: 'vera', facts: 'no JSON', client: 'desk' }))
    tally.add(record({ user_id: 'vera', event: 'tool_call' }))
    const found = tally.read(undefined, NOW)
    assert.deepEqual(
      [...found.keys()],
      ['otto', 'vera'].map((user) => personKey({ user })),
    )
    const { roles, calls, refused, client } = found.get(personKey({ user: 'vera' })) ?? {}
    assert.deepEqual([roles, calls, refused, client], [['viewer'], 3, 1, 'desk'])
    assert.equal(tally.read('acme', NOW).size, 0)
  })
})
