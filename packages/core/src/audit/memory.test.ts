import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { auditSinkContract } from '../../../testing/src/audit-sink.ts'
import { auditEntry } from '../../../testing/src/entries.ts'
import { type MemoryAudit, memoryAudit } from './memory.ts'

auditSinkContract('memoryAudit', async () => ({ sink: memoryAudit() }))

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

  it('keeps inputs for a second, or until they are read', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const audit = memoryAudit()
    const write = () => Array.from({ length: 50 }, () => writeInput(audit))
    const [first, second] = [write(), write()]
    t.mock.timers.tick(1000)
    assert.equal(await countAlive([...first, ...second]), 0)
    const third = write()
    assert.equal(audit.records.length, 150)
    assert.equal(await countAlive(third), 0)
  })

  it('returns the same record each time it is read', () => {
    const audit = memoryAudit()
    audit.write(auditEntry())
    assert.equal(audit.records[0], audit.records[0])
  })

  it('refuses a capacity that is no count', () => {
    for (const capacity of [0, -1, 1.5, Number.NaN]) assert.throws(() => memoryAudit({ capacity }), /capacity/)
  })
})

function writeInput(audit: MemoryAudit): WeakRef<object> {
  const input = { text: 'x' }
  audit.write(auditEntry({ input }))
  return new WeakRef(input)
}

/** Counts what is left after collecting garbage. */
async function countAlive(refs: readonly WeakRef<object>[]): Promise<number> {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  // A WeakRef holds its object to the end of the turn in which it was made or asked.
  for (let i = 0; i < 3; i++) {
    await turn()
    collect()
  }
  return refs.filter((ref) => ref.deref() !== undefined).length
}
