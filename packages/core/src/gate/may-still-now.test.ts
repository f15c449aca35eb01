import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createGate } from '../gate/gate.ts'
import type { GateOptions } from '../gate/options.ts'
import { manualClock } from '../../../testing/src/manual-clock.ts'
import { defineTool } from '../tools/tool.ts'
import { mayStillNow, refusedNow } from './may-still-now.ts'

const PAY = {
  type: 'object',
  properties: { amount: { type: 'number' }, to: { type: 'string' } },
  required: ['amount', 'to'],
} as const

const TOOLS = ['pay', 'read'].map((name) =>
  defineTool({ namespace: 'bank', name, inputSchema: PAY, execute: () => 'done' }),
)

async function open(options: Omit<GateOptions, 'tools'>) {
  const clock = manualClock()
  const gate = createGate({ tools: TOOLS, clock, ...options })
  const view = await gate.view({ user: 'vera', tenant: 'acme', roles: ['clerk'] })
  return { gate, view, clock }
}

const shown = async (options: Omit<GateOptions, 'tools'>) => {
  const { view } = await open(options)
  const { outcome } = view.explain('bank:pay')
  const may = await mayStillNow(view, 'bank:pay')
  assert.deepEqual(await mayStillNow(view, 'bank:read'), [], 'nothing is said of a tool that no rule names')
  return [outcome, ...may.map(({ outcome: word, on, code, path, example }) => ({ word, on, code, path, example }))]
}

describe('mayStillNow', () => {
  it('names a clause that denies by the input, with an input that shows it', async () => {
    assert.deepEqual(await shown({ policy: { deny: [{ match: 'bank:pay', input: 'input.amount > 100.0' }] } }), [
      'allow',
      { word: 'deny', on: 'input', code: 'input_denied', path: 'policy[0].deny[0]', example: { amount: 101, to: '' } },
    ])
  })

  it('names a clause that asks by the input, where two fields must differ', async () => {
    const input = "input.amount > 100.0 && input.to == 'bob'"
    assert.deepEqual(await shown({ policy: { ask: [{ match: 'bank:pay', input }] } }), [
      'allow',
      { word: 'ask', on: 'input', code: 'policy_ask', path: 'policy[0].ask[0]', example: { amount: 101, to: 'bob' } },
    ])
  })

  it('names a clause that allows by the input only', async () => {
    const allow = [{ match: 'bank:pay', input: 'input.amount < 100.0' }, 'bank:read']
    assert.deepEqual(await shown({ policy: { allow } }), [
      'allow',
      { word: 'deny', on: 'input', code: 'input_denied', path: 'policy[0].allow[0]', example: { amount: 100, to: '' } },
    ])
    assert.deepEqual(await shown({ policy: { allow: [...allow, 'bank:*'] } }), ['allow'], 'another clause allows it')
  })

  it('names a function that reads the input', async () => {
    const input = ({ input: given }: { input?: unknown }) => (given as { to: string }).to === 'x'
    assert.deepEqual(await shown({ policy: { deny: [{ match: 'bank:pay', input }] } }), [
      'allow',
      { word: 'deny', on: 'input', code: 'input_denied', path: 'policy[0].deny[0]', example: { amount: 0, to: 'x' } },
    ])
  })

  it('names a clause about the run', async () => {
    assert.deepEqual(await shown({ policy: { deny: [{ match: 'bank:pay', input: "'untrusted' in run.labels" }] } }), [
      'allow',
      { word: 'deny', on: 'run', code: 'input_denied', path: 'policy[0].deny[0]', example: undefined },
    ])
  })

  it('names a clause that allows by the run only', async () => {
    const allow = [{ match: 'bank:pay', input: "run.called('bank:read')" }, 'bank:read']
    assert.deepEqual(await shown({ policy: { allow } }), [
      'allow',
      { word: 'deny', on: 'run', code: 'input_denied', path: 'policy[0].allow[0]', example: undefined },
    ])
  })

  it('names a clause that has come since the view was made', async () => {
    const { gate, view } = await open({ policy: { allow: ['*'] } })
    assert.deepEqual(await mayStillNow(view, 'bank:pay'), [])
    gate.setPolicy({ allow: ['*'], deny: [{ match: 'bank:pay', input: 'input.amount > 100.0' }] })
    assert.deepEqual(
      (await mayStillNow(view, 'bank:pay')).map(({ path }) => path),
      ['policy[0].deny[0]'],
    )
  })

  it('names no clause that cannot hold for the caller', async () => {
    const deny = [{ match: 'bank:pay', unless: "'clerk' in caller.roles", input: 'input.amount > 100.0' }]
    assert.deepEqual(await shown({ policy: { deny } }), ['allow'])
  })

  it('names the rules that may deny where a rule already asks, and nothing for a hidden tool', async () => {
    const deny = [{ match: 'bank:pay', input: 'input.amount > 100.0' }]
    const [outcome, may] = await shown({ policy: { ask: ['bank:pay'], deny } })
    assert.equal(outcome, 'ask')
    assert.equal((may as { word: string }).word, 'deny')
    assert.deepEqual(await shown({ policy: { deny: [...deny, 'bank:pay'] } }), ['deny'])
  })

  it('names hooks, which are code', async () => {
    const { view } = await open({ hooks: { name: 'office hours', beforeToolCall: () => undefined } })
    const [hook] = await mayStillNow(view, 'bank:pay')
    assert.deepEqual([hook?.on, hook?.outcome], ['code', 'deny'])
    assert.match(hook?.text ?? '', /the hook office hours/)
  })

  it('names a limit while it is used up, with the end of that time, and takes nothing from it', async () => {
    const { view, clock } = await open({ limits: [{ match: 'bank:pay', max: 2, windowMs: 60_000 }] })
    const call = () => view.call({ tool: 'bank:pay', input: { amount: 1, to: '' } })
    assert.deepEqual(await mayStillNow(view, 'bank:pay'), [])
    await call()
    for (let i = 0; i < 3; i++) assert.deepEqual(await mayStillNow(view, 'bank:pay'), [])
    await call()
    clock.advance(10_000)
    const [limit] = await mayStillNow(view, 'bank:pay')
    assert.deepEqual(
      [limit?.on, limit?.outcome, limit?.code, limit?.limit, limit?.resetMs],
      ['now', 'wait', 'rate_limited', '2/60', 50_000],
    )
    assert.deepEqual([...(await refusedNow(view, ['bank:pay', 'bank:read'])).keys()], ['bank:pay'])
    clock.advance(50_000)
    assert.deepEqual(await mayStillNow(view, 'bank:pay'), [])
  })

  it('names each of many used-up limits, and reports a store that cannot be read', async () => {
    const { view, gate } = await open({ limits: ['*:1/60'] })
    for (const id of ['bank:pay', 'bank:read']) await view.call({ tool: id, input: { amount: 1, to: '' } })
    assert.deepEqual([...(await refusedNow(view, ['bank:pay', 'bank:read'])).keys()], ['bank:pay', 'bank:read'])
    await gate.close()
    const failing = {
      peek: () => Promise.reject(new Error('no store')),
      take: () => Promise.reject(new Error('no store')),
      giveBack: () => undefined,
      settle: () => undefined,
    }
    const broken = await open({ limits: ['*:1/60'], counters: failing as never, onFault: () => undefined })
    const [limit] = await mayStillNow(broken.view, 'bank:pay')
    assert.match(limit?.text ?? '', /could not be asked/)
  })

  it('names a limit whose cost depends on the input, with an input that costs too much', async () => {
    const limits = [{ match: 'bank:pay', max: 500, windowMs: 60_000, cost: 'input.amount', per: ['user'] as const }]
    const [outcome, limit] = await shown({ limits })
    assert.equal(outcome, 'allow')
    assert.deepEqual(limit, {
      word: 'wait',
      on: 'input',
      code: 'rate_limited',
      path: undefined,
      example: { amount: 501, to: '' },
    })
  })

  it('names a cap without a free slot', async () => {
    const started = Promise.withResolvers<void>()
    const release = Promise.withResolvers<void>()
    const slow = defineTool({ name: 'slow', execute: () => (started.resolve(), release.promise) })
    const gate = createGate({ tools: [slow], concurrency: ['slow:1'] })
    const view = await gate.view({})
    assert.deepEqual(await mayStillNow(view, 'slow'), [])
    const running = view.call({ tool: 'slow' })
    await started.promise
    assert.deepEqual(
      (await mayStillNow(view, 'slow')).map(({ code }) => code),
      ['too_busy'],
    )
    release.resolve()
    await running
  })
})
