import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createGate } from '../gate/gate.ts'
import { defineTool } from '../tools/tool.ts'

describe('why a person is asked', () => {
  const tool = defineTool({ name: 'pay', execute: () => 'paid' })
  const whyOf = async (input: string, given: object, message?: string) => {
    const gate = createGate({ tools: [tool], policy: { ask: [{ match: 'pay', input, ...(message && { message }) }] } })
    const view = await gate.view({ user: 'vera' })
    const outcome = await view.call({ tool: 'pay', input: given })
    return outcome.status === 'waiting' ? (outcome.approval.why ?? '').split(' policy "')[0] : outcome.status
  }

  it('is the message, then the values that the rule compares, then the rule', async () => {
    const rule = 'input.amount > 100.0'
    assert.equal(
      await whyOf(rule, { amount: 150 }, 'Large payments.'),
      'Large payments. amount is 150; more than 100 needs a person.',
    )
    assert.equal(await whyOf('100.0 <= input.amount', { amount: 150 }), 'amount is 150; at least 100 needs a person.')
    assert.equal(
      await whyOf("input.order.to != 'bob'", { order: { to: 'eve' } }),
      'order.to is "eve"; anything but "bob" needs a person.',
    )
    assert.equal(await whyOf("input.to == 'eve' || input.amount > 9.0", { to: 'eve', amount: 1 }), 'to is "eve".')
  })

  it('has another form for people who may not read rules: with the name of the rule, and without its texts', async () => {
    const toldOf = async (ask: object, given: object) => {
      const gate = createGate({
        tools: [tool],
        policy: { name: 'money', ask: [{ id: 'large', match: 'pay', ...ask }, 'pay'] },
      })
      const outcome = await (await gate.view({ user: 'vera' })).call({ tool: 'pay', input: given })
      return outcome.status === 'waiting' ? outcome.approval.told : outcome.status
    }
    const rest = 'A rule asks for approval of it. (rule money#ask[1])'
    assert.equal(
      await toldOf({ input: 'input.amount > 100.0', message: 'Large payments.' }, { amount: 150 }),
      `${rest} Large payments. amount is 150; more than 100 needs a person. (rule money#large)`,
    )
    assert.equal(
      await toldOf({ input: "input.to != 'corp-secret'" }, { to: 'eve' }),
      `${rest} A rule asks for approval of it. to is "eve". (rule money#large)`,
    )
  })

  it('names no value that is masked, and nothing that the rule does not compare', async () => {
    const why = await whyOf("input.password != 'x' && input.amount > 1.0", { password: 'hunter2hunter2', amount: 2 })
    assert.doesNotMatch(why ?? '', /hunter2/)
    assert.match(why ?? '', /amount is 2; more than 1 needs a person\./)
  })
})
