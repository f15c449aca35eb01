import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { manualClock } from '../../../testing/src/manual-clock.ts'
import { createGate } from '../gate/gate.ts'
import { defineTool } from '../tools/tool.ts'
import type { RateLimit } from './limits.ts'
import { parseToolRateLimits } from './rate-limiter.ts'

const DAY_MS = 86_400_000
const EUR = { name: 'EUR', per: 100 }
const BUDGET: RateLimit = {
  match: 'pay',
  max: 50_000,
  windowMs: DAY_MS,
  per: ['user'],
  cost: 'units(input.amount, 2)',
}

async function payer(limit: Partial<RateLimit>) {
  const gate = createGate({
    tools: [defineTool({ name: 'pay', execute: () => 'paid' })],
    limits: [{ ...BUDGET, ...limit } as RateLimit],
    clock: manualClock(),
  })
  const view = await gate.view({ user: 'vera' })
  return { gate, pay: (amount: unknown) => view.call({ tool: 'pay', input: { amount } }) }
}

const open = (limit: object) => () => createGate({ tools: { pay: {} }, limits: [{ ...BUDGET, ...limit }] })

describe('the unit of a limit', () => {
  it('is that of the amounts in a refusal', async () => {
    const { gate, pay } = await payer({ unit: EUR })
    assert.equal((await pay(470)).status, 'done')
    const refused = await pay('90')
    assert.equal(
      refused.text,
      'TOOL_CALL_BLOCKED: rate limited (500.00 EUR in 24 hours: this call costs 90.00 EUR, and 30.00 of 500.00 EUR are left). Try again in about 24 hours.',
    )
    assert.equal(refused.status === 'refused' && refused.decision.reasons[0]?.resetMs, DAY_MS, 'exact')
    const [budget] = await gate.budgets()
    assert.deepEqual(
      [budget?.limit, budget?.unit, budget?.remaining],
      ['500.00 EUR in 24 hours', { name: 'EUR', places: 2 }, 3000],
    )
  })

  it('has as many decimals as it needs', async () => {
    const { pay } = await payer({ max: 5, unit: EUR })
    assert.match((await pay(0.07)).text, /this call costs 0\.07 EUR, and 0\.05 EUR is the whole limit/)
    const whole = await payer({ cost: 'input.amount', max: 10, unit: 'tokens' })
    assert.match((await whole.pay(11)).text, /this call costs 11 tokens, and 10 tokens is the whole limit/)
  })

  it('names what a limit without a cost counts', async () => {
    const limits = [{ match: 'search', max: 1, windowMs: 120_000, unit: 'searches' }]
    const gate = createGate({ tools: { search: { execute: () => '' } }, limits, clock: manualClock() })
    const view = await gate.view({})
    await view.call({ tool: 'search' })
    assert.equal(
      (await view.call({ tool: 'search' })).text,
      'TOOL_CALL_BLOCKED: rate limited (1 searches in 2 minutes). Try again in 2 minutes.',
    )
  })

  for (const [limit, path, problem] of [
    [{ unit: '' }, 'limits[0].unit', /must be a name/],
    [{ unit: 'E\nUR' }, 'limits[0].unit', /on one line/],
    [{ unit: 7 }, 'limits[0].unit', /must be a name, or an object/],
    [{ unit: { name: 'EUR', per: 60 } }, 'limits[0].unit.per', /must be 10, 100 and so on up to 10\^9, not 60/],
    [{ unit: { name: 'EUR', per: '100' } }, 'limits[0].unit.per', /must be 10/],
    [{ unit: { per: 100 } }, 'limits[0].unit.name', /must be a name/],
    [{ unit: { name: 'EUR', by: 100 } }, 'limits[0].unit.by', /unknown key/],
    [{ units: 'EUR' }, 'limits[0].units', /did you mean "unit"/],
    [{ unit: EUR, cost: undefined }, 'limits[0].unit.per', /has no meaning without a "cost"/],
    [{ message: ' ' }, 'limits[0].message', /must be a text/],
    [{ message: 'Only {lefd}.' }, 'limits[0].message', /\{lefd\} stands for nothing; did you mean "left"\?/],
    [{ message: 'Ask {who}.' }, 'limits[0].message', /stands for nothing; write \{cost\}, \{left\}, \{max\}, \{wait\}/],
  ] as const)
    it(`refuses ${JSON.stringify(limit)}`, () => assert.throws(open(limit), { path, problem }))
})

describe('the message of a limit', () => {
  it('takes the place of the usual text, with the amounts that it asks for', async () => {
    const message = 'The budget has {left} of {max}, and this costs {cost}. Ask Vera, or wait: more is free {wait}.'
    const { pay } = await payer({ unit: EUR, message })
    await pay(470)
    assert.equal(
      (await pay(90)).text,
      'TOOL_CALL_BLOCKED: The budget has 30.00 EUR of 500.00 EUR, and this costs 90.00 EUR. Ask Vera, or wait: more is free in about 24 hours.',
    )
  })

  it('is followed by when to try again, if it does not say so', async () => {
    for (const message of ['The budget is spent', 'The budget is spent.']) {
      const { pay } = await payer({ message })
      await pay(500)
      assert.equal((await pay(1)).text, 'TOOL_CALL_BLOCKED: The budget is spent. Try again in about 24 hours.')
    }
  })

  it('never says to wait for a call that costs more than the whole limit', async () => {
    const usual = await (await payer({})).pay(501)
    assert.equal(
      usual.text,
      'TOOL_CALL_BLOCKED: rate limited (50000/86400: this call costs 50100, and 50000 is the whole limit).',
    )
    assert.equal(usual.status === 'refused' && usual.decision.reasons[0]?.resetMs, undefined)
    const { pay } = await payer({ message: 'Too much' })
    assert.equal((await pay(501)).text, 'TOOL_CALL_BLOCKED: Too much. Try again with less.')
  })

  it('shows the values of nobody: what looks like another place stays as it is written', async () => {
    const { pay } = await payer({ message: 'Costs { cost } or {} $& $1 {cost}' })
    await pay(500)
    assert.match((await pay(1)).text, /Costs \{ cost \} or \{\} \$& \$1 100\. Try/)
  })
})

describe('parseToolRateLimits', () => {
  it('returns units and messages', () => {
    const limit = { tool: 'a', max: 1, windowSeconds: 60, unit: 'searches', message: 'No.' }
    const [read] = parseToolRateLimits([limit])
    assert.deepEqual([read?.unit, read?.message], ['searches', 'No.'])
    assert.deepEqual(parseToolRateLimits(read ? [read] : []), [read])
  })
})
