import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { toRunSteps } from './run-timeline.ts'
import type { AuditRecord } from './wire.ts'

const record = (seq: number, fields: Partial<AuditRecord>): AuditRecord => ({
  seq,
  event: 'tool_result',
  ts: '2026-11-23T10:00:00.000Z',
  tool_call_id: `c${seq}`,
  policy_revision: 1,
  catalog_revision: 1,
  ...fields,
})

describe('toRunSteps', () => {
  it('shows each attempt once, with the labels as they rise', () => {
    const steps = toRunSteps([
      record(4, { event: 'tool_blocked', run_labels: 'private untrusted' }),
      record(3, { labels: 'untrusted', tool_call_id: 'c2' }),
      record(2, { event: 'tool_call', tool_call_id: 'c2' }),
      record(1, { event: 'run_started', tool_call_id: undefined as never }),
      record(5, { labels: 'untrusted' }),
      record(6, { event: 'tool_call' }),
    ])
    assert.deepEqual(
      steps.map(({ record: { seq }, raised, labels }) => [seq, raised, labels]),
      [
        [1, [], []],
        [3, ['untrusted'], ['untrusted']],
        [4, ['private'], ['private', 'untrusted']],
        [5, [], ['private', 'untrusted']],
        [6, [], ['private', 'untrusted']],
      ],
    )
  })

  it('says what counted against a call', () => {
    const operands = JSON.stringify([
      { kind: 'label', of: 'untrusted', calls: [{ tool: 'web:fetch', atMs: 0 }] },
      {
        kind: 'origin',
        of: 'addressees',
        origin: 'untrusted',
        values: [{ field: 'to', value: 'eve@evil.example', origin: 'untrusted' }],
      },
      { kind: 'called', of: 'fraud:check', wanted: { 'input.order': 'o-7' } },
      { kind: 'began', of: 'refunds:pay' },
    ])
    assert.deepEqual(toRunSteps([record(1, { event: 'tool_blocked', operands })])[0]?.because, [
      'the run is untrusted, by web:fetch',
      'to eve@evil.example is untrusted',
      'no call of fraud:check with input.order = o-7 was done',
      'refunds:pay has begun before',
    ])
    assert.deepEqual(toRunSteps([record(1, { event: 'tool_blocked', operands: '{' })])[0]?.because, [])
  })
})
