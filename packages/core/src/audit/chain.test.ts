import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { canonicalize } from '@toolgate/values/json'
import { sha256Hex } from '@toolgate/values'
import type { AuditRecord } from '../ports/ports.ts'
import { auditEntry } from '../../../testing/src/entries.ts'
import { holdEntry, isCanonicalRecord, sealEntry } from './record.ts'
import { createSealer, GENESIS, readLink } from './chain.ts'

const TEXTS = ['agent', 'app', 'approval_id', 'chat_id', 'detail', 'error', 'limit', 'model', 'reason', 'run_id']
const IDS = ['session_id', 'tenant', 'user_id', 'tool', 'tool_call_id', 'trace_id']
const texts = Object.fromEntries([...TEXTS, ...IDS].map((name) => [name, fc.string({ unit: 'binary' })]))
const numbers = { duration_ms: fc.double(), reset_ms: fc.double(), step: fc.nat(), wallMs: fc.double() }
const entries = fc.record({ ...texts, ...numbers, input: fc.anything() }, { requiredKeys: [] })

describe('createSealer', () => {
  it('makes records that each have the hash of the one before, and their own', () => {
    const sealer = createSealer()
    const [first, second] = [auditEntry({ input: { a: 1 } }), auditEntry()].map((entry) => sealer.seal(entry))
    const { hash, ...one } = JSON.parse(first ?? '') as AuditRecord
    assert.equal(one.prev, GENESIS)
    assert.equal(hash, sha256Hex(`toolgate.audit.v1\0${GENESIS}${canonicalize(one)}`))
    const { hash: head, ...two } = JSON.parse(second ?? '') as AuditRecord
    assert.deepEqual([two.seq, two.prev], [2, hash])
    assert.equal(head, sha256Hex(`toolgate.audit.v1\0${hash}${canonicalize(two)}`))
    assert.deepEqual([sealer.seq, sealer.head], [2, head])
  })

  it('returns the RFC 8785 form of the record of sealEntry, for every entry', () => {
    fc.assert(
      fc.property(entries, (fields) => {
        const text = createSealer({}, { seq: 6, head: GENESIS }).seal(auditEntry(fields))
        const { hash, prev, ...record } = JSON.parse(text) as AuditRecord
        assert.equal(JSON.stringify(record), JSON.stringify(sealEntry(auditEntry(fields), 7)))
        assert.equal(text, canonicalize({ ...record, hash, prev }))
        assert.ok(isCanonicalRecord(text))
      }),
    )
  })

  it('returns the same record for an entry that was held without its input', () => {
    const entry = auditEntry({ input: { path: '/a' } })
    const held = holdEntry(entry)
    assert.equal(held.input, undefined)
    assert.equal(createSealer().seal(held), createSealer().seal(entry))
    assert.equal(holdEntry(held), held)
  })

  it('continues from a given end', () => {
    const sealer = createSealer()
    const first = sealer.seal(auditEntry())
    sealer.goOnFrom({ seq: 0, head: GENESIS })
    assert.equal(sealer.seal(auditEntry()), first)
  })
})

describe('readLink', () => {
  it('reads number and hashes from the text of every record', () => {
    const odd = ',"hash":"' + 'f'.repeat(64) + '","prev":"x","seq":9'
    const sealer = createSealer()
    const text = sealer.seal(auditEntry({ agent: odd, chat_id: odd, detail: odd, tool: odd, user_id: odd }))
    const { seq, hash, prev } = JSON.parse(text) as AuditRecord
    const link = readLink(text)
    assert.deepEqual([link?.seq, link?.hash, link?.prev], [seq, hash, prev])
  })

  it('finds none in a record that is not chained', () => {
    assert.equal(readLink(JSON.stringify(sealEntry(auditEntry(), 1))), undefined)
    assert.equal(readLink('nonsense'), undefined)
  })
})

describe('isCanonicalRecord', () => {
  const record = createSealer().seal(auditEntry({ detail: 'a"b', duration_ms: 1.25 }))
  it('holds for a record as it is sealed, and for one with a field that is not known here', () => {
    assert.ok(isCanonicalRecord(record))
    assert.ok(isCanonicalRecord(canonicalize({ ...JSON.parse(record), zebra: { b: 1 }, duration_ms: 1e-7 })))
  })

  const others: readonly [string, string][] = [
    ['a space', record.replace(',', ', ')],
    ['another order', record.replace(/^\{"catalog_revision":1,(.*)\}$/, '{$1,"catalog_revision":1}')],
    ['a field twice', record.replace('{', '{"catalog_revision":1,')],
    ['an escape that need not be', record.replace('files', '\\u0066iles')],
    ['another spelling of a number', record.replace('1.25', '1.250')],
    ['a number with an exponent', record.replace('1.25', '125e-2')],
    ['something behind it', `${record} `],
    ['a lone surrogate', record.replace('files', '\uD800')],
    ['nothing of JSON', 'nonsense'],
  ]
  for (const [what, text] of others)
    it(`does not hold with ${what}`, () => {
      assert.notEqual(text, record)
      assert.equal(isCanonicalRecord(text), false)
    })
})
