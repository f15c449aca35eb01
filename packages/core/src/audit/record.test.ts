import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { sha256Hex } from '@toolgate/values'
import { auditEntry } from '../../../testing/src/entries.ts'
import { canonicalize } from '@toolgate/values/json'
import type { AuditRecord } from '../ports/ports.ts'
import { isCanonicalRecord, RECORD_FIELDS, sealEntry } from './record.ts'

describe('sealEntry', () => {
  it('has its number, its time and the hash of its input', () => {
    const record = sealEntry(auditEntry({ input: { b: 1, a: 2 } }), 7)
    assert.equal(record.seq, 7)
    assert.equal(record.ts, '2023-11-14T22:13:20.123Z')
    assert.equal(record.input_hash, sha256Hex('{"a":2,"b":1}'))
    assert.equal('input' in record, false)
    assert.equal('wallMs' in record, false)
  })

  it('has the time of each record, also when milliseconds repeat, go back or have fractions', () => {
    const times = [5, 5, 6, 5, 5.9].map((wallMs) => sealEntry(auditEntry({ wallMs }), 1).ts.slice(-5))
    assert.deepEqual(times, ['.005Z', '.005Z', '.006Z', '.005Z', '.005Z'])
  })

  it('does not lose the record when the clock returns an invalid time', () => {
    for (const wallMs of [Number.NaN, Number.POSITIVE_INFINITY, 1e300]) {
      assert.equal(sealEntry(auditEntry({ wallMs }), 1).ts, '1970-01-01T00:00:00.000Z')
    }
  })

  it('distinguishes a null input from an absent one', () => {
    assert.equal(sealEntry(auditEntry({ input: null }), 1).input_hash, sha256Hex('null'))
    assert.equal('input_hash' in sealEntry(auditEntry({ input: undefined }), 1), false)
  })

  it('leaves out a duration that is no number', () => {
    assert.deepEqual(
      Object.keys(sealEntry(auditEntry({ duration_ms: Number.NaN, reset_ms: Number.POSITIVE_INFINITY }), 1)),
      Object.keys(sealEntry(auditEntry(), 1)),
    )
  })

  it('survives an input whose getter throws', () => {
    const input = Object.defineProperty({}, 'a', {
      enumerable: true,
      get: () => {
        throw new Error('no')
      },
    })
    assert.equal('input_hash' in sealEntry(auditEntry({ input }), 1), false)
  })

  it('never cuts a character in two', () => {
    for (let padding = 0; padding < 4; padding++) {
      const { detail = '' } = sealEntry(auditEntry({ detail: 'x'.repeat(padding) + '🙂'.repeat(2000) }), 1)
      assert.ok(detail.length <= 1024)
      assert.match(detail, /^x*(🙂)+… \(\d+ characters\)$/u)
    }
  })

  it('has its fields in an order that makes JSON.stringify canonical, for every entry', () => {
    const texts = [
      'act_chain',
      'actor',
      'agent',
      'client',
      'app',
      'approval_id',
      'chat_id',
      'clause',
      'detail',
      'error',
      'limit',
      'reason',
      'run_id',
      'session_id',
    ]
    const shape = Object.fromEntries(
      [...texts, 'tenant', 'user_id', 'tool', 'tool_call_id'].map((name) => [name, fc.string({ unit: 'binary' })]),
    )
    const numbers = { duration_ms: fc.double(), reset_ms: fc.double(), wallMs: fc.double() }
    const entries = fc.record({ ...shape, ...numbers, input: fc.anything() }, { requiredKeys: [] })
    fc.assert(
      fc.property(entries, (fields) => {
        const record = sealEntry(auditEntry(fields), 1)
        assert.equal(JSON.stringify(record), canonicalize(record))
      }),
    )
  })
})

describe('isCanonicalRecord', () => {
  it('accepts records of earlier versions, which lack later fields, and none whose fields stand elsewhere', () => {
    const entry = auditEntry({ labels: ['untrusted'], run_labels: [], run: { id: 'r' } })
    const { labels, run_labels, ...earlier } = sealEntry(entry, 1)
    assert.equal(isCanonicalRecord(JSON.stringify(earlier)), true)
    assert.equal(isCanonicalRecord(JSON.stringify({ ...earlier, labels, run_labels })), false)
  })
})

describe('RECORD_FIELDS', () => {
  it('has every field of a record once, in alphabetical order', () => {
    // A reader of several replicas adds the others.
    type Sealed = Exclude<keyof AuditRecord, 'replica' | 'incarnation' | 'chain_seq'>
    const fields: Readonly<Record<Sealed, true>> = {
      act_chain: true,
      actor: true,
      agent: true,
      app: true,
      approval_id: true,
      asked_hash: true,
      catalog_revision: true,
      chat_id: true,
      clause: true,
      client: true,
      continues: true,
      detail: true,
      duration_ms: true,
      edited: true,
      error: true,
      event: true,
      facts: true,
      grant: true,
      hash: true,
      input_box: true,
      input_hash: true,
      input_preview: true,
      inputs_before: true,
      is_error: true,
      key_made_by: true,
      kind: true,
      labels: true,
      limit: true,
      model: true,
      operands: true,
      policy: true,
      policy_hash: true,
      policy_revision: true,
      prev: true,
      purpose: true,
      reason: true,
      reset_ms: true,
      run_history: true,
      run_id: true,
      run_labels: true,
      seq: true,
      session_id: true,
      signed_seq: true,
      step: true,
      tenant: true,
      tool: true,
      tool_call_id: true,
      trace_id: true,
      ts: true,
      user_id: true,
      would_clause: true,
      would_outcome: true,
    }
    assert.deepEqual(RECORD_FIELDS, Object.keys(fields).toSorted())
  })
})
