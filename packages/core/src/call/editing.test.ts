import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { memoryAudit } from '../audit/memory.ts'
import { createGate } from '../gate/gate.ts'
import type { GateOptions } from '../gate/options.ts'
import { type CallOutcome, InputRequired } from './outcome.ts'

const PAY = {
  type: 'object',
  properties: {
    amount: { type: 'number' },
    to: { type: 'string' },
    note: { type: 'object', properties: { password: { type: 'string' }, text: { type: 'string' } } },
  },
  required: ['amount', 'to'],
  additionalProperties: false,
}
const INPUT = { amount: 150, to: 'bob' }
const ADA = { user: 'ada', roles: ['approver'] }

async function setUp(options: Partial<GateOptions> = {}, input: object = INPUT, execute = (): unknown => 'paid') {
  const ran: unknown[] = []
  const audit = memoryAudit()
  const tools = { pay: { inputSchema: PAY, execute: (given: unknown) => (ran.push(given), execute()) } }
  const gate = createGate({ tools, policy: { ask: [{ match: 'pay', edit: true }] }, audit, ...options } as GateOptions)
  const view = await gate.view({ user: 'vera' })
  const call = (more = {}): Promise<CallOutcome> => view.call({ tool: 'pay', input, edits: true, ...more })
  const pending = async () => (await gate.approvals.list({ status: 'pending' }))[0] ?? assert.fail('nothing waits')
  const approve = async (patch?: Record<string, unknown>) =>
    gate.approvals.decide(ADA, (await pending()).id, { decision: 'approve', ...(patch && { input: patch }) })
  return { gate, ran, audit, call, approve, pending }
}

describe('an edited call', () => {
  it('runs with the changed input, once, when the caller repeats its own, and tells the model', async () => {
    const { call, approve, ran } = await setUp()
    assert.equal((await call()).status, 'waiting')
    await approve({ amount: 100 })
    const done = await call()
    assert.equal(done.text, 'A person changed amount from 150 to 100 before it ran.\npaid')
    assert.equal(done.status === 'done' && done.note, 'A person changed amount from 150 to 100 before it ran.')
    assert.deepEqual(ran, [{ amount: 100, to: 'bob' }])
    assert.equal((await call()).status, 'waiting')
    assert.equal((await call({ input: { ...INPUT, amount: 100 } })).status, 'waiting')
  })

  it('is recorded with both hashes, what was changed and by whom', async () => {
    const { call, approve, audit } = await setUp()
    await call()
    await approve({ amount: 100 })
    await call()
    const [asked, decided, ran] = audit.records
    assert.equal(decided?.detail, 'approved, changed amount')
    assert.equal(ran?.event, 'tool_call')
    assert.equal(ran?.detail, 'approved by ada, changed by ada')
    assert.equal(ran?.asked_hash, asked?.input_hash)
    assert.notEqual(ran?.input_hash, asked?.input_hash)
    assert.deepEqual(JSON.parse(ran?.edited ?? ''), [{ field: 'amount', from: 150, to: 100 }])
  })

  it('is recorded without values where previews are off', async () => {
    const audit = memoryAudit({ preview: false })
    const { call, approve } = await setUp({ audit })
    await call()
    await approve({ amount: 100 })
    await call()
    assert.equal(audit.records.at(-2)?.edited, '[{"field":"amount"}]')
  })

  it('keeps the secrets that nobody saw, and shows none', async () => {
    const note = { password: 'hunter2-s3cret', text: 'rent' }
    const { call, approve, pending, ran, audit } = await setUp({}, { ...INPUT, note })
    await call()
    const { input } = await pending()
    assert.ok(!JSON.stringify(input).includes('hunter2'))
    await assert.rejects(approve({ note: (input as { note: object }).note as Record<string, unknown> }), {
      code: 'approval_edit_refused',
    })
    await approve({ note: { text: 'rent of May' } })
    const { text } = await call()
    assert.deepEqual(ran, [{ ...INPUT, note: { ...note, text: 'rent of May' } }])
    assert.equal(text, 'A person changed note.text from "rent" to "rent of May" before it ran.\npaid')
    assert.ok(!JSON.stringify(audit.records).includes('hunter2'))
  })

  it('is refused where a rule denies the changed input', async () => {
    const deny = [{ match: 'pay', input: 'input.amount > 1000.0', message: 'Too much.' }]
    const { call, approve, ran } = await setUp({ policy: { ask: [{ match: 'pay', edit: true }], deny } })
    await call()
    await approve({ amount: 2000 })
    const outcome = await call()
    assert.equal(outcome.status, 'refused')
    assert.match(outcome.text, /^A person changed amount from 150 to 2000\. TOOL_CALL_BLOCKED: Too much\./)
    assert.deepEqual(ran, [])
  })

  it('takes its limits with the changed input', async () => {
    const { call, approve, ran } = await setUp({
      limits: [{ match: 'pay', cost: 'input.amount', max: 200, windowMs: 60_000, per: ['user'] }],
    } as unknown as Partial<GateOptions>)
    await call()
    await approve({ amount: 300 })
    assert.match((await call()).text, /^A person changed amount from 150 to 300\. TOOL_CALL_BLOCKED: rate limited/)
    assert.deepEqual(ran, [])
  })

  it('passes the hooks with the changed input, too', async () => {
    const seen: unknown[] = []
    const hooks = {
      beforeToolCall: ({ input }: { input: unknown }) => {
        seen.push((input as { amount: number }).amount)
        return seen.at(-1) === 100 ? { deny: 'not 100' } : undefined
      },
    }
    const { call, approve, ran } = await setUp({ hooks } as unknown as Partial<GateOptions>)
    await call()
    await approve({ amount: 100 })
    assert.equal((await call()).status, 'refused')
    assert.deepEqual([seen, ran], [[150, 150, 100], []])
  })

  it('asks again where another rule asks about the changed input, and runs once both are approved', async () => {
    const policy = {
      ask: [
        { id: 'all', match: 'pay', edit: true },
        { id: 'abroad', match: 'pay', input: "input.to == 'eve'", by: 'other' as const },
      ],
    }
    const { call, approve, pending, ran, gate } = await setUp({ policy })
    await call()
    await approve({ to: 'eve' })
    const again = await call()
    assert.equal(again.status, 'waiting')
    assert.match(again.text, /^A person changed to from "bob" to "eve"\. Waiting for approval/)
    const { approver, input } = await pending()
    assert.deepEqual([approver, input], [{ by: 'other' }, { ...INPUT, to: 'eve' }])
    await approve()
    assert.equal((await call()).status, 'done')
    assert.deepEqual(ran, [{ ...INPUT, to: 'eve' }])
    assert.deepEqual(
      (await gate.approvals.list()).map(({ status }) => status),
      ['consumed', 'consumed'],
    )
    assert.equal((await call()).status, 'waiting')
  })

  it('asks again where two rules have the same selector and no id', async () => {
    const policy = {
      ask: [
        { match: 'pay', input: 'input.amount > 100.0', edit: true },
        { match: 'pay', input: 'input.amount > 1000.0', edit: true, approvers: 2 },
      ],
    }
    const { call, approve, pending, ran } = await setUp({ policy })
    await call()
    await approve({ amount: 5000 })
    assert.equal((await call()).status, 'waiting')
    assert.deepEqual((await pending()).approver, { by: 'other', count: 2 })
    assert.deepEqual(ran, [])
  })

  it('gives both approvals back where the call does not run', async () => {
    const policy = {
      ask: [
        { id: 'all', match: 'pay', edit: true },
        { id: 'abroad', match: 'pay', input: "input.to == 'eve'" },
      ],
    }
    const audit = memoryAudit()
    let isDown = false
    const write = (entry: Parameters<typeof audit.write>[0]) => {
      if (isDown && entry.event === 'tool_call') throw new Error('full')
      return audit.write(entry)
    }
    const { call, approve, gate } = await setUp({ policy, audit: { ...audit, write }, onFault: () => {} })
    await call()
    await approve({ to: 'eve' })
    await call()
    await approve()
    isDown = true
    assert.equal((await call()).status, 'refused')
    assert.deepEqual(
      (await gate.approvals.list()).map(({ status }) => status),
      ['approved', 'approved'],
    )
    isDown = false
    assert.equal((await call()).status, 'done')
  })

  it('stays changed in its later rounds', async () => {
    let round = 0
    const { call, approve, ran } = await setUp({}, INPUT, () =>
      round++ === 0 ? new InputRequired({ q: '?' }) : 'paid',
    )
    await call()
    await approve({ amount: 100 })
    const first = await call()
    assert.equal(first.status, 'input_required')
    const continues = first.status === 'input_required' ? JSON.parse(JSON.stringify(first.continues)) : undefined
    const done = await call({ continues })
    assert.equal(done.text, 'A person changed amount from 150 to 100 before it ran.\npaid')
    assert.deepEqual(ran, [
      { ...INPUT, amount: 100 },
      { ...INPUT, amount: 100 },
    ])
  })

  it('runs with the changed input where the host makes the approved call', async () => {
    const { call, approve, pending, ran } = await setUp()
    await call()
    const { id } = await pending()
    await approve({ amount: 100 })
    assert.equal((await call({ spends: id })).status, 'done')
    assert.deepEqual(ran, [{ ...INPUT, amount: 100 }])
  })

  it('fails with the note', async () => {
    const { call, approve } = await setUp({}, INPUT, () => {
      throw new Error('no money')
    })
    await call()
    await approve({ amount: 100 })
    assert.equal((await call()).text, 'A person changed amount from 150 to 100 before it ran.\npay failed: no money')
  })
})

describe('an edit', () => {
  it('is refused at once where the changed input cannot be one of the tool', async () => {
    const { approve, call, pending } = await setUp()
    await call()
    const wrong: readonly Record<string, unknown>[] = [{ amount: 'much' }, { fee: 1 }, { to: null }]
    for (const patch of wrong) await assert.rejects(approve(patch), { code: 'approval_edit_refused' })
    assert.equal((await pending()).status, 'pending')
  })

  it('is refused where a rule that asks does not allow it, or the program takes no changed input', async () => {
    const strict = await setUp({ policy: { ask: [{ match: 'pay', edit: true }, 'pay'] } })
    await strict.call()
    await assert.rejects(strict.approve({ amount: 1 }), { code: 'approval_edit_refused' })
    const old = await setUp()
    await old.call({ edits: false })
    await assert.rejects(old.approve({ amount: 1 }), { code: 'approval_edit_refused' })
  })

  it('is not used after the rule stops to allow it', async () => {
    const { call, approve, gate, ran } = await setUp()
    await call()
    await approve({ amount: 100 })
    gate.setPolicy({ ask: ['pay'] })
    assert.equal((await call()).status, 'waiting')
    assert.deepEqual(ran, [])
  })
})
