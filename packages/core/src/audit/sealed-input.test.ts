import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import type { AuditEntry } from '../ports/ports.ts'
import { auditEntry } from '../../../testing/src/entries.ts'
import { memoryAudit } from './memory.ts'
import { holdEntry, sealedOf, sealEntry } from './record.ts'
import { createInputOpener, isBoxOf, parseInputKey, type SealedInputs, TOO_LARGE } from './sealed-input.ts'

const key = Buffer.alloc(32, 7).toString('hex')
const inputs: SealedInputs = { keep: 'sealed', key }
const open = createInputOpener({ key })

function seal(more: Partial<AuditEntry> = {}, under: SealedInputs = inputs) {
  const entry = auditEntry({ input: { to: 'ada@example.com', pin: 4711 }, ...more })
  const box = sealedOf(entry, { inputs: under })?.box
  assert.ok(box !== undefined)
  return { record: sealEntry(entry, 1, { inputs: under }), box }
}

/** Returns the record that someone without the key writes for a box. */
function withHashOf(box: string, record: ReturnType<typeof sealEntry>) {
  return { ...record, input_box: createHash('sha256').update(box).digest('hex') }
}

function tampered(box: string, change: (bytes: Buffer) => Buffer): string {
  const [version, id, sealed = ''] = box.split('.')
  return [version, id, change(Buffer.from(sealed, 'base64url')).toString('base64url')].join('.')
}

describe('parseInputKey', () => {
  it('takes 32 bytes in hex and in both kinds of base64', () => {
    const bytes = randomBytes(32)
    for (const form of ['hex', 'base64', 'base64url'] as const)
      assert.deepEqual(Buffer.from(parseInputKey(bytes.toString(form))), bytes)
  })

  it('refuses everything else by name, and never repeats it', () => {
    for (const bad of ['', 'hunter2hunter2', 'f'.repeat(63), 'f'.repeat(66), `${'A'.repeat(42)}!=`, Buffer.alloc(16)])
      assert.throws(
        () => parseInputKey(bad),
        (error: Error) =>
          /inputs\.key.*must be 32 bytes in hex or base64/.test(error.message) && !/hunter/.test(error.message),
      )
  })
})

describe('sealed inputs', () => {
  it('open to what was sealed, whatever the JSON is', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (input) => {
        const { record, box } = seal({ input })
        assert.deepEqual(open(record, box), { status: 'opened', text: JSON.stringify(input) })
      }),
    )
  })

  it('are not in the record, which has a hash that differs for equal inputs', () => {
    const [one, other] = [seal(), seal()]
    assert.doesNotMatch(JSON.stringify({ ...one.record, input_preview: '' }), /ada@example|4711/)
    assert.doesNotMatch(one.box, /ada@example|4711/)
    assert.match(one.record.input_box ?? '', /^[\da-f]{64}$/)
    assert.notEqual(one.record.input_box, other.record.input_box)
    assert.ok(isBoxOf(one.record, one.box) && !isBoxOf(one.record, other.box))
  })

  it('stay with their record: a box that was moved opens for no other, even where the hashes were moved along', () => {
    const mine = seal({ tool_call_id: 'c1' })
    for (const other of [
      { tool_call_id: 'c2' },
      { tool_call_id: 'c1', tool: 'files:write' },
      { tool_call_id: 'c1', user_id: 'other' },
      { tool_call_id: 'c1', tenant: 'other' },
      { tool_call_id: 'c1', session_id: 'other' },
      { tool_call_id: 'c1', wallMs: 1 },
      { tool_call_id: 'c1', event: 'tool_blocked' },
    ] as const) {
      const { record } = seal(other)
      assert.equal(open(record, mine.box).status, 'altered')
      assert.equal(open(withHashOf(mine.box, record), mine.box).status, 'altered', JSON.stringify(other))
    }
    assert.equal(open(withHashOf(mine.box, mine.record), mine.box).status, 'opened')
  })

  it('open for their record only, also where two records are of the same call, time and caller', () => {
    const [one, other] = [seal({ input: 1 }), seal({ input: 2 })]
    assert.equal(open(one.record, one.box).status, 'opened')
    assert.equal(open(one.record, other.box).status, 'altered')
  })

  it('show each flipped bit, a cut end and a cut tag, also to who can write a new hash', () => {
    const { record, box } = seal()
    const length = Buffer.from(box.split('.')[2] ?? '', 'base64url').length
    const changes = [
      ...Array.from({ length: length * 8 }, (_, bit) => (bytes: Buffer) => {
        bytes[bit >> 3] = (bytes[bit >> 3] ?? 0) ^ (1 << (bit & 7))
        return bytes
      }),
      ...Array.from({ length }, (_, end) => (bytes: Buffer) => bytes.subarray(0, end)),
    ]
    for (const change of changes) {
      const other = tampered(box, change)
      assert.equal(open(record, other).status, 'altered')
      assert.equal(open(withHashOf(other, record), other).status, 'altered')
    }
  })

  it('show a replaced id of the key, also of one that is known, and another version', () => {
    const later = Buffer.alloc(32, 9)
    const both = createInputOpener({ key, olderKeys: [later] })
    const { record, box } = seal()
    const foreign = seal({}, { keep: 'sealed', key: later.toString('hex') }).box
    const id = foreign.split('.')[1] ?? ''
    const renamed = box.replace(/^v1\.[^.]*/, `v1.${id}`)
    assert.equal(both(record, renamed).status, 'altered')
    assert.equal(both(withHashOf(renamed, record), renamed).status, 'altered')
    const next = box.replace('v1.', 'v2.')
    assert.equal(both(withHashOf(next, record), next).status, 'altered')
  })

  it('open with older keys, and with no other', () => {
    const { record, box } = seal()
    const next = Buffer.alloc(32, 9)
    assert.equal(createInputOpener({ key: next, olderKeys: [key] })(record, box).status, 'opened')
    assert.equal(createInputOpener({ key: next })(record, box).status, 'wrong_key')
  })

  it('are not kept where they are too long, and the record says so', () => {
    const entry = auditEntry({ input: 'x'.repeat(9 * 1024 * 1024) })
    assert.equal(sealedOf(entry, { inputs })?.box, undefined)
    assert.equal(sealEntry(entry, 1, { inputs }).input_box, TOO_LARGE)
  })

  it('stay the same for an entry that waits for its store', () => {
    const entry = auditEntry({ input: { a: 1 } })
    const held = holdEntry(entry, { inputs })
    assert.equal('input' in held && held.input, undefined)
    assert.deepEqual(sealEntry(held, 1, { inputs }), sealEntry(entry, 1, { inputs }))
    assert.equal(sealedOf(held, { inputs })?.box, sealedOf(entry, { inputs })?.box)
  })
})

describe('memoryAudit with sealed inputs', () => {
  it('returns the boxes of its records, and none of those that are older than they are kept', () => {
    const audit = memoryAudit({ inputs: { ...inputs, keepForMs: 60_000 } })
    const nowMs = Date.now()
    audit.write(auditEntry({ wallMs: nowMs - 90_000, input: 'old' }))
    audit.write(auditEntry({ wallMs: nowMs, input: 'new' }))
    const [old, young] = audit.inputBoxes(audit.records)
    assert.equal(old, undefined)
    assert.deepEqual(audit.records[1] && open(audit.records[1], young ?? ''), { status: 'opened', text: '"new"' })
  })

  it('forgets the boxes of records that it forgets', () => {
    const audit = memoryAudit({ inputs, capacity: 2 })
    for (const input of ['a', 'b', 'c']) audit.write(auditEntry({ input }))
    const gone = { ...audit.records[0], seq: 1 } as (typeof audit.records)[number]
    assert.deepEqual(
      audit.inputBoxes([gone, ...audit.records]).map((box) => box !== undefined),
      [false, true, true],
    )
  })

  it('throws for settings that cannot be used', () => {
    for (const [bad, message] of [
      [{ keep: 'sealed', key: 'abc' }, /inputs\.key/],
      [{ keep: 'sealed', key, olderKeys: ['abc'] }, /inputs\.olderKeys\[0\]/],
      [{ keep: 'sealed', key, keepFor: '7d' }, /keepFor.*keepForMs/],
      [{ keep: 'sealed', key, keepForMs: 0 }, /keepForMs/],
      [{ keep: 'facts', key }, /inputs\.keep/],
      ['sealed', /keep: "sealed" and a key/],
    ] as const)
      assert.throws(() => memoryAudit({ inputs: bad as never }), message)
  })
})
