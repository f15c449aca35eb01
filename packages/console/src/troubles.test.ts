import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { changeBefore, toChanges, toTroubles } from './troubles.ts'
import type { AuditRecord, ServersBody } from './wire.ts'

const MINUTE = 60_000
const NOW = 100 * MINUTE
const NONE = { done: 0, failed: 0, abandoned: 0, refused: 0, limited: 0, waiting: 0, input_required: 0 }

describe('toTroubles', () => {
  it('is empty when nothing is wrong', () => {
    assert.deepEqual(toTroubles({}, NOW), [])
    assert.deepEqual(
      toTroubles({ waiting: { count: 1, oldestAt: NOW - MINUTE }, counts: countsOf(() => ({})) }, NOW),
      [],
    )
  })

  it('names a server that is down, since when, and where a person acts', () => {
    const down = { name: 'files', status: 'down', reason: 'exited', since: 5, restarts: 1, toolCount: 0, rejected: [] }
    const [found] = toTroubles({ servers: { servers: [down], mayOperate: true } as ServersBody }, NOW)
    assert.deepEqual(found, {
      key: 'server files',
      what: 'The server files is down',
      why: 'exited',
      sinceMs: 5,
      href: '#/servers?server=files',
    })
  })

  it('names calls that fail more than in the 15 minutes before, from the first such minute', () => {
    const [found] = toTroubles({ counts: countsOf((i) => (i < 20 ? { done: 10 } : { done: 5, failed: 5 })) }, NOW)
    assert.equal(found?.what, '50 of 150 calls failed in the last 15 minutes')
    assert.equal(found?.why, 'before: 0 of 150')
    assert.equal(found?.sinceMs, NOW - 10 * MINUTE)
  })

  it('does not name calls that fail as they did before, or that are few', () => {
    assert.deepEqual(toTroubles({ counts: countsOf(() => ({ done: 5, failed: 5, refused: 5 })) }, NOW), [])
    assert.deepEqual(toTroubles({ counts: countsOf((i) => (i === 29 ? { failed: 2 } : { done: 1 })) }, NOW), [])
  })

  it('names an approval that waits for longer than 10 minutes', () => {
    const [found] = toTroubles({ waiting: { count: 2, oldestAt: NOW - 11 * MINUTE } }, NOW)
    assert.equal(found?.what, '2 approvals wait, the oldest for more than 10 minutes')
  })

  it('names an audit that cannot be written first', () => {
    const found = toTroubles({ ready: { audit: { code: 'disk' } }, warnings: { warnings: [warning] } }, NOW)
    assert.deepEqual(
      found.map(({ key, why }) => [key, why]),
      [
        ['audit', 'disk'],
        ['warnings', 'no tool matches'],
      ],
    )
  })
})

describe('changeBefore', () => {
  const at = (minutes: number) => new Date(minutes * MINUTE).toISOString()
  const record = (entry: Partial<AuditRecord>) => ({ seq: 1, ...entry }) as AuditRecord

  it('returns the latest change before a time, and not the state of a server', () => {
    const changes = toChanges([
      record({ event: 'config_changed', ts: at(10), reason: 'api', user_id: 'ann', detail: 'policy[0] changed' }),
      record({ event: 'server_changed', ts: at(12), reason: 'down', detail: 'files' }),
      record({ event: 'config_changed', ts: at(20), reason: 'api' }),
    ])
    const found = changeBefore(13 * MINUTE, changes)
    assert.deepEqual([found?.what, found?.by], ['api policy[0] changed', 'ann'])
  })

  it('returns none that is older than an hour', () => {
    const changes = toChanges([], {
      mayRestore: false,
      revisions: [{ revision: 2, at: MINUTE, through: 'api', isInForce: true }],
    })
    assert.equal(changeBefore(62 * MINUTE, changes), undefined)
    assert.equal(changeBefore(2 * MINUTE, changes)?.href, '#/policy?view=revisions&revision=2')
  })
})

const warning = { code: 'selector_unmatched', path: 'policy[0]', text: 'no tool matches' }

function countsOf(minute: (i: number) => Partial<typeof NONE>) {
  const buckets = Array.from({ length: 30 }, (_, i) => ({ ...NONE, ...minute(i) }))
  return { since: NOW - 30 * MINUTE, bucketMs: MINUTE, buckets, newestSeq: 0 }
}
