import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { auditSinkContract } from '../testing/audit-sink.ts'
import { auditEntry } from '../testing/entries.ts'
import { memoryAudit } from './memory.ts'

auditSinkContract('memoryAudit', () => ({ sink: memoryAudit() }))

describe('memoryAudit', () => {
  it('keeps its records, oldest first', () => {
    const audit = memoryAudit()
    assert.equal(audit.records.length, 0)
    audit.write(auditEntry({ tool_call_id: 'a' }))
    audit.write(auditEntry({ tool_call_id: 'b' }))
    assert.deepEqual(
      audit.records.map((record) => [record.seq, record.tool_call_id]),
      [
        [1, 'a'],
        [2, 'b'],
      ],
    )
  })

  it('keeps the newest up to its capacity, and goes on counting', () => {
    for (let written = 0; written <= 12; written++) {
      const audit = memoryAudit({ capacity: 4 })
      for (let i = 0; i < written; i++) {
        audit.write(auditEntry())
        if (i % 3 === 0) assert.equal(audit.records.at(-1)?.seq, i + 1)
      }
      const newest = Array.from({ length: Math.min(4, written) }, (_, i) => written - i)
      assert.deepEqual(
        audit.records.map((record) => record.seq),
        newest.toReversed(),
      )
      assert.deepEqual(
        audit.query({}).map((record) => record.seq),
        newest,
      )
    }
  })

  it('gives the same record each time it is read', () => {
    const audit = memoryAudit()
    audit.write(auditEntry())
    assert.equal(audit.records[0], audit.records[0])
  })

  it('refuses a capacity that is no count', () => {
    for (const capacity of [0, -1, 1.5, Number.NaN]) assert.throws(() => memoryAudit({ capacity }), /capacity/)
  })
})
