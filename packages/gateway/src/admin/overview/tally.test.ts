import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import type { AuditRecord } from '@toolgate/core/audit'
import { LONGEST_MS, OverviewTally } from './tally.ts'

const NOW = Date.parse('2026-11-23T12:34:56Z')
const HOUR = 3_600_000

describe('Tally', () => {
  it('counts attempts by how they ended, and an error of the server as failed', () => {
    const tally = new OverviewTally()
    for (const one of [
      record({ event: 'tool_call' }),
      record({ event: 'tool_result', duration_ms: 10 }),
      record({ event: 'tool_result', duration_ms: 20, is_error: true }),
      record({ event: 'tool_result', duration_ms: 30, error: 'gone' }),
      record({ event: 'tool_blocked', reason: 'policy_denied' }),
      record({ event: 'tool_rate_limited' }),
      record({ event: 'halt_set' }),
    ])
      tally.add(one, NOW)
    const { tools, buckets } = tally.read('1h', undefined, NOW)
    const counted = tools.get('files:read')
    assert.deepEqual(counted?.outcomes, {
      done: 1,
      failed: 2,
      refused: 1,
      limited: 1,
      waiting: 0,
      input_required: 0,
      abandoned: 0,
    })
    assert.deepEqual(Math.round(counted?.latencies.percentiles()?.p50 ?? 0), 20)
    assert.deepEqual([buckets.length, buckets.at(-1)?.failed], [60, 2])
  })

  it('leaves out what is older than the period, also later', () => {
    const tally = new OverviewTally()
    for (const hours of [0.5, 5, 30, 200]) tally.add(record({ event: 'tool_result' }, NOW - hours * HOUR), NOW)
    const count = (period: '1h' | '24h' | '7d', nowMs = NOW): number =>
      tally.read(period, undefined, nowMs).buckets.reduce((sum, { done }) => sum + done, 0)
    assert.deepEqual([count('1h'), count('24h'), count('7d')], [1, 2, 3])
    assert.deepEqual([count('1h', NOW + HOUR), count('24h', NOW + 24 * HOUR)], [0, 0])
    // A new record drops the buckets of before.
    tally.add(record({ event: 'tool_result' }, NOW + LONGEST_MS), NOW + LONGEST_MS)
    assert.deepEqual([count('1h', NOW + LONGEST_MS), count('7d', NOW + LONGEST_MS), count('1h')], [1, 1, 0])
  })

  it('shows a person of a tenant what belongs to it, and nothing else', () => {
    const tally = new OverviewTally()
    for (const tenant of ['acme', 'other', undefined, ''])
      tally.add(record({ event: 'tool_blocked', reason: 'policy_denied', tenant } as Partial<AuditRecord>), NOW)
    const refused = (tenant?: string): number | undefined =>
      tally.read('1h', tenant, NOW).tools.get('files:read')?.outcomes.refused
    assert.deepEqual([refused('acme'), refused(''), refused(), refused('none')], [1, 1, 4, undefined])
    assert.deepEqual(
      tally.read('1h', 'acme', NOW).denials.map(({ tenant, count }) => [tenant, count]),
      [['acme', 1]],
    )
  })

  it('counts what was refused most, by tool, user and reason', () => {
    const tally = new OverviewTally()
    for (const user of ['vera', 'otto', 'vera'])
      tally.add(record({ event: 'tool_blocked', reason: 'policy_denied', user_id: user }), NOW)
    assert.deepEqual(
      tally.read('24h', undefined, NOW).denials.map(({ tool, user, reason, count }) => [tool, user, reason, count]),
      [
        ['files:read', 'vera', 'policy_denied', 2],
        ['files:read', 'otto', 'policy_denied', 1],
      ],
    )
  })

  it('keeps names that agents make up in one row', () => {
    const tally = new OverviewTally()
    for (let i = 0; i < 50; i++)
      tally.add(record({ event: 'tool_blocked', reason: 'tool_not_found', tool: `made:up_${i}` }), NOW)
    const { tools, denials } = tally.read('1h', undefined, NOW)
    assert.deepEqual([[...tools.keys()], tools.get(undefined)?.outcomes.refused], [[undefined], 50])
    assert.deepEqual([denials.length, denials[0]?.count], [1, 50])
  })

  it('answers the same from sums that it has kept as from records that it counts anew', () => {
    const word = fc.constantFrom('a', 'b', undefined)
    const step = fc.record({
      afterMs: fc.constantFrom(0, 20_000, 40 * 60_000, 5 * HOUR),
      ageMs: fc.constantFrom(0, 90_000, 3 * HOUR, -90_000),
      tenant: word,
      tool: fc.constantFrom('files:read', 'files:write', 'mail:send', undefined),
      user: word,
      event: fc.constantFrom('tool_result' as const, 'tool_blocked' as const, 'tool_rate_limited' as const),
      duration: fc.nat(500),
      asked: fc.constantFrom('1h' as const, '24h' as const, '7d' as const),
      askedOf: word,
    })
    const flat = (
      tally: OverviewTally,
      period: '1h' | '24h' | '7d',
      tenant: string | undefined,
      nowMs: number,
    ): unknown => {
      const { since, buckets, all, servers, tools, denials } = tally.read(period, tenant, nowMs)
      const row = ({ outcomes, latencies }: typeof all) => [outcomes, latencies.percentiles()]
      const rows = (of: ReadonlyMap<string | undefined, typeof all>) =>
        [...of].map(([name, one]) => [String(name), row(one)] as const).toSorted(([a], [b]) => (a < b ? -1 : 1))
      const refused = denials.map((denial) => JSON.stringify(denial)).toSorted()
      return [since, buckets, row(all), rows(servers), rows(tools), refused]
    }
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const kept = new OverviewTally()
        const records: [AuditRecord, number][] = []
        let nowMs = NOW
        for (const { afterMs, ageMs, tenant, tool, user, event, duration, asked, askedOf } of steps) {
          nowMs += afterMs
          const about = { event, tenant, tool, user_id: user, duration_ms: duration }
          const one = record(JSON.parse(JSON.stringify(about)) as Partial<AuditRecord>, nowMs - ageMs)
          kept.add(one, nowMs)
          records.push([one, nowMs])
          const anew = new OverviewTally()
          for (const [each, atMs] of records) anew.add(each, atMs)
          assert.deepEqual(flat(kept, asked, askedOf, nowMs), flat(anew, asked, askedOf, nowMs))
        }
      }),
      { numRuns: 40 },
    )
  })

  it('is bounded, and still counts everything', () => {
    const tally = new OverviewTally({ maxCells: 90 })
    for (let i = 0; i < 500; i++)
      tally.add(record({ event: 'tool_result', tool: `files:read_${i}`, tenant: `tenant ${i % 40}` }), NOW)
    const { tools, buckets } = tally.read('1h', undefined, NOW)
    assert.ok(tools.size <= 40, `${tools.size}`)
    assert.equal(buckets.at(-1)?.done, 500)
    // What does not fit belongs to nobody that is of a tenant.
    const ofTenants = Array.from(
      { length: 40 },
      (_, i) => tally.read('1h', `tenant ${i}`, NOW).buckets.at(-1)?.done ?? 0,
    )
    assert.ok(ofTenants.reduce((sum, n) => sum + n) < 500)
  })
})

function record(fields: Partial<AuditRecord>, wallMs = NOW): AuditRecord {
  return {
    seq: 1,
    event: 'tool_call',
    ts: new Date(wallMs).toISOString(),
    tool: 'files:read',
    user_id: 'vera',
    policy_revision: 1,
    catalog_revision: 1,
    ...fields,
  }
}
