import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setImmediate as endOfTurn } from 'node:timers/promises'
import { memoryAudit } from '@toolgate/core'
import { CountedAudit } from './counted-audit.ts'

const NOW = Date.parse('2026-11-23T12:34:56Z')
const clock = { monotonicMs: () => 0, wallMs: () => NOW }
/** More than a test takes. */
const LONG_MS = 60_000

describe('CountedAudit', () => {
  it('counts each record once, however many there are between two questions', async () => {
    const audit = memoryAudit({ capacity: 100_000 })
    const counted = new CountedAudit({ audit, clock, waitMs: LONG_MS, enoughRecords: 30_000 })
    assert.deepEqual(await done(counted), [0, true])
    let total = 0
    for (const more of [1, 0, 999, 1000, 1001, 25_000, 3]) {
      for (let i = 0; i < more; i++) write(audit)
      total += more
      assert.deepEqual(await done(counted), [total, true])
    }
  })

  it('counts once for questions that come together', async () => {
    const audit = memoryAudit()
    for (let i = 0; i < 10; i++) write(audit)
    const counted = new CountedAudit({ audit, clock, waitMs: LONG_MS })
    assert.deepEqual(await Promise.all([done(counted), done(counted)]), [
      [10, true],
      [10, true],
    ])
  })

  it('answers with what is counted so far while an audit is read, and goes on', async () => {
    const audit = memoryAudit()
    write(audit)
    write(audit)
    const [reached, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const slow = {
      query: audit.query,
      async *exportRecords() {
        const [second, first] = audit.query({})
        if (first) yield first
        reached.resolve()
        await gate.promise
        if (second) yield second
      },
    }
    const counted = new CountedAudit({ audit: slow, clock, waitMs: 1 })
    const first = done(counted)
    await reached.promise
    assert.deepEqual(await first, [1, false])
    const { countedTo } = await counted.readRuns(undefined)
    assert.equal(countedTo, Date.parse(audit.query({}).at(-1)?.ts ?? ''))
    gate.resolve()
    let latest = await done(counted)
    while (!latest[1]) latest = await done(counted)
    assert.deepEqual(latest, [2, true])
    assert.equal((await counted.readRuns(undefined)).countedTo, undefined)
  })

  it('answers at once with a part of a large audit, also while it counts the rest', async () => {
    const audit = memoryAudit({ capacity: 100_000 })
    for (let i = 0; i < 20_000; i++) write(audit)
    const counted = new CountedAudit({ audit, clock, waitMs: LONG_MS })
    const [first, isComplete] = await done(counted)
    assert.deepEqual([first, isComplete], [2000, false])
    const [second, isSecond] = await done(counted)
    assert.ok(!isSecond && second < 20_000, `${second}`)
    let latest = await done(counted)
    while (!latest[1]) {
      await endOfTurn()
      latest = await done(counted)
    }
    assert.deepEqual(latest, [20_000, true])
  })

  it('fails with the audit, and goes on where it was once that can be read again', async () => {
    const audit = memoryAudit()
    write(audit)
    write(audit)
    let isBroken = true
    const flaky = {
      query: audit.query,
      async *exportRecords(query?: Parameters<typeof audit.exportRecords>[0]) {
        for await (const record of audit.exportRecords(query)) {
          yield record
          if (isBroken) throw new Error('the disk is gone')
        }
      },
    }
    const counted = new CountedAudit({ audit: flaky, clock, waitMs: LONG_MS })
    await assert.rejects(done(counted), /the disk is gone/)
    isBroken = false
    assert.deepEqual(await done(counted), [2, true])
  })
})

async function done(counted: CountedAudit): Promise<[number, boolean]> {
  const { buckets, isComplete } = await counted.read('1h', undefined)
  return [buckets.reduce((sum, bucket) => sum + bucket.done, 0), isComplete]
}

function write(audit: ReturnType<typeof memoryAudit>): void {
  audit.write({ event: 'tool_result', tool: 'files:read', wallMs: NOW, policy_revision: 1, catalog_revision: 1 })
}
