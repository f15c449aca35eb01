import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Caller } from '../ports/caller.ts'
import { memoryAudit } from '../audit/memory.ts'
import { createApprovals } from '../call/approvals.ts'
import { createGate } from '../gate/gate.ts'
import { memoryApprovals } from '../memory/approvals.ts'
import { defineTool } from '../tools/tool.ts'
import { coversApprover } from './approver.ts'
import type { Policies } from './policy.ts'

const VERA = { user: 'vera', tenant: 'acme' }
const ANN = { user: 'ann', tenant: 'acme', roles: ['approver'] }
const NOW = 1_000_000_000
const FRESH = { decision: 'approve', loginAt: NOW - 60_000 } as const

function setUp(policy: Policies) {
  const clock = { monotonicMs: () => 0, wallMs: () => NOW }
  const ran: unknown[] = []
  const pay = defineTool({ name: 'pay', execute: (input) => void ran.push(input) })
  const gate = createGate({ tools: [pay], policy, clock })
  const call = async (cents = 5, caller: Caller = VERA) =>
    (await gate.view(caller)).call({ tool: 'pay', input: { cents } })
  const ask = async (cents = 5, caller: Caller = VERA) => {
    const outcome = await call(cents, caller)
    assert.equal(outcome.status, 'waiting')
    return outcome.approval
  }
  return { gate, ran, call, ask }
}

function isFault(code: string) {
  return (error: unknown) => (error as { code?: unknown }).code === code
}

describe('by: other', () => {
  const policy = { ask: [{ match: 'pay', by: 'other' }] } as const

  it('keeps the person who asked from approving, and not from rejecting', async () => {
    const { gate, ask, call } = setUp(policy)
    const { id } = await ask()
    await assert.rejects(gate.approvals.decide(VERA, id, { decision: 'approve' }), isFault('approval_needs_other'))
    const nobody = { tenant: 'acme', roles: ['approver'] }
    await assert.rejects(gate.approvals.decide(nobody, id, { decision: 'approve' }), isFault('approval_needs_other'))
    await gate.approvals.decide(VERA, id, { decision: 'reject' })
    assert.equal((await call()).status, 'refused')
  })

  it('lets another person approve', async () => {
    const { gate, ask, call, ran } = setUp(policy)
    await gate.approvals.decide(ANN, (await ask()).id, { decision: 'approve' })
    assert.equal((await call()).status, 'done')
    assert.equal(ran.length, 1)
  })
})

describe('by: other, where another person made the key', () => {
  const policy = { ask: [{ match: 'pay', by: 'other' }] } as const
  const WITH_KEY = { ...VERA, keyMadeBy: 'ann' }
  const BOB = { ...ANN, user: 'bob' }

  it('keeps that person from approving, and lets a third one', async () => {
    const { gate, ask, call, ran } = setUp(policy)
    const { id, keyMadeBy } = await ask(5, WITH_KEY)
    assert.equal(keyMadeBy, 'ann')
    for (const person of [VERA, ANN])
      await assert.rejects(gate.approvals.decide(person, id, { decision: 'approve' }), isFault('approval_needs_other'))
    await gate.approvals.decide(BOB, id, { decision: 'approve' })
    assert.equal((await call(5, WITH_KEY)).status, 'done')
    assert.equal(ran.length, 1)
  })

  it('keeps approvals of calls with the user’s own key from that key, and the other way round', async () => {
    const { gate, ask, call, ran } = setUp(policy)
    await gate.approvals.decide(ANN, (await ask()).id, { decision: 'approve' })
    assert.equal((await call(5, WITH_KEY)).status, 'waiting')
    assert.deepEqual(ran, [])
    assert.equal((await call()).status, 'done')
  })
})

describe('login', () => {
  const policy = { ask: [{ match: 'pay', login: '5m' }] }

  for (const [what, loginAt] of [
    ['an old login', NOW - 5 * 60_000 - 1],
    ['a login in the future', NOW + 1],
    ['no known login', undefined],
  ] as const)
    it(`refuses ${what}`, async () => {
      const { gate, ask } = setUp(policy)
      const { id } = await ask()
      const verdict = { decision: 'approve', loginAt } as const
      await assert.rejects(gate.approvals.decide(ANN, id, verdict), isFault('approval_needs_login'))
      await gate.approvals.decide(ANN, id, { decision: 'reject', loginAt })
    })

  it('takes a fresh one', async () => {
    const { gate, ask, call } = setUp(policy)
    await gate.approvals.decide(ANN, (await ask()).id, { decision: 'approve', loginAt: NOW - 5 * 60_000 })
    assert.equal((await call()).status, 'done')
  })
})

describe('several clauses', () => {
  it('add up to the strictest demand, over policies and with the input', async () => {
    const { gate, ask } = setUp([
      { ask: ['pay', { match: 'pay', login: '1h' }] },
      { ask: [{ match: 'pay', by: 'other' }] },
      { ask: [{ match: 'pay', login: '2m', input: 'input.cents > 100' }] },
    ])
    assert.deepEqual((await ask(5)).approver, { by: 'other', loginMs: 3_600_000 })
    const { approver, id, why } = await ask(500)
    assert.deepEqual(approver, { by: 'other', loginMs: 120_000 })
    assert.match(why ?? '', /asks for approval of pay, where input.cents > 100/)
    await assert.rejects(gate.approvals.decide(VERA, id, FRESH), isFault('approval_needs_other'))
    await assert.rejects(gate.approvals.decide(ANN, id, { decision: 'approve' }), isFault('approval_needs_login'))
    await gate.approvals.decide(ANN, id, FRESH)
  })

  it('make an approval under a weaker demand worthless', async () => {
    const { gate, ask, call, ran } = setUp({ ask: ['pay'] })
    await gate.approvals.decide(VERA, (await ask()).id, { decision: 'approve' })
    gate.setPolicy({ ask: [{ match: 'pay', by: 'other' }] })
    assert.equal((await call()).status, 'waiting')
    assert.equal(ran.length, 0)
  })

  it('are checked again when they change between the approval and the run', async () => {
    let isStrict = false
    const hooks = { beforeToolCall: () => undefined }
    const audit = {
      write: () => {
        if (!isStrict) return undefined
        isStrict = false
        gate.setPolicy({ ask: [{ match: 'pay', by: 'other' }] })
        return undefined
      },
      flush: async () => {},
      close: async () => {},
    }
    const ran: unknown[] = []
    const pay = defineTool({ name: 'pay', execute: (input) => void ran.push(input) })
    const gate = createGate({ tools: [pay], policy: { ask: ['pay'] }, audit, hooks })
    const call = async () => (await gate.view(VERA)).call({ tool: 'pay' })
    const asked = await call()
    assert.equal(asked.status, 'waiting')
    await gate.approvals.decide(VERA, asked.approval.id, { decision: 'approve' })
    isStrict = true
    assert.notEqual((await call()).status, 'done')
    assert.deepEqual(ran, [])
  })
})

describe('a clause', () => {
  for (const [policy, problem] of [
    [{ ask: [{ match: 'pay', by: 'me' }] }, /policy\[0\]\.ask\[0\]\.by: must be "other"/],
    [{ ask: [{ match: 'pay', login: '5 minutes' }] }, /policy\[0\]\.ask\[0\]\.login: must be a time/],
    [{ ask: [{ match: 'pay', login: '0s' }] }, /login: must be a time/],
    [{ ask: [{ match: 'pay', login: 300 }] }, /login: must be a time/],
    [{ deny: [{ match: 'pay', by: 'other' }] }, /deny\[0\]\.by: is only for clauses of "ask"/],
    [{ allow: [{ match: 'pay', login: '5m' }] }, /allow\[0\]\.login: is only for clauses of "ask"/],
    [{ ask: [{ match: 'pay', logn: '5m' }] }, /logn/],
  ] as const)
    it(`rejects ${JSON.stringify(policy)}`, () => {
      assert.throws(() => createGate({ tools: [], policy: policy as unknown as Policies }), problem)
    })
})

describe('approvers', () => {
  const people = (user: string, ...roles: string[]) => ({ user, tenant: 'acme', roles })
  const DEE = people('dee', 'approver')

  it('lets a call run after the last of several people, never with the one who asked', async () => {
    const { gate, ask, call, ran } = setUp({ ask: [{ match: 'pay', approvers: 2 }] })
    const { id, approver } = await ask()
    assert.deepEqual(approver, { by: 'other', count: 2 })
    await gate.approvals.decide(ANN, id, { decision: 'approve' })
    assert.equal((await call()).status, 'waiting')
    await assert.rejects(
      gate.approvals.decide({ ...VERA, roles: ['approver'] }, id, { decision: 'approve' }),
      isFault('approval_needs_other'),
    )
    await gate.approvals.decide(DEE, id, { decision: 'approve' })
    assert.equal((await call()).status, 'done')
    assert.equal(ran.length, 1)
  })

  it('lets people with the given roles decide, in place of the role approver', async () => {
    const { gate, ask, call } = setUp({ ask: [{ match: 'pay', approvers: { finance: 1, security: 1 } }] })
    const approval = await ask()
    const { id } = approval
    assert.equal(gate.approvals.mayDecide(ANN, approval), false)
    await assert.rejects(gate.approvals.decide(ANN, id, { decision: 'approve' }), {
      code: 'approval_forbidden',
      message: /"finance" or "security"/,
    })
    const both = people('flo', 'finance', 'security')
    assert.equal((await gate.approvals.decide(both, id, { decision: 'approve' })).status, 'pending')
    await assert.rejects(gate.approvals.decide(both, id, { decision: 'approve' }), isFault('approval_decided'))
    await gate.approvals.decide(people('sam', 'finance'), id, { decision: 'approve' })
    assert.equal((await call()).status, 'done')
  })

  it('never adds an approver with a further rule: a role of one rule does not stand in for the approver of another', async () => {
    const { gate, ask } = setUp([{ ask: ['pay'] }, { ask: [{ match: 'pay', approvers: { intern: 1 } }] }])
    const { id, approver } = await ask()
    assert.deepEqual(approver, { count: 1, roles: { intern: 1 } })
    const decide = (who: Caller) => gate.approvals.decide(who, id, { decision: 'approve' })
    assert.equal((await decide(people('ian', 'intern'))).status, 'pending')
    assert.equal((await decide(ANN)).status, 'approved')
  })

  it('combines the demands of several rules', async () => {
    const { ask } = setUp([
      { ask: [{ match: 'pay', approvers: { finance: 1 } }] },
      { ask: [{ match: 'pay', approvers: { finance: 2, legal: 1 }, login: '5m' }] },
      { ask: [{ match: 'pay', approvers: 3 }] },
    ])
    const wanted = { by: 'other', loginMs: 300_000, count: 3, roles: { finance: 2, legal: 1 } }
    assert.deepEqual((await ask()).approver, wanted)
  })

  it('needs the yes of several people as the host sees it: roles come on top of mayApprove', async () => {
    const store = memoryApprovals()
    const clock = { monotonicMs: () => 0, wallMs: () => NOW }
    const approver = { by: 'other', roles: { finance: 1, legal: 1 } } as const
    const binding = { ...VERA, tool: 'pay', definitionHash: 'd', inputHash: 'i', run: undefined, approver }
    const { id } = await store.request(binding, {}, NOW)
    const desk = createApprovals({ approvals: store, clock }, ({ user }) => user !== 'eve')
    const decide = (who: Caller) => desk.decide(who, id, { decision: 'approve' })
    await assert.rejects(decide(people('eve', 'finance')), isFault('approval_forbidden'))
    await assert.rejects(decide(people('bob')), isFault('approval_forbidden'))
    assert.equal((await decide(people('bob', 'finance'))).status, 'pending')
    assert.equal((await decide(people('cem', 'legal'))).status, 'approved')
  })

  for (const approvers of [0, 11, 1.5, '2', {}, { finance: 0 }, { '': 1 }, { a: 6, b: 5 }, [2]])
    it(`rejects ${JSON.stringify(approvers)}`, () => {
      const clause = { match: 'pay', approvers: approvers as number }
      assert.throws(() => createGate({ tools: [], policy: { ask: [clause] } }), /policy\[0\]\.ask\[0\]\.approvers/)
    })

  it('is only for clauses that ask, as editing is', () => {
    for (const more of [{ approvers: 2 }, { edit: true }])
      assert.throws(
        () => createGate({ tools: [], policy: { deny: [{ match: 'pay', ...more }] } }),
        /only for clauses of "ask"/,
      )
  })
})

describe('coversApprover', () => {
  it('is true for as many people, with as many of each role', () => {
    const two = { by: 'other', count: 2 } as const
    const roles = { by: 'other', roles: { finance: 1, legal: 1 } } as const
    assert.equal(coversApprover(two, undefined), true)
    assert.equal(coversApprover(undefined, two), false)
    assert.equal(coversApprover({ ...two, count: 3 }, two), true)
    assert.equal(coversApprover(roles, two), false)
    assert.equal(coversApprover(two, roles), false)
    assert.equal(coversApprover(roles, undefined), false)
    assert.equal(coversApprover(roles, { roles: { finance: 1 } }), true)
    assert.equal(coversApprover({ roles: { finance: 1 } }, { roles: { finance: 2 } }), false)
    assert.equal(coversApprover({ edit: true }, undefined), false)
    assert.equal(coversApprover(undefined, { edit: true }), true)
  })
})

describe('a refused decision', () => {
  it('is recorded, with who tried and why', async () => {
    const audit = memoryAudit()
    const clock = { monotonicMs: () => 0, wallMs: () => NOW }
    const pay = defineTool({ name: 'pay', execute: () => 'paid' })
    const gate = createGate({
      tools: [pay],
      policy: { ask: [{ match: 'pay', by: 'other', login: '5m' }] },
      clock,
      audit,
    })
    const outcome = await (await gate.view({ ...VERA, aliases: ['corp/1'] })).call({ tool: 'pay' })
    const id = outcome.status === 'waiting' ? outcome.approval.id : ''
    const tries: readonly (readonly [Caller, string])[] = [
      [{ ...ANN, user: 'corp/1' }, 'approval_needs_other'],
      [{ ...ANN, aliases: ['vera'] }, 'approval_needs_other'],
      [{ tenant: 'acme', user: 'eve' }, 'approval_forbidden'],
      [ANN, 'approval_needs_login'],
    ]
    for (const [who, code] of tries)
      await assert.rejects(gate.approvals.decide(who, id, { decision: 'approve' }), isFault(code))
    const refused = audit.records.filter(({ event }) => event === 'approval_refused')
    assert.deepEqual(
      refused.map(({ user_id, reason, approval_id, tenant, tool }) => [user_id, reason, approval_id, tenant, tool]),
      tries.map(([{ user }, code]) => [user, code, id, 'acme', 'pay']),
    )
    assert.equal(
      refused[1]?.detail,
      'approve: Another person than the one who asked must approve this call. You are also "vera".',
    )
  })
})
