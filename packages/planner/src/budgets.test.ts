import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type CallOutcome, ConfigError, createGate, type Gate } from '@toolgate/core'
import { manualClock } from '@toolgate/testing'
import { type CallMeter, checkBudgets, createMeter, smallestBudgets } from './budgets.ts'

const call = async (meter: CallMeter, callId: string, tool: string = 'search'): Promise<CallOutcome> => {
  const gate: Gate = createGate({
    tools: {
      search: { execute: () => 'found' },
      pay: { execute: () => 'paid' },
      fail: { execute: () => Promise.reject(new Error('no')) },
    },
    policy: { ask: ['pay'] },
  })
  const outcome = await (await gate.view({})).call({ tool, callId, hooks: meter.hooks })
  meter.ended(outcome)
  return outcome
}

describe('createMeter', () => {
  it('says which budget leaves no room for another step', () => {
    const clock = manualClock()
    const meter = createMeter({ steps: 2, tokens: 10, timeMs: 100 }, clock)
    assert.equal(meter.spent(), undefined)
    meter.step()
    meter.tokens(9)
    clock.advance(99)
    assert.deepEqual([meter.spent(), meter.timeLeftMs()], [undefined, 1])
    meter.tokens(1)
    assert.equal(meter.spent(), 'budget_tokens')
    clock.advance(1)
    assert.equal(meter.spent(), 'budget_time')
    meter.step()
    assert.equal(meter.spent(), 'budget_steps')
  })

  it('continues from the use before a pause, and does not count the pause', () => {
    const clock = manualClock()
    const before = createMeter({ timeMs: 100 }, clock)
    before.step()
    before.tokens(3)
    clock.advance(60)
    before.stop()
    clock.advance(10_000)
    assert.deepEqual(before.used(), { steps: 1, calls: 0, tokens: 3, timeMs: 60 })
    const after = createMeter({ timeMs: 100 }, clock, before.used())
    clock.advance(39)
    assert.deepEqual([after.spent(), after.timeLeftMs()], [undefined, 1])
    clock.advance(1)
    assert.equal(after.spent(), 'budget_time')
  })

  it('refuses calls over the budget, and tells the model', async () => {
    const meter = createMeter({ calls: 2 }, manualClock())
    const calls = meter.calls()
    const outcomes = [await call(calls, '1'), await call(calls, '2', 'fail'), await call(calls, '3')]
    assert.deepEqual(
      outcomes.map(({ status }) => status),
      ['done', 'failed', 'refused'],
    )
    assert.equal(outcomes[2]?.text, 'TOOL_CALL_BLOCKED: the run has used its 2 calls; continue without any')
    assert.deepEqual([calls.refusedAny(), calls.refusedAny()], [true, false])
    assert.equal(meter.spent(), undefined)
  })

  it('lets no more calls run than the budget, however many are made at once and in however many loops', async () => {
    const meter = createMeter({ calls: 7 }, manualClock())
    const loops = [meter.calls(), meter.calls()]
    const outcomes = await Promise.all(
      Array.from({ length: 40 }, (_, i) => call(loops[i % 2] as CallMeter, `c${i >> 1}`)),
    )
    assert.equal(outcomes.filter(({ status }) => status === 'done').length, 7)
    assert.equal(meter.used().calls, 7)
  })

  it('lets no more run even if a provider gives all calls one id', async () => {
    const meter = createMeter({ calls: 3 }, manualClock())
    const calls = meter.calls()
    const outcomes = await Promise.all(Array.from({ length: 20 }, () => call(calls, 'same')))
    assert.equal(outcomes.filter(({ status }) => status === 'done').length, 3)
    assert.equal(meter.used().calls, 3)
    assert.equal((await call(calls, 'same')).status, 'refused')
  })

  it('takes nothing for a call that is refused or waits', async () => {
    const meter = createMeter({ calls: 1 }, manualClock())
    const calls = meter.calls()
    assert.equal((await call(calls, '1', 'pay')).status, 'waiting')
    assert.equal((await call(calls, '2', 'nothing')).status, 'refused')
    assert.equal(meter.used().calls, 0)
    assert.equal((await call(calls, '3')).status, 'done')
  })
})

describe('meetBudgets', () => {
  it('returns the smaller of each', () => {
    assert.deepEqual(smallestBudgets({ steps: 3, calls: 1 }, undefined, { steps: 2, tokens: 9 }), {
      steps: 2,
      calls: 1,
      tokens: 9,
    })
  })
})

describe('checkBudgets', () => {
  it('refuses invalid budgets', () => {
    checkBudgets({ steps: 0, calls: Infinity, timeMs: undefined })
    assert.throws(() => checkBudgets({ steps: -1 }), ConfigError)
    assert.throws(() => checkBudgets({ tokens: Number.NaN }), /budgets\.tokens: must be a number/)
    assert.throws(
      () => checkBudgets({ time: 5 } as object),
      /budgets\.time: unknown budget; did you mean "timeMs"\? The budgets are steps, calls, timeMs, tokens/,
    )
  })
})
