import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { AuditRecord } from '@toolgate/core/audit'
import { readRecords, type RecordSource } from './read-records.ts'

type Given = Pick<AuditRecord, 'seq'> & Partial<AuditRecord>

/** An audit of these records. A number stands for so many lines that cannot be read. */
const auditOf = (given: readonly (Given | number)[], more: Partial<RecordSource> = {}): RecordSource => ({
  async *exportRecords(_query, onUnreadable) {
    for (const one of given) {
      if (typeof one === 'number') onUnreadable?.(one)
      else yield one as AuditRecord
    }
  },
  ...more,
})

/** Returns how many are missing before each record, and at the end. */
async function missingIn(audit: RecordSource, isSeen?: (record: AuditRecord) => boolean) {
  const { records, missing } = readRecords(audit, {}, isSeen)
  const found: number[] = []
  for await (const record of records) found.push(missing(record))
  return [...found, missing()]
}

const seqs = (...numbers: readonly number[]) => numbers.map((seq) => ({ seq }))

describe('readRecords', () => {
  it('counts skipped numbers, and not those before the first record', async () => {
    assert.deepEqual(await missingIn(auditOf(seqs(5, 6, 9, 10))), [0, 0, 2, 0, 0])
  })

  it('counts what cannot be read once, whether or not its number is skipped, also at the ends', async () => {
    assert.deepEqual(await missingIn(auditOf([2, { seq: 3 }, 1, { seq: 5 }, 1, { seq: 6 }, 3])), [2, 1, 1, 3])
    assert.deepEqual(await missingIn(auditOf([{ seq: 1 }, 1, { seq: 5 }])), [0, 3, 0])
    assert.deepEqual(await missingIn(auditOf([4])), [4])
  })

  it('is not misled by a number that stands twice, or out of order', async () => {
    assert.deepEqual(await missingIn(auditOf(seqs(1, 2, 2, 1, 3))), [0, 0, 0, 0, 0, 0])
  })

  it('counts in the chain of each replica, since positions among all of them may be skipped', async () => {
    const of = (replica: string, incarnation: string, seq: number, chainSeq: number) => ({
      seq,
      replica,
      incarnation,
      chain_seq: chainSeq,
    })
    const records = [of('a', '1', 10, 4), of('b', '1', 14, 90), of('a', '1', 15, 5), of('b', '1', 16, 93)]
    assert.deepEqual(await missingIn(auditOf([...records, of('b', '2', 17, 1)])), [0, 0, 0, 2, 0, 0])
  })

  it('counts nothing where only some records are returned, and carries on what is missing before others', async () => {
    assert.deepEqual(await missingIn(auditOf(seqs(1, 9), { isPart: () => true })), [0, 0, 0])
    const odd = ({ seq }: AuditRecord) => seq % 2 === 1
    assert.deepEqual(await missingIn(auditOf(seqs(1, 4, 5, 8)), odd), [0, 2, 2])
  })
})
