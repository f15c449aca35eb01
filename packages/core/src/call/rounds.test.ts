import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { memoryAudit } from '../audit/memory.ts'
import { createGate } from '../gate/gate.ts'
import type { GateOptions } from '../gate/options.ts'
import { type CallContext, defineTool } from '../tools/tool.ts'
import type { CallRequest } from './attempt.ts'
import { type CallOutcome, type Continuation, InputRequired } from './outcome.ts'

const VERA = { user: 'vera', tenant: 'acme' }

function setUp(options: GateOptions = {}) {
  const ran: unknown[] = []
  const audit = memoryAudit()
  const pay = defineTool({
    name: 'pay',
    execute(input: object, { context }: CallContext) {
      ran.push(input)
      return context ?? new InputRequired({ question: 'From which account?' })
    },
  })
  const gate = createGate({ tools: [pay], audit, limits: 'pay:1/60', ...options })
  let calls = 0
  const call = async (request: Partial<CallRequest> = {}, caller: object = VERA): Promise<CallOutcome> =>
    (await gate.view(caller)).call({ tool: 'pay', input: { cents: 5 }, callId: `c${++calls}`, ...request })
  const begin = async (): Promise<Continuation> => continuesOf(await call())
  const approve = async () => {
    for (const { id } of await gate.approvals.list({ status: 'pending' }))
      await gate.approvals.decide({ user: 'ann', tenant: 'acme', roles: ['approver'] }, id, { decision: 'approve' })
  }
  const records = () =>
    audit.records
      .filter(({ event }) => event.startsWith('tool_'))
      .map(({ event, tool_call_id: id, continues }) => [event, id, continues].filter(Boolean).join(' '))
  return { gate, audit, ran, call, begin, approve, records }
}

function continuesOf(outcome: CallOutcome): Continuation {
  assert.equal(outcome.status, 'input_required')
  return outcome.continues
}

describe('InputRequired', () => {
  it('ends an attempt with its own record, and with what the tool asks for', async () => {
    const { call, records } = setUp()
    const outcome = await call()
    assert.equal(outcome.status, 'input_required')
    assert.deepEqual(outcome.payload, { question: 'From which account?' })
    assert.equal(outcome.text, 'pay needs more input, which this client cannot give.')
    assert.deepEqual([outcome.continues.callId, outcome.continues.round], ['c1', 1])
    assert.deepEqual(records(), ['tool_call c1', 'tool_input_required c1'])
  })

  it('is never cut: a payload over the cap of outputs is a failure', async () => {
    const { call } = setUp({ maxOutputChars: 20 })
    const outcome = await call()
    assert.equal(outcome.status, 'failed')
    assert.match(String(outcome.error), /more input in more than 20 characters/)
  })

  it('reaches the hooks after each round', async () => {
    const seen: unknown[] = []
    const { call, begin } = setUp({ hooks: { afterToolCall: ({ output }) => void seen.push(output) } })
    await call({ continues: await begin(), context: 'paid' })
    assert.ok(seen[0] instanceof InputRequired)
    assert.equal(seen[1], 'paid')
  })
})

describe('continues', () => {
  it('makes the rounds one call: the limit is taken once', async () => {
    const { call, begin, records } = setUp()
    const second = await call({ continues: await begin() })
    const third = await call({ continues: continuesOf(second), context: 'paid' })
    assert.equal(third.text, 'paid')
    assert.equal((await call({ context: 'paid' })).status, 'refused', 'another call')
    assert.deepEqual(records(), [
      'tool_call c1',
      'tool_input_required c1',
      'tool_call c2 c1',
      'tool_input_required c2 c1',
      'tool_call c3 c1',
      'tool_result c3 c1',
      'tool_rate_limited c4',
    ])
    assert.equal(continuesOf(second).round, 2)
  })

  it('makes the rounds one call: the approval is used once', async () => {
    const { call, approve, ran, audit } = setUp({ policy: { ask: ['pay'] }, limits: [] })
    assert.equal((await call()).status, 'waiting')
    await approve()
    const continues = continuesOf(await call())
    assert.equal((await call({ continues, context: 'paid' })).status, 'done')
    assert.equal((await call()).status, 'waiting', 'a call of its own')
    assert.equal(ran.length, 2)
    const used = audit.records.filter(({ event }) => event === 'tool_call').map(({ approval_id: id }) => id)
    assert.deepEqual(used, [continues.approvalId, continues.approvalId])
  })

  for (const [what, request, caller] of [
    ['another input', { input: { cents: 500 } }, VERA],
    ['another user', {}, { ...VERA, user: 'eve' }],
    ['another tenant', {}, { ...VERA, tenant: 'evil' }],
  ] as const) {
    it(`continues nothing with ${what}: the approval is asked for`, async () => {
      const { call, approve, ran } = setUp({ policy: { ask: ['pay'] }, limits: [] })
      await call()
      await approve()
      const continues = continuesOf(await call())
      assert.equal((await call({ ...request, continues, context: 'paid' }, caller)).status, 'waiting')
      assert.equal(ran.length, 1)
    })
  }

  it('continues nothing with another input: the limit is taken', async () => {
    const { call, begin } = setUp()
    const outcome = await call({ continues: await begin(), input: { cents: 500 }, context: 'paid' })
    assert.equal(outcome.status, 'refused')
  })

  it('continues nothing with an input that a hook has replaced since', async () => {
    let cents = 5
    const hooks = { beforeToolCall: () => ({ input: { cents } }) }
    const { call, begin, ran } = setUp({ hooks })
    const continues = await begin()
    cents = 500
    assert.equal((await call({ continues, context: 'paid' })).status, 'refused')
    assert.equal(ran.length, 1)
  })

  it('is decided again: by a policy that denies or asks now, by a halt', async () => {
    for (const policy of [{ deny: ['pay'] }, { ask: ['pay'] }]) {
      const { gate, call, begin, ran } = setUp()
      const continues = await begin()
      gate.setPolicy(policy)
      assert.equal((await call({ continues, context: 'paid' })).status, 'deny' in policy ? 'refused' : 'waiting')
      assert.equal(ran.length, 1)
    }
    const { gate, call, begin } = setUp()
    const continues = await begin()
    await gate.halt({ tool: 'pay', reason: 'its key has leaked' })
    assert.equal((await call({ continues, context: 'paid' })).status, 'refused')
  })

  it('gives nothing back that the first round has taken', async () => {
    const { gate, call, begin } = setUp()
    const continues = await begin()
    gate.setPolicy({ deny: ['pay'] })
    await call({ continues })
    gate.setPolicy({})
    assert.equal((await call()).status, 'refused', 'the limit is used up')
  })

  it('rejects an unknown field', async () => {
    const { call } = setUp()
    await assert.rejects(call({ continues: { callId: 'c', round: 1, bindin: 'x' } as never }), /bindin/)
  })

  it('asks again where the policy has come to want another person', async () => {
    const { gate, call, begin, approve, ran } = setUp({ policy: { ask: ['pay'] }, limits: 'pay:9/60' })
    await call()
    await approve()
    const continues = await begin()
    assert.notEqual((await call({ continues })).status, 'waiting', 'the approval holds for all rounds')
    gate.setPolicy([{ ask: [{ match: 'pay', by: 'other' }] }])
    const runsBefore = ran.length
    assert.equal((await call({ continues })).status, 'waiting')
    assert.equal(ran.length, runsBefore)
    await approve()
    const stricter = continuesOf(await call({ continues }))
    assert.equal((await call({ continues: stricter, context: 'paid' })).text, 'paid')
  })
})

describe('abandoned', () => {
  it('ends a call between two rounds on record, and runs nothing', async () => {
    const { begin, call, ran, records } = setUp()
    const continues = await begin()
    const outcome = await call({ continues, as: { kind: 'abandoned', why: 'nobody answered' }, context: 'paid' })
    assert.equal(outcome.status, 'refused')
    assert.equal(ran.length, 1)
    assert.deepEqual(records(), ['tool_call c1', 'tool_input_required c1', 'tool_abandoned c2 c1'])
  })

  it('says why, also when a policy denies the tool by now, or nobody has it', async () => {
    const { gate, begin, call, audit } = setUp()
    const continues = await begin()
    gate.setPolicy({ deny: ['pay'] })
    await call({ continues, as: { kind: 'abandoned', why: 'nobody answered' } })
    await call({ continues, as: { kind: 'abandoned', why: 'nobody answered' }, tool: 'gone' })
    const [denied, gone] = audit.records.slice(-2)
    for (const record of [denied, gone])
      assert.deepEqual(
        [record?.event, record?.reason, record?.detail],
        ['tool_abandoned', 'caller_gone', 'nobody answered'],
      )
  })
})
