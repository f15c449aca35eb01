import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type Clause, createGate, defineTool, memoryAudit } from '@toolgate/core'
import type { AuditRecord } from '@toolgate/core/audit'
import { type RulesOfChange, whatIf } from './what-if.ts'

const VERA = { user: 'vera', roles: ['approver'] }
const OMAR = { user: 'omar', roles: ['approver'] }
const asks = (more: Partial<Clause> = {}) => ({ name: 'base', ask: [{ id: 'asks', match: 'mail:send', ...more }] })

describe('a what-if over calls that a person approved', () => {
  async function approvedBy(person: typeof VERA, policy = asks()) {
    const audit = memoryAudit()
    const tools = [defineTool({ namespace: 'mail', name: 'send', execute: () => 'sent' })]
    const gate = createGate({ tools, policy, audit })
    const view = await gate.view(VERA)
    const outcome = await view.call({ tool: 'mail:send', input: {} })
    assert.equal(outcome.status, 'waiting')
    if (outcome.status !== 'waiting') return assert.fail()
    await gate.approvals.decide(person, outcome.approval.id, {
      decision: 'approve',
    })
    assert.equal((await view.call({ tool: 'mail:send', input: {} })).status, 'done')
    const judge = async (after: ReturnType<typeof asks>, records: readonly AuditRecord[] = audit.records) =>
      whatIf({
        before: { catalog: tools, callers: [VERA], policy },
        after: { catalog: tools, callers: [VERA], policy: after },
        records,
      })
    return { judge, records: audit.records }
  }

  it('finds those that the new rules would have had another person approve', async () => {
    const own = await approvedBy(VERA)
    const found = await own.judge(asks({ by: 'other' }))
    assert.deepEqual([found.changed, found.unknown, found.same], [1, 0, 1])
    const [row] = found.rows
    assert.deepEqual(
      [row?.from, row?.to, row?.rule, row?.why],
      ['ask', 'ask', 'base#asks', 'it must be approved by another person'],
    )
    const other = await (await approvedBy(OMAR)).judge(asks({ by: 'other' }))
    assert.deepEqual([other.changed, other.unknown, other.same], [0, 0, 2])
  })

  it('does not know, by rule, where it was not recorded who approved, or when they had logged in', async () => {
    const { judge, records } = await approvedBy(OMAR)
    const undecided = await judge(
      asks({ by: 'other' }),
      records.filter(({ event }) => event !== 'approval_decided'),
    )
    assert.deepEqual([undecided.changed, undecided.unknown, undecided.unknownParts.approver], [0, 1, 1])
    const login = await judge(asks({ login: '5m' }))
    assert.deepEqual([login.unknown, login.rules], [1, [{ rule: 'base#asks', changed: 0, unknown: 1 }]])
    const weaker = await judge(asks({ message: 'Another text.' }))
    assert.deepEqual([weaker.changed, weaker.unknown], [0, 0])
  })
})

describe('a what-if over calls at once', () => {
  /** Two calls run, then one more after both. */
  async function overlapping(concurrency?: string) {
    const clock = { nowMs: Date.parse('2026-11-23T10:00:00Z') }
    const audit = memoryAudit()
    let open = () => {}
    const opened = new Promise<void>((resolve) => (open = resolve))
    const tools = [defineTool({ namespace: 'web', name: 'get', execute: async () => opened })]
    const waits = concurrency === undefined ? {} : { concurrency: [{ match: concurrency, max: 1, waitMs: 0 }] }
    const gate = createGate({
      tools,
      audit,
      ...waits,
      clock: { wallMs: () => clock.nowMs, monotonicMs: () => clock.nowMs },
    })
    const view = await gate.view(VERA)
    const call = async () => view.call({ tool: 'web:get', input: {} })
    const both = [call(), call()]
    open()
    await Promise.all(both)
    clock.nowMs += 1000
    await call()
    const judge = async (
      before: Partial<RulesOfChange>,
      after: Partial<RulesOfChange>,
      records: readonly AuditRecord[] = audit.records,
    ) =>
      whatIf({
        before: { catalog: tools, callers: [VERA], ...before },
        after: { catalog: tools, callers: [VERA], ...after },
        records,
      })
    return { judge, records: audit.records }
  }

  it('does not know of a call that a new cap would have made wait, and is sure of the others', async () => {
    const { judge, records } = await overlapping()
    const found = await judge({}, { concurrency: 'web:*:1' })
    assert.deepEqual([found.same, found.changed, found.unknown, found.unknownParts.limit], [2, 0, 1, 1])
    assert.deepEqual(found.rules, [{ rule: 'concurrency web:*:1', changed: 0, unknown: 1 }])
    assert.equal((await judge({}, { concurrency: 'web:*:2' })).unknown, 0)
    assert.equal((await judge({ concurrency: 'web:*:1' }, { concurrency: 'web:*:1' })).unknown, 0)
    const late = await judge({}, { concurrency: 'web:*:9' }, records.slice(1))
    assert.ok(late.unknown > 0, 'what ran before the records is unknown')
  })

  it('does not know of a call that a cap refused which is gone', async () => {
    const { judge } = await overlapping('web:*')
    const found = await judge({ concurrency: [{ match: 'web:*', max: 1, waitMs: 0 }] }, {})
    assert.deepEqual([found.same, found.unknown], [2, 1])
  })
})

describe('a what-if over groups that sessions open', () => {
  const tools = [defineTool({ namespace: 'web', name: 'get', execute: () => 'got' })]
  const open = { web: { tools: ['web:*'], hint: 'the web' } }
  const locked = { web: { ...open.web, unlock: 'request' as const } }
  const caller = { user: 'vera', session: 's' }

  for (const [what, before, after, status] of [
    ['closed', open, locked, 'done'],
    ['opened', locked, open, 'refused'],
  ] as const)
    it(`does not know what a session had open where a lock is ${what}`, async () => {
      const audit = memoryAudit()
      const gate = createGate({ tools, groups: before, audit })
      assert.equal((await (await gate.view(caller)).call({ tool: 'web:get', input: {} })).status, status)
      await gate.close()
      const rules = (groups: typeof open) => ({ catalog: tools, callers: [caller], groups })
      const judge = async (groups: typeof open) =>
        whatIf({ before: rules(before), after: rules(groups), records: audit.records })
      const found = await judge(after)
      assert.deepEqual([found.same, found.changed, found.unknown], [0, 0, 1])
      assert.deepEqual(found.rules, [{ rule: 'lock of group web', changed: 0, unknown: 1 }])
      assert.equal((await judge(before)).same, 1)
    })
})
