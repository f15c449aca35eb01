import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createGate } from '../gate/gate.ts'
import type { GateOptions } from '../gate/options.ts'
import { memoryAudit } from '../audit/memory.ts'
import { defineTool, type ToolDefinition } from '../tools/tool.ts'

const SCHEMA = {
  type: 'object',
  properties: {
    amount: { type: 'integer' },
    ids: { type: 'array', items: { type: 'integer' } },
    path: { type: 'string' },
  },
  additionalProperties: false,
}

function createWorld(
  inputs: ToolDefinition['inputs'],
  options: Partial<GateOptions> = {},
  inputSchema: ToolDefinition['inputSchema'] = SCHEMA,
) {
  const ran: unknown[] = []
  const tool: string = 'pay'
  const audit = memoryAudit()
  const gate = createGate({
    tools: [defineTool({ name: 'pay', inputSchema, inputs, execute: (input) => ran.push(input) })],
    policy: { allow: ['*'] },
    audit,
    onWarning: () => {},
    ...options,
  })
  const call = async (input: unknown) => (await gate.view({ user: 'vera' })).call({ tool, input })
  return { gate, ran, audit, call }
}

describe("inputs: 'coerced'", () => {
  it('runs what the schema wants, and records that', async () => {
    const { call, ran, audit } = createWorld('coerced')
    const input = { amount: '1915883588174806058', ids: ['1', 2] }
    assert.equal((await call(input)).status, 'done')
    const coerced = { amount: 1915883588174806058n, ids: [1, 2] }
    assert.deepEqual(ran, [coerced])
    assert.ok(Object.isFrozen((ran[0] as typeof coerced).ids))
    assert.deepEqual(
      audit.records.map(({ event, detail }) => [event, detail]),
      [
        ['tool_call', 'coerced'],
        ['tool_result', undefined],
      ],
    )
    assert.deepEqual(input, { amount: '1915883588174806058', ids: ['1', 2] })
  })

  it('says nothing about an input that fits, which stays as it is', async () => {
    const { call, ran, audit } = createWorld('coerced')
    await call({ amount: 1, ids: [2], path: '3' })
    assert.deepEqual([ran, audit.records[0]?.detail], [[{ amount: 1, ids: [2], path: '3' }], undefined])
  })

  it('is decided on the coerced input', async () => {
    const deny = [{ match: 'pay', input: 'input.amount > 100' }]
    const { call, ran } = createWorld('coerced', { policy: { allow: ['*'], deny } })
    assert.equal((await call({ amount: '200' })).status, 'refused')
    assert.equal((await call({ amount: '50' })).status, 'done')
    assert.deepEqual(ran, [{ amount: 50 }])
  })

  it('asks for an approval of the coerced input, which any spelling of it uses', async () => {
    const { gate, call, ran } = createWorld('coerced', { policy: { allow: ['*'], ask: ['pay'] } })
    const waiting = await call({ amount: '200' })
    assert.ok(waiting.status === 'waiting')
    assert.deepEqual(waiting.approval.input, { amount: 200 })
    await gate.approvals.decide({ user: 'boss', roles: ['approver'] }, waiting.approval.id, { decision: 'approve' })
    assert.equal((await call({ amount: 200 })).status, 'done')
    assert.deepEqual(ran, [{ amount: 200 }])
  })

  it('counts the coerced input as a cost', async () => {
    const { call } = createWorld('coerced', {
      limits: [{ match: 'pay', cost: 'input.amount', max: 100, windowMs: 60_000, per: ['user'] }],
    })
    assert.equal((await call({ amount: '60' })).status, 'done')
    assert.equal((await call({ amount: '60' })).status, 'refused')
  })

  it('coerces an input that a hook replaces', async () => {
    const { call, ran } = createWorld('coerced', {
      hooks: { beforeToolCall: () => ({ allow: true, input: { amount: '7' } }) },
    })
    await call({ amount: 1 })
    assert.deepEqual(ran, [{ amount: 7 }])
  })

  it('refuses what it cannot coerce, with the problem of the input as it came', async () => {
    const { call, ran } = createWorld('coerced')
    for (const input of [{ amount: 'many' }, { amount: '1', other: 2 }, { amount: true }, 'text', { ids: '7' }]) {
      const outcome = await call(input)
      assert.ok(outcome.status === 'refused')
      assert.equal(outcome.decision.reasons[0]?.code, 'input_invalid')
    }
    assert.deepEqual(ran, [])
  })

  it('has the last word of the validator of the gate', async () => {
    const validate = (_: object, input: unknown) =>
      typeof (input as { amount: unknown }).amount === 'number'
        ? undefined
        : { pointer: '', message: 'is not a number' }
    const { call } = createWorld('coerced', { validateInput: validate })
    assert.equal((await call({ amount: '7' })).status, 'done')
    assert.equal((await call({ amount: 'x' })).status, 'refused')
  })

  it('is refused for an input that takes too long', async () => {
    const { call } = createWorld(
      'coerced',
      {},
      { type: 'object', additionalProperties: { type: 'array', items: { type: 'object' } } },
    )
    const hostile = Object.fromEntries(Array.from({ length: 2000 }, (_, i) => [`a${i}`, ['[x', '[y']]))
    assert.equal((await call(hostile)).status, 'refused')
  })
})

describe('inputs by default', () => {
  it('refuses a text where the schema wants a number, as with checked', async () => {
    for (const inputs of [undefined, 'checked'] as const)
      assert.equal((await createWorld(inputs).call({ amount: '7' })).status, 'refused')
  })

  it('has no other value', () => {
    const inputs = 'loose' as 'checked'
    assert.throws(() => defineTool({ name: 'a', inputs }), /inputs must be one of checked, coerced, server/)
  })
})

describe("inputs: 'server'", () => {
  it('runs any object as it came', async () => {
    const { call, ran, audit } = createWorld('server')
    const input = { amount: 'many', other: { x: [1] } }
    assert.equal((await call(input)).status, 'done')
    assert.deepEqual([ran, audit.records[0]?.detail], [[input], undefined])
    assert.equal((await call('text')).status, 'refused')
    assert.equal((await call([1])).status, 'refused')
  })

  it('makes no condition looser: one that cannot be evaluated refuses', async () => {
    for (const policy of [
      { allow: ['*'], deny: [{ match: 'pay', input: 'input.amount > 100' }] },
      { allow: ['*'], deny: [{ match: 'pay', input: 'has(input.amount) && input.amount > 100' }] },
      { allow: [{ match: 'pay', input: 'input.amount < 100' }] },
      { allow: ['*'], deny: [{ match: 'pay', input: "!within(input.path, '/work')" }] },
      { allow: [{ match: 'pay', input: "within(input.path, '/work')" }] },
    ]) {
      for (const input of [
        { amount: '200', path: 7 },
        { amount: ['200'], path: ['/work'] },
        { amount: { a: 1 }, path: null },
        {},
      ]) {
        const { call, ran } = createWorld('server', { policy })
        const isSilent = JSON.stringify(policy).includes('has(') && !('amount' in input)
        assert.equal((await call(input)).status, isSilent ? 'done' : 'refused', JSON.stringify([policy, input]))
        assert.equal(ran.length, isSilent ? 1 : 0)
      }
    }
  })

  it('asks where a condition that asks cannot be evaluated, or refuses', async () => {
    const policy = { allow: ['*'], ask: [{ match: 'pay', input: 'input.amount > 100' }] }
    const { call, ran } = createWorld('server', { policy })
    assert.notEqual((await call({ amount: '200' })).status, 'done')
    assert.deepEqual(ran, [])
  })

  it('refuses a cost that is no number', async () => {
    for (const amount of ['60', '-5', -5, null, [60], true]) {
      const limits = [{ match: 'pay', cost: 'input.amount', max: 100, windowMs: 60_000, per: ['user'] as const }]
      const { call, ran } = createWorld('server', { limits })
      assert.equal((await call({ amount })).status, 'refused', JSON.stringify(amount))
      assert.deepEqual(ran, [])
    }
  })
})
