import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { AUDIT_EVENTS } from '@toolgate/core'
import { countNewer, EVENTS, explainRecord, toneOf } from './audit-feed.ts'
import type { AuditRecord } from './wire.ts'

describe('EVENTS', () => {
  it('are those of the audit', () => {
    assert.deepEqual(EVENTS, AUDIT_EVENTS)
  })
})

describe('countNewer', () => {
  it('counts what came after the newest that is shown', () => {
    assert.equal(countNewer([record(5), record(4)], [record(8), record(7), record(5)]), 2)
    assert.equal(countNewer([record(5)], [record(5)]), 0)
    assert.equal(countNewer([], [record(1)]), 1)
  })
})

describe('toneOf', () => {
  it('tells a result from a result that is an error', () => {
    assert.equal(toneOf(record(1, { event: 'tool_result' })), 'good')
    assert.equal(toneOf(record(1, { event: 'tool_result', error: 'ENOENT' })), 'bad')
    assert.equal(toneOf(record(1, { event: 'tool_blocked' })), 'bad')
    assert.equal(toneOf(record(1)), 'plain')
  })
})

describe('explainRecord', () => {
  it('prefers what is written for people, and falls back on the code', () => {
    assert.equal(
      explainRecord(record(1, { reason: 'policy_denied', detail: 'policy "baseline"' })),
      'policy "baseline"',
    )
    assert.equal(explainRecord(record(1, { reason: 'policy_denied' })), 'policy_denied')
    assert.equal(explainRecord(record(1, { limit: '5/60', reset_ms: 13_400 })), 'limit 5/60, free again in 14 s')
    assert.equal(explainRecord(record(1)), '')
  })
})

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
