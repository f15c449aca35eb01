import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { AUDIT_EVENTS, AUDIT_OUTCOMES as CORE_OUTCOMES } from '@toolgate/core/words'
import {
  AUDIT_OUTCOMES,
  countNewer,
  EVENTS,
  explainRecord,
  lookOf,
  matchesFilter,
  mergeNewer,
  outcomeOf,
  type RecordFilter,
} from './audit-feed.ts'
import type { AuditRecord } from './wire.ts'

describe('EVENTS', () => {
  it('are the events of the audit', () => {
    for (const event of EVENTS) assert.ok(AUDIT_EVENTS.includes(event), event)
    assert.deepEqual(AUDIT_OUTCOMES, CORE_OUTCOMES)
  })
})

describe('outcomeOf', () => {
  it('distinguishes a result from an error result, and is undefined for a record that ends no attempt', () => {
    assert.equal(outcomeOf(record(1, { event: 'tool_result' })), 'done')
    assert.equal(outcomeOf(record(1, { event: 'tool_result', error: 'ENOENT' })), 'failed')
    assert.equal(outcomeOf(record(1, { event: 'tool_result', is_error: true })), 'failed')
    assert.equal(outcomeOf(record(1)), undefined)
    assert.equal(outcomeOf(record(1, { event: 'policy_changed' })), undefined)
  })
})

describe('lookOf', () => {
  it('has a look for each outcome, and for important events of the gate', () => {
    assert.equal(lookOf(record(1, { event: 'tool_result' })), 'good')
    assert.equal(lookOf(record(1, { event: 'tool_blocked' })), 'bad')
    assert.equal(lookOf(record(1, { event: 'tool_approval_required' })), 'ask')
    assert.equal(lookOf(record(1, { event: 'tool_rate_limited' })), 'wait')
    assert.equal(lookOf(record(1, { event: 'halt_set' })), 'bad')
    assert.equal(lookOf(record(1)), 'plain')
  })
})

describe('matchesFilter', () => {
  it('matches if every given field is equal', () => {
    const one = record(1, { event: 'tool_result', user_id: 'vera', session_id: 's1' })
    assert.ok(matchesFilter(one, filter({})))
    assert.ok(matchesFilter(one, filter({ user: 'vera', outcome: 'done', session: 's1', call: 'c', tool: 't' })))
    assert.ok(!matchesFilter(one, filter({ user: 'ver' })))
    assert.ok(!matchesFilter(one, filter({ user: 'vera', outcome: 'failed' })))
    assert.ok(!matchesFilter(record(1), filter({ user: 'vera' })))
  })
})

describe('countNewer', () => {
  it('counts the records after the newest shown one', () => {
    assert.equal(countNewer([record(5), record(4)], [record(8), record(7), record(5)]), 2)
    assert.equal(countNewer([record(5)], [record(5)]), 0)
    assert.equal(countNewer([], [record(1)]), 1)
    assert.equal(countNewer([record(5)], []), 0)
  })
})

describe('mergeNewer', () => {
  it('adds each new record once, newest first, up to the maximum', () => {
    const seqs = (records: readonly AuditRecord[]) => records.map(({ seq }) => seq)
    assert.deepEqual(
      seqs(mergeNewer([record(2), record(1)], [record(3), record(5), record(3), record(2)], 9)),
      [5, 3, 2, 1],
    )
    assert.deepEqual(seqs(mergeNewer([record(2), record(1)], [record(3)], 2)), [3, 2])
  })

  it('returns the same array without new records', () => {
    const held = [record(2)]
    assert.equal(mergeNewer(held, [record(2), record(1)], 9), held)
  })
})

describe('explainRecord', () => {
  it('says how a group or a server changed, and why', () => {
    const off = record(1, {
      event: 'group_changed',
      reason: 'unavailable',
      detail: 'web: nothing listens on port 4444',
    })
    assert.equal(explainRecord(off), 'web became unavailable: nothing listens on port 4444')
    assert.equal(lookOf(off), 'wait')
    const on = record(2, { event: 'group_changed', reason: 'available', detail: 'web' })
    assert.equal(explainRecord(on), 'web became available')
    assert.equal(lookOf(on), 'good')
    const down = record(3, { event: 'server_changed', reason: 'down', detail: 'files: exited with code 1: no token' })
    assert.equal(explainRecord(down), 'files became down: exited with code 1: no token')
    assert.equal(lookOf(down), 'bad')
  })

  it('prefers the text for people, and falls back to the code', () => {
    assert.equal(
      explainRecord(record(1, { reason: 'policy_denied', detail: 'policy "baseline"' })),
      'policy "baseline"',
    )
    assert.equal(explainRecord(record(1, { reason: 'policy_denied' })), 'policy_denied')
    assert.equal(explainRecord(record(1, { limit: '5/60', reset_ms: 13_400 })), 'limit 5/60, free again in 14 s')
    assert.equal(explainRecord(record(1)), '')
  })
})

function filter(more: Partial<RecordFilter>): RecordFilter {
  return { event: '', outcome: '', tool: '', user: '', session: '', call: '', ...more }
}

function record(seq: number, more: Partial<AuditRecord> = {}): AuditRecord {
  return {
    seq,
    event: 'tool_call',
    ts: '',
    tool: 't',
    tool_call_id: 'c',
    policy_revision: 1,
    catalog_revision: 1,
    ...more,
  }
}
