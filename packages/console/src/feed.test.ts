import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Feed } from './feed.ts'
import type { AuditRecord } from './wire.ts'

describe('Feed', () => {
  it('begins with the newest page, and adds new records before it', async () => {
    const { feed, log, pass, seqs } = setUp(3)
    feed.add(record(log.push(record(4)) && 4))
    await feed.catchUp()
    assert.deepEqual(seqs(), [4, 3, 2, 1])
    assert.ok(feed.current.isEnd)
    feed.add(record(6))
    feed.add(record(5))
    assert.deepEqual(seqs(), [4, 3, 2, 1])
    pass()
    assert.deepEqual(seqs(), [6, 5, 4, 3, 2, 1])
  })

  it('fetches missed records, and reports a failure', async () => {
    const { feed, log, seqs, control } = setUp(2)
    await feed.catchUp()
    control.isBroken = true
    await feed.catchUp()
    assert.match(String(feed.current.error), /broken/)
    assert.deepEqual(seqs(), [2, 1])
    control.isBroken = false
    log.push(record(3), record(4))
    await feed.catchUp()
    assert.equal(feed.current.error, undefined)
    assert.deepEqual(seqs(), [4, 3, 2, 1])
  })

  it('starts again after missing more than a page, so that no gap is hidden', async () => {
    const { feed, log, seqs } = setUp(10)
    await feed.catchUp()
    for (let seq = 11; seq <= 5010; seq++) log.push(record(seq))
    await feed.catchUp()
    assert.deepEqual([seqs()[0], seqs().at(-1), feed.current.isEnd], [5010, 4011, false])
    await feed.loadOlder()
    assert.deepEqual([seqs().length, seqs().at(-1)], [2000, 3011])
  })

  it('loads back to the first record, page by page, once for concurrent requests', async () => {
    const { feed, seqs, control } = setUp(2500)
    await feed.catchUp()
    assert.equal(feed.current.isEnd, false)
    await Promise.all([feed.loadOlder(), feed.loadOlder()])
    assert.equal(control.fetched, 2)
    await feed.loadOlder()
    assert.deepEqual([seqs().length, seqs().at(-1), feed.current.isEnd], [2500, 1, true])
    await feed.loadOlder()
    assert.equal(control.fetched, 3)
  })

  it('has no hole where the socket opens while a page is under way, or while one cannot be fetched', async () => {
    const { feed, log, pass, seqs, control } = setUp(2)
    await feed.catchUp()
    for (const isBroken of [false, true]) {
      const next = log.length + 1
      // The page is read, and a record is written, before the socket opens.
      const early = feed.catchUp()
      log.push(record(next))
      control.isBroken = isBroken
      const late = feed.catchUp()
      log.push(record(next + 1))
      feed.add(record(next + 1))
      pass()
      await Promise.all([early, late])
      pass()
      control.isBroken = false
      await feed.catchUp()
      assert.deepEqual(seqs(), log.map(({ seq }) => seq).toReversed())
    }
    log.push(record(7))
    feed.add(record(7))
    pass()
    assert.equal(seqs()[0], 7)
  })

  it('adds only matching records', async () => {
    const { feed, pass, seqs } = setUp(0, ({ seq }) => seq % 2 === 0)
    await feed.catchUp()
    for (const seq of [1, 2, 3, 4]) feed.add(record(seq))
    pass()
    assert.deepEqual(seqs(), [4, 2])
  })
})

function setUp(count: number, matches: (record: AuditRecord) => boolean = () => true) {
  const log = Array.from({ length: count }, (_, i) => record(i + 1))
  const control = { isBroken: false, fetched: 0 }
  let due: (() => void) | undefined
  const feed = new Feed({
    async fetchPage({ before = Infinity, after = 0, limit }) {
      control.fetched++
      if (control.isBroken) throw new Error('broken')
      const page = log.filter((one) => matches(one) && one.seq < before && one.seq > after)
      await Promise.resolve()
      return page.toReversed().slice(0, limit)
    },
    matches,
    later: (work) => (due = work),
  })
  return { feed, log, control, pass: () => due?.(), seqs: () => feed.current.records.map(({ seq }) => seq) }
}

function record(seq: number): AuditRecord {
  return { seq, event: 'tool_call', ts: '', policy_revision: 1, catalog_revision: 1 }
}
