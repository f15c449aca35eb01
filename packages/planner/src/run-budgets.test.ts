import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { defineTool } from '@toolgate/core'
import { callOf, paused, setStage, toldOf, VERA } from './testing/stage.ts'

const ENDLESS = [callOf('search')]
const many = (count: number) => Array.from({ length: count }, (_, i) => ({ name: 'search', id: `c${i}` }))

describe('budgets of a run', () => {
  it('end it when its steps are used up, unless it had ended by itself', async () => {
    const { planner, model, told } = setStage({ turns: ENDLESS, planner: { budgets: { steps: 3 } } })
    const result = await planner.run({ prompt: 'x', caller: VERA })
    assert.deepEqual([result.status === 'failed' && result.reason, model.requests.length], ['budget_steps', 3])
    assert.equal(result.messages.length, 7, 'nothing is lost')
    assert.equal(told().at(-1), 'run-ended')
    const enough = await setStage({ turns: [callOf('search'), 'Ok.'] }).planner.run({
      prompt: 'x',
      caller: VERA,
      budgets: { steps: 2 },
    })
    assert.equal(enough.status, 'done')
    const none = setStage({ turns: ENDLESS })
    const never = await none.planner.run({ prompt: 'x', caller: VERA, budgets: { steps: 0 } })
    assert.deepEqual([never.status === 'failed' && never.reason, none.model.requests.length], ['budget_steps', 0])
  })

  it('end it when its tokens are used up', async () => {
    const { planner, model } = setStage({ turns: ENDLESS })
    const result = await planner.run({ prompt: 'x', caller: VERA, budgets: { tokens: 5 } })
    assert.deepEqual(
      [result.status === 'failed' && result.reason, model.requests.length, result.used.tokens],
      ['budget_tokens', 3, 6],
    )
  })

  it('end it when its time is over, between steps', async () => {
    const stage = setStage({
      turns: ENDLESS,
      planner: { prepareStep: () => stage.clock.advance(100) as undefined },
    })
    const result = await stage.planner.run({ prompt: 'x', caller: VERA, budgets: { timeMs: 250 } })
    assert.deepEqual([result.status === 'failed' && result.reason, result.used.timeMs], ['budget_time', 300])
  })

  it('refuse calls over their number, on the record, and let the model answer', async () => {
    const { planner, witness, audit } = setStage({ turns: [many(5), 'I have enough.'] })
    const result = await planner.run({ prompt: 'x', caller: VERA, budgets: { calls: 2 } })
    assert.deepEqual(
      [result.status, result.text, witness.ran.length, result.used.calls],
      ['done', 'I have enough.', 2, 2],
    )
    assert.equal(audit.records.filter(({ reason }) => reason === 'hook_denied').length, 3)
    assert.equal(toldOf(result, 'c4'), 'TOOL_CALL_BLOCKED: the run has used its 2 calls; continue without any')
  })

  it('hold where a model gives several calls one id', async () => {
    const calls = [1, 2, 3].map((n) => ({ name: 'search', id: 'same', input: { n } }))
    const stage = setStage({ turns: [calls, 'Ok.'], planner: { budgets: { calls: 1 } } })
    const { used } = await stage.planner.run({ prompt: 'x', caller: VERA })
    assert.deepEqual([stage.witness.ran, used.calls], [['search'], 1])
  })

  it('end it when the model keeps calling after a refusal', async () => {
    const { planner, model, witness } = setStage({ turns: ENDLESS })
    const result = await planner.run({ prompt: 'x', caller: VERA, budgets: { calls: 1 } })
    assert.deepEqual(
      [result.status === 'failed' && result.reason, witness.ran.length, model.requests.length],
      ['budget_calls', 1, 3],
    )
  })

  it('are the smaller of the planner’s and the run’s', async () => {
    const { planner, model } = setStage({ turns: ENDLESS, planner: { budgets: { steps: 2 } } })
    await planner.run({ prompt: 'x', caller: VERA, budgets: { steps: 9, tokens: 100 } })
    await planner.run({ prompt: 'x', caller: VERA, budgets: { steps: 1 } })
    assert.equal(model.requests.length, 3)
  })

  it('survive a pause, count no time of it, and can only shrink', async () => {
    const turns = [callOf('search'), callOf('pay'), callOf('search')]
    const open = async () => {
      const stage = setStage({ turns, planner: { prepareStep: () => stage.clock.advance(10) as undefined } })
      const budgets = { steps: 5, calls: 9, tokens: 100, timeMs: 1000 }
      const pause = paused(await stage.planner.run({ prompt: 'x', caller: VERA, budgets }))
      assert.deepEqual(pause.used, { steps: 2, calls: 1, tokens: 4, timeMs: 20 })
      stage.clock.advance(100_000)
      return { stage, resume: { caller: VERA, approve: true }, token: pause.resumeToken }
    }
    const first = await open()
    const wider = await first.stage.planner.resume(first.token, { ...first.resume, budgets: { steps: 50 } })
    assert.deepEqual(
      [wider.status === 'failed' && wider.reason, wider.used],
      ['budget_steps', { steps: 5, calls: 5, tokens: 10, timeMs: 50 }],
    )
    const second = await open()
    const smaller = await second.stage.planner.resume(second.token, { ...second.resume, budgets: { calls: 2 } })
    assert.equal(smaller.status === 'failed' && smaller.reason, 'budget_calls')
    const third = await open()
    const spent = await third.stage.planner.resume(third.token, { ...third.resume, budgets: { steps: 2 } })
    assert.equal(spent.status === 'failed' && spent.reason, 'budget_steps')
    assert.equal(third.stage.model.requests.length, 2)
  })

  it('count a call that failed, and none that was refused or waits', async () => {
    const tools = [
      defineTool({ name: 'search', execute: () => Promise.reject(new Error('no')) }),
      defineTool({ name: 'pay', execute: () => 'paid' }),
    ]
    const { planner } = setStage({
      tools,
      turns: [
        [
          { name: 'search', id: 'a' },
          { name: 'pay', id: 'b' },
          { name: 'none', id: 'c' },
        ],
      ],
    })
    assert.equal(paused(await planner.run({ prompt: 'x', caller: VERA })).used.calls, 1)
  })
})
