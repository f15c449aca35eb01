import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createGate } from '../gate/gate.ts'
import { manualClock } from '../../../testing/src/manual-clock.ts'
import { defineTool } from '../tools/tool.ts'

const DAY_MS = 86_400_000
const BUDGET = { match: 'pay:*', max: 500, windowMs: DAY_MS, per: ['tenant', 'user'], cost: 'input.amount' } as const

function setStage() {
  const clock = manualClock()
  const tools = [defineTool({ name: 'card', namespace: 'pay', execute: () => 'paid' })]
  const gate = createGate({ tools, limits: [BUDGET, { match: 'pay:*', max: 5000, windowMs: 1000 }], clock })
  const pay = async (amount: number, user: string) =>
    (await gate.view({ user, tenant: 'acme' })).call({ tool: 'pay:card', input: { amount } })
  return { gate, pay, clock }
}

describe('gate.budgets', () => {
  it('says what is left of each budget, whose it is, and when some of it is free again', async () => {
    const { gate, pay, clock } = setStage()
    assert.deepEqual(await gate.budgets(), [])
    await pay(100, 'vera')
    clock.advance(1000)
    await pay(350, 'vera')
    assert.equal((await pay(200, 'vera')).status, 'refused')
    await pay(0, 'ada')
    const common = { rule: 'pay:*', limit: '500/86400', max: 500 }
    const expected = [
      { ...common, holder: { tenant: 'acme', user: 'vera' }, used: 450, remaining: 50, resetMs: DAY_MS - 1000 },
      { ...common, holder: { tenant: 'acme', user: 'ada' }, used: 0, remaining: 500, resetMs: 0 },
    ]
    assert.deepEqual(await gate.budgets(), expected)
    assert.deepEqual(await gate.budgets(), expected, 'asking takes nothing')
    clock.advance(DAY_MS - 1000)
    assert.equal((await gate.budgets())[0]?.remaining, 150)
  })

  it('knows the latest 1,000, and reads as many as are asked for', async () => {
    const { gate, pay } = setStage()
    for (let i = 0; i < 1005; i++) await pay(1, `u${i}`)
    const all = await gate.budgets(2000)
    assert.equal(all.length, 1000)
    assert.ok(all.every(({ holder }) => holder.user !== 'u0'))
    assert.equal((await gate.budgets(3)).length, 3)
  })
})
