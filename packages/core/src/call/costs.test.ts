import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { memoryAudit } from '../audit/memory.ts'
import { createGate } from '../gate/gate.ts'
import type { GateOptions } from '../gate/options.ts'
import { manualClock } from '../../../testing/src/manual-clock.ts'
import { defineTool } from '../tools/tool.ts'
import type { RateLimit } from './limits.ts'
import { createToolRateLimiter, parseToolRateLimits } from './rate-limiter.ts'

const DAY_MS = 86_400_000
const BUDGET: RateLimit = {
  match: 'pay:*',
  max: 50_000,
  windowMs: DAY_MS,
  per: ['tenant', 'user'],
  cost: 'units(input.amount, 2)',
}

async function world(limit: Partial<RateLimit> = {}, options: Partial<GateOptions> = {}) {
  const clock = manualClock()
  const ran: unknown[] = []
  const audit = memoryAudit()
  const execute = (input: unknown) => ran.push(input)
  const tools = ['card', 'wire'].map((name) => defineTool({ name, namespace: 'pay', execute }))
  const gate = createGate({ tools, limits: [{ ...BUDGET, ...limit }], clock, audit, onFault: () => {}, ...options })
  const pay = async (amount: unknown, tool = 'pay:card', user = 'vera') =>
    (await gate.view({ user })).call({ tool, input: { amount } })
  return { gate, pay, ran, clock, audit }
}

describe('a limit with a cost', () => {
  it('has one budget for all its tools, and says what is left where a call costs more', async () => {
    const { pay, ran, clock } = await world()
    assert.equal((await pay(300)).status, 'done')
    clock.advance(1000)
    assert.equal((await pay('150.00', 'pay:wire')).status, 'done')
    const refused = await pay(50.01)
    assert.equal(
      refused.text,
      'TOOL_CALL_BLOCKED: rate limited (50000/86400: this call costs 5001, and 5000 of 50000 are left). Try again in about 24 hours.',
    )
    assert.equal((await pay(50)).status, 'done')
    assert.equal((await pay(0)).status, 'done')
    assert.equal((await pay(1, 'pay:card', 'ada')).status, 'done')
    assert.equal(ran.length, 5)
    clock.advance(DAY_MS - 1000)
    assert.equal((await pay(300)).status, 'done')
  })

  it('says that a call can never run which costs more than the whole limit', async () => {
    const { pay } = await world()
    assert.match((await pay(500.01)).text, /this call costs 50001, and 50000 is the whole limit/)
  })

  it('runs nothing whose cost cannot count', async () => {
    const { gate, pay, ran, audit } = await world()
    for (const amount of [-1, 'a lot', null, 1e300, [5], '-0.001', Number.NaN])
      assert.equal((await pay(amount)).status, 'refused', String(amount))
    const view = await gate.view({ user: 'vera' })
    const absent = await view.call({ tool: 'pay:card', input: {} })
    assert.equal(
      absent.text,
      'TOOL_CALL_BLOCKED: it is not known what this call would cost, or it costs more than one call may',
    )
    assert.deepEqual(ran, [])
    const { reason, detail } = audit.records.at(-1) ?? {}
    assert.equal(reason, 'cost_invalid')
    assert.match(
      String(detail),
      /the limit pay:\*:50000\/86400: its cost "units\(input.amount, 2\)" is not known: No such key/,
    )
    assert.equal((await view.preview({ tool: 'pay:card', input: { amount: -5 } })).status, 'refused')
  })

  it('takes maxCost where the input does not say it, and refuses what costs more', async () => {
    const { gate, pay } = await world({ maxCost: 20_000 })
    const view = await gate.view({ user: 'vera' })
    for (const status of ['done', 'done', 'refused'])
      assert.equal((await view.call({ tool: 'pay:card', input: {} })).status, status)
    assert.equal((await pay(200.01, 'pay:card', 'ada')).status, 'refused')
    assert.equal((await pay('x', 'pay:card', 'ada')).status, 'refused')
    assert.equal((await pay(200, 'pay:card', 'ada')).status, 'done')
  })

  it('is taken with the other limits or not at all', async () => {
    const { pay } = await world({}, { limits: [BUDGET, 'pay:card:2/60'] })
    assert.equal((await pay(100)).status, 'done')
    assert.equal((await pay(100)).status, 'done')
    assert.match((await pay(100)).text, /rate limited \(2\/60\)/)
    assert.equal((await pay(300, 'pay:wire')).status, 'done')
    assert.equal((await pay(0.01, 'pay:wire')).status, 'refused')
  })

  it('counts the input that a hook has put in place of the model’s', async () => {
    const { pay, ran } = await world({}, { hooks: { beforeToolCall: () => ({ input: { amount: 400 } }) } })
    assert.equal((await pay(1)).status, 'done')
    assert.equal((await pay(1)).status, 'refused')
    assert.deepEqual(ran, [{ amount: 400 }])
  })

  it('asks nobody to approve what has no room', async () => {
    const { gate, pay } = await world({}, { policy: { ask: ['pay:*'] } })
    assert.equal((await pay(600)).status, 'refused')
    assert.equal((await pay(-1)).status, 'refused')
    const waiting = await pay(400)
    assert.ok(waiting.status === 'waiting')
    await gate.approvals.decide({ user: 'vera' }, waiting.approval.id, { decision: 'approve' })
    assert.equal((await pay(400)).status, 'done')
    assert.equal((await pay(200)).status, 'refused')
  })

  it('gives all of it back where the call does not go ahead', async () => {
    let fails = true
    const memory = memoryAudit()
    const write: typeof memory.write = (entry) => {
      if (fails && entry.event === 'tool_call') throw new Error('the disk is full')
      return memory.write(entry)
    }
    const { pay } = await world({}, { audit: { ...memory, write } })
    assert.equal((await pay(500)).status, 'refused')
    fails = false
    assert.equal((await pay(500)).status, 'done')
  })
})

describe('what a call has really cost', () => {
  const SETTLED = { settle: 'units(output.charged, 2)', refund: 'failed' } as const
  const worldOf = async (
    limit: Partial<RateLimit>,
    execute: (input: { amount: number }) => unknown,
    trusted = true,
  ) => {
    const audit = memoryAudit()
    const faults: unknown[] = []
    const tools = [defineTool({ name: 'card', namespace: 'pay', trusted, execute: (input) => execute(input as never) })]
    const limits = [{ ...BUDGET, ...limit }]
    const gate = createGate({ tools, limits, audit, onFault: (fault) => faults.push(fault) })
    const view = await gate.view({ user: 'vera' })
    const pay = async (amount: number, more: object = {}) => view.call({ tool: 'pay:card', input: { amount }, ...more })
    /** What is left, as a refusal says it. */
    const left = async () => Number(/and (\d+) of 50000/.exec((await pay(500)).text)?.[1])
    return { pay, left, audit, faults }
  }

  it('is settled when the call ends: less is free at once', async () => {
    const { pay, left } = await worldOf(SETTLED, () => ({ charged: '12.50' }))
    assert.equal((await pay(500)).status, 'done')
    assert.equal(await left(), 48_750)
  })

  it('is read from the structured content of a result, and never from its text', async () => {
    const text = [{ type: 'text', text: '{"charged":0}' }]
    const results = [{ content: text, structuredContent: { charged: 100 } }, { content: text }]
    const { pay, left, faults } = await worldOf(SETTLED, () => results.shift())
    await pay(200)
    assert.equal(await left(), 40_000)
    results.push({ content: text })
    await pay(300)
    assert.equal(await left(), 10_000)
    assert.equal(faults.length, 0)
  })

  it('counts beyond the limit where it is more, and the record says so', async () => {
    const { pay, left, audit } = await worldOf(SETTLED, () => ({ charged: 800 }))
    assert.equal((await pay(100)).status, 'done')
    assert.equal(await left(), 0)
    assert.equal(
      audit.records.find(({ event }) => event === 'tool_result')?.detail,
      'it has cost 80000 of pay:*:50000/86400, and 10000 were taken',
    )
  })

  it('is never told by a tool that the operator does not trust', async () => {
    const { pay, left } = await worldOf(SETTLED, () => ({ charged: 0 }), false)
    await pay(300)
    assert.equal(await left(), 20_000)
  })

  it('counts in full where the settlement cannot count, and that is a fault', async () => {
    for (const charged of [-1, 'much', null]) {
      const { pay, left, faults } = await worldOf(SETTLED, () => ({ charged }))
      await pay(300)
      assert.equal(await left(), 20_000)
      assert.match(String(faults[0]), /its settlement "units\(output.charged, 2\)" is not known/)
    }
  })

  it('is nothing for a call that fails, if the limit refunds it; a result that reports a failure is one', async () => {
    const fails = () => {
      throw new Error('declined')
    }
    const reports = () => ({ isError: true, content: [], structuredContent: { charged: 1 } })
    for (const execute of [fails, reports]) {
      const refunded = await worldOf(SETTLED, execute)
      await refunded.pay(300)
      assert.equal(await refunded.left(), NaN)
      const kept = await worldOf({ settle: SETTLED.settle }, execute)
      await kept.pay(300)
      assert.equal(await kept.left(), 20_000)
    }
  })

  it('is settled of a call with an idempotency key, too', async () => {
    const { pay, left } = await worldOf(SETTLED, () => ({ charged: 5 }))
    for (let i = 0; i < 2; i++) await pay(100, { idempotencyKey: 'step' })
    assert.equal(await left(), 49_500)
  })

  it('is not settled before the last item of a stream', async () => {
    async function* items() {
      yield 1
      throw new Error('cut')
    }
    const outputs: unknown[] = [items(), 'paid']
    const { pay, left } = await worldOf({ refund: 'failed' }, () => outputs.shift())
    const outcome = await pay(500)
    assert.ok(outcome.status === 'done')
    assert.equal(await left(), 0)
    await assert.rejects(Array.fromAsync(outcome.output as AsyncIterable<unknown>))
    assert.equal((await pay(500)).status, 'done')
  })
})

describe('limits with a cost, when they are loaded', () => {
  const wrong: readonly (readonly [limit: Partial<RateLimit>, path: string, problem: RegExp])[] = [
    [{ per: undefined }, 'limits[0].per', /is required with a "cost"/],
    [{ match: '*' }, 'limits[0].match', /cannot be \*/],
    [{ cost: 'input.' }, 'limits[0].cost', /character/],
    [{ cost: 'true' }, 'limits[0].cost', /must be a number/],
    [{ maxCost: -1 }, 'limits[0].maxCost', /whole number/],
    [{ maxCost: 1.5 }, 'limits[0].maxCost', /whole number/],
    [{ settle: 'outptu.n' }, 'limits[0].settle', /outptu/],
    [{ refund: 'always' as 'failed' }, 'limits[0].refund', /must be "failed"/],
    [{ cost: undefined, settle: 'output.n' }, 'limits[0].settle', /has no meaning without a "cost"/],
    [{ max: 2 ** 53 }, 'limits[0]', /is not a count of 1 to 9007199254740991/],
  ]
  it('are for a gate only', () => {
    assert.throws(() => createToolRateLimiter([BUDGET]), { path: 'limits[0].cost' })
    assert.throws(() => parseToolRateLimits([BUDGET]), { path: 'limits[0].cost' })
  })

  for (const [limit, path, problem] of wrong)
    it(`refuse ${JSON.stringify(limit)}`, async () => {
      await assert.rejects(world(limit), { path, problem })
    })
})
