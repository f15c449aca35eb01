import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Caller } from '../ports/caller.ts'
import { createGate } from '../gate/gate.ts'
import { defineTool } from '../tools/tool.ts'
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
