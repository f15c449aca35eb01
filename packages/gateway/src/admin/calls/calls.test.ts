import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { memoryAudit } from '@toolgate/core'
import type { AuditEvent, AuditRecord } from '@toolgate/core/audit'
import * as fc from 'fast-check'
import type { CallFilter } from './call-filter.ts'
import { exportCalls, findCalls } from './calls.ts'
import { CSV_HEAD, toCsv } from './csv.ts'

describe('findCalls', () => {
  it('returns one row for each call, newest end first, with its records', async () => {
    const audit = makeAudit([
      ['a', 'tool_call'],
      ['b', 'tool_call'],
      ['c', 'tool_blocked'],
      ['a', 'tool_result'],
      ['d', 'tool_call'],
      [undefined, 'halt_set'],
    ])
    const { calls, next } = await findCalls(audit, { filter: {}, limit: 10 })
    assert.deepEqual(
      calls.map(({ id, outcome, records }) => [id, outcome, records.map(({ event }) => event)]),
      [
        ['d', 'running', ['tool_call']],
        ['a', 'done', ['tool_call', 'tool_result']],
        ['c', 'refused', ['tool_blocked']],
        ['b', 'running', ['tool_call']],
      ],
    )
    assert.equal(next, undefined)
    assert.ok((calls[1]?.startedAt ?? '') < (calls[1]?.endedAt ?? ''))
  })

  it('takes no record of another tenant whose call has the same id, as frameworks count their calls', async () => {
    const of = (tenant: string) => ({ tenant, tool: `${tenant}:send` })
    const audit = makeAudit([
      ['call_1', 'tool_call', of('globex')],
      ['call_1', 'tool_result', of('acme')],
      ['call_2', 'tool_call', of('acme')],
      ['call_2', 'tool_result', of('globex')],
      ['call_3', 'tool_blocked', of('acme')],
    ])
    const filter = { tenant: 'acme' }
    const { calls } = await findCalls(audit, { filter, limit: 10, before: 5 })
    assert.deepEqual(
      calls.map(({ id, outcome, records }) => [id, outcome, records.map(({ tenant }) => tenant)]),
      [
        ['call_2', 'running', ['acme']],
        ['call_1', 'done', ['acme']],
      ],
    )
  })

  it('has each call once over all pages, however calls overlap and whatever the page length', async () => {
    const events: fc.Arbitrary<readonly (readonly [string, boolean])[]> = fc.array(
      fc.tuple(fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f'), fc.boolean()),
      { maxLength: 12 },
    )
    await fc.assert(
      fc.asyncProperty(events, fc.integer({ min: 1, max: 3 }), async (steps, limit) => {
        const state = new Map<string, 'running' | 'over'>()
        const written: (readonly [string, AuditEvent])[] = []
        for (const [id, isLong] of steps) {
          if (state.get(id) === 'over') continue
          const event = state.has(id) ? 'tool_result' : isLong ? 'tool_call' : 'tool_blocked'
          state.set(id, event === 'tool_call' ? 'running' : 'over')
          written.push([id, event])
        }
        const audit = makeAudit(written)
        const found: string[] = []
        let before: number | undefined
        do {
          const page = await findCalls(audit, { filter: {}, limit, before })
          found.push(...page.calls.map(({ id, outcome }) => `${id} ${outcome === 'running' ? 'running' : 'over'}`))
          for (const { id, records } of page.calls)
            assert.equal(records.length, written.filter(([one]) => one === id).length)
          before = page.next
        } while (before !== undefined)
        assert.deepEqual(found.toSorted(), [...state].map(([id, one]) => `${id} ${one}`).toSorted())
      }),
    )
  })

  it('filters by every field, by a text in any case, by time and by duration', async () => {
    const audit = makeAudit([
      ['a', 'tool_result', { tool: 'files:read', run_id: 'run-1', duration_ms: 900 }],
      ['b', 'tool_result', { error: 'ENOENT: no such file', tenant: 'acme', duration_ms: 20 }],
      ['c', 'tool_blocked', { reason: 'policy_denied', detail: 'no Files for guests' }],
    ])
    const ids = async (filter: CallFilter): Promise<string> =>
      (await findCalls(audit, { filter, limit: 10 })).calls.map(({ id }) => id).join('')
    assert.equal(await ids({ tool: 'files:read' }), 'a')
    assert.equal(await ids({ run: 'run-1' }), 'a')
    assert.equal(await ids({ tenant: 'acme' }), 'b')
    assert.equal(await ids({ outcome: 'failed' }), 'b')
    assert.equal(await ids({ reason: 'policy_denied' }), 'c')
    assert.equal(await ids({ text: 'FILE' }), 'cba')
    assert.equal(await ids({ text: 'such file' }), 'b')
    assert.equal(await ids({ slower: 100 }), 'a')
    assert.equal(await ids({ since: 2, until: 3 }), 'b')
    assert.equal(await ids({ text: 'tool_blocked' }), '')
  })

  it('filters by a pattern of tools, and only of tools', async () => {
    const audit = makeAudit([
      ['a', 'tool_blocked', { tool: 'pay:send', user_id: 'pay' }],
      ['b', 'tool_blocked', { tool: 'pay:list', user_id: 'p*' }],
      ['c', 'tool_blocked', { tool: 'files:pay:x', user_id: 'pay' }],
    ])
    const find = async (filter: CallFilter) =>
      (await findCalls(audit, { filter, limit: 10 })).calls.map(({ id }) => id).toReversed()
    assert.deepEqual(await find({ tool: 'pay:*' }), ['a', 'b'])
    assert.deepEqual(await find({ tool: '*:s*d' }), ['a'])
    assert.deepEqual(await find({ tool: 'pay' }), [])
    assert.deepEqual(await find({ user: 'p*' }), ['b'])
    const exported = await Array.fromAsync(exportCalls(audit, { tool: 'pay:*' }))
    assert.deepEqual(
      exported.map(({ id }) => id),
      ['a', 'b'],
    )
  })

  it('takes a call that ended after the time that is searched for no running one', async () => {
    const audit = makeAudit([
      ['a', 'tool_call'],
      ['b', 'tool_blocked'],
      ['a', 'tool_result'],
    ])
    const { calls } = await findCalls(audit, { filter: { until: 3 }, limit: 10 })
    assert.deepEqual(
      calls.map(({ id, outcome }) => [id, outcome]),
      [['b', 'refused']],
    )
  })

  it('stops a long search, and goes on with the next request', async () => {
    const audit = memoryAudit({ capacity: 200_000 })
    const common = { tool: 't', policy_revision: 1, catalog_revision: 1 }
    audit.write({ ...common, event: 'tool_blocked', wallMs: 0, tool_call_id: 'first', reason: 'rare' })
    for (let i = 1; i <= 60_000; i++)
      audit.write({ ...common, event: 'tool_blocked', wallMs: i, tool_call_id: `c${i}`, reason: 'common' })
    const first = await findCalls(audit, { filter: { reason: 'rare' }, limit: 10 })
    assert.deepEqual([first.calls, first.next], [[], 10_002])
    const second = await findCalls(audit, { filter: { reason: 'rare' }, limit: 10, before: first.next })
    assert.deepEqual([second.calls[0]?.id, second.next], ['first', undefined])
  })
})

describe('exportCalls', () => {
  it('yields all calls in the order of their ends, then those that run', async () => {
    const audit = makeAudit([
      ['a', 'tool_call'],
      ['b', 'tool_blocked'],
      ['c', 'tool_call'],
      ['a', 'tool_result'],
    ])
    const rows = await Array.fromAsync(exportCalls(audit, {}))
    assert.deepEqual(
      rows.map(({ id, outcome, records }) => [id, outcome, records.length]),
      [
        ['b', 'refused', 1],
        ['a', 'done', 2],
        ['c', 'running', 1],
      ],
    )
    assert.equal((await Array.fromAsync(exportCalls(audit, { outcome: 'refused' }))).length, 1)
  })
})

describe('toCsv', () => {
  it('puts an apostrophe before each beginning of a formula, in every text that a caller chooses', async () => {
    for (const begin of ['=', '+', '-', '@', '\t', '\r']) {
      const text = `${begin}HYPERLINK`
      const of = { tool: text, user_id: text, tenant: text, run_id: text, reason: text, detail: text, error: text }
      const [row] = await Array.fromAsync(exportCalls(makeAudit([[text, 'tool_blocked', of]]), {}))
      assert.ok(row)
      const line = toCsv(row)
      assert.equal(line.split(`'${begin}HYPERLINK`).length, 9)
      assert.doesNotMatch(line, new RegExp(`(?:^|,)"?\\${begin}`))
    }
  })

  it('quotes what needs it, and lets no text be a formula', async () => {
    const audit = makeAudit([['=1+1', 'tool_blocked', { tool: 'a"b,c', user_id: '@SUM(A1)', reason: 'line\nline' }]])
    const [row] = await Array.fromAsync(exportCalls(audit, {}))
    assert.ok(row)
    assert.equal(CSV_HEAD.split(',').length, 14)
    assert.equal(
      toCsv(row),
      '1970-01-01T00:00:00.001Z,1970-01-01T00:00:00.001Z,refused,"a""b,c",\'@SUM(A1),,,,"line\nline",,,,\'=1+1,1\r\n',
    )
  })
})

type More = Partial<
  Pick<AuditRecord, 'tool' | 'user_id' | 'run_id' | 'duration_ms' | 'error' | 'tenant' | 'reason' | 'detail'>
>

function makeAudit(steps: readonly (readonly [string | undefined, AuditEvent, More?])[]) {
  const audit = memoryAudit()
  for (const [i, [id, event, more = {}]] of steps.entries())
    audit.write({
      event,
      wallMs: i + 1,
      tool: 'mail:send',
      policy_revision: 1,
      catalog_revision: 1,
      ...(id !== undefined && { tool_call_id: id }),
      ...more,
    })
  return audit
}
