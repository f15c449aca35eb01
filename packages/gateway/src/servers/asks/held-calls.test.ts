import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type CallContext, createGate, defineTool } from '@toolgate/core'
import { createCanceller } from '@toolgate/values'
import type { JsonObject } from '@toolgate/values/json'
import { InputRequired } from '@toolgate/core/toolset'
import type { McpResult } from '@toolgate/mcp'
import { type HeldCall, HeldCalls, type HeldCallsOptions, heldIn, type HeldOwner } from './held-calls.ts'

const OWNER: HeldOwner = { caller: { user: 'vera', tenant: 'acme' }, tool: 'old:greet', key: '{}' }
const NEVER = createCanceller()

/** Makes real call contexts: `inRound` runs in the `execute` of a call through a gate. */
async function inRound<T>(work: (call: CallContext) => Promise<T>): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>()
  const tool = defineTool({ name: 'greet', execute: async (_: object, call) => work(call).then(resolve, reject) })
  const gate = createGate({ tools: [tool] })
  await (await gate.view({ user: 'vera' })).call({ tool: 'greet' })
  return promise
}

const result = (text: unknown): McpResult => ({ content: [{ type: 'text', text: JSON.stringify(text) }] })

/** A server that asks once. */
async function asksOnce({ ask }: HeldCall): Promise<McpResult> {
  return result(await ask('elicitation/create', { message: 'Who?' }, NEVER))
}

function setUp(options: HeldCallsOptions = {}) {
  const calls = new HeldCalls(options)
  const begin = async (owner: HeldOwner = OWNER, run = asksOnce) => {
    const held = calls.begin(owner, run)
    const output = await inRound((call) => held.next(call, undefined))
    assert.ok(output instanceof InputRequired)
    const { requests, state } = output.payload as { requests: JsonObject; state: unknown }
    return { held, key: Object.keys(requests)[0] ?? '', requests, id: heldIn(state) ?? '' }
  }
  return { calls, begin }
}

describe('HeldCalls', () => {
  it('goes on where the server waited, with the answer', async () => {
    const { calls, begin } = setUp()
    const { id, key, requests } = await begin()
    assert.deepEqual(requests, { [key]: { method: 'elicitation/create', params: { message: 'Who?' } } })
    const answer = { action: 'accept' }
    const output = await inRound((call) => calls.resume(id, OWNER).next(call, undefined, { [key]: answer }))
    assert.deepEqual(output, result(answer))
    assert.equal(calls.count, 0)
  })

  for (const unusable of [undefined, 7, { content: {} }])
    it(`asks again after the answer ${JSON.stringify(unusable)}`, async () => {
      const { calls, begin } = setUp()
      const { id, key, requests } = await begin()
      const again = await inRound((call) =>
        calls.resume(id, OWNER).next(call, undefined, unusable === undefined ? {} : { [key]: unusable }),
      )
      assert.ok(again instanceof InputRequired)
      assert.deepEqual((again.payload as { readonly requests: JsonObject }).requests, requests)
    })

  it('is resumed once, and only by its own call', async () => {
    const { calls, begin } = setUp()
    const { id } = await begin()
    for (const other of [
      { ...OWNER, caller: { user: 'eve', tenant: 'acme' } },
      { ...OWNER, caller: { user: 'vera' } },
      { ...OWNER, tool: 'old:delete' },
      { ...OWNER, key: '{"input":"replaced"}' },
    ])
      assert.throws(() => calls.resume(id, other), /requestState is invalid/)
    calls.resume(id, OWNER)
    assert.throws(() => calls.resume(id, OWNER), /requestState is invalid/)
  })

  it('asks together what is asked in one moment', async () => {
    const { begin } = setUp()
    const both = async ({ ask }: HeldCall) => result(await Promise.all([ask('a', {}, NEVER), ask('b', {}, NEVER)]))
    assert.equal(Object.keys((await begin(OWNER, both)).requests).length, 2)
  })

  it('cancels a call that nobody answers in time', async () => {
    const { calls, begin } = setUp({ ttlMs: 10 })
    const { held, id } = await begin()
    while (!held.signal.aborted) await sleep(5)
    assert.throws(() => calls.resume(id, OWNER))
  })

  it('holds so many calls of one user and of all, and fails and cancels the next', async () => {
    const { begin } = setUp({ maxOfOne: 2, max: 3 })
    await begin()
    await begin()
    await assert.rejects(begin(), /Too many calls wait/)
    await begin({ ...OWNER, caller: { user: 'ben' } })
    await assert.rejects(begin({ ...OWNER, caller: { user: 'ann' } }), /Too many calls wait/)
  })

  it('cancels what may no longer run, and all at the end', async () => {
    const { calls, begin } = setUp()
    const one = await begin()
    const two = await begin({ ...OWNER, tool: 'old:other' })
    await calls.review(async ({ tool }) => tool === 'old:other')
    assert.deepEqual([one.held.signal.aborted, two.held.signal.aborted], [true, false])
    calls.close()
    assert.equal(two.held.signal.aborted, true)
  })

  it('gives the result of a call that ended while it waited', async () => {
    const { calls, begin } = setUp()
    const withdrawn = createCanceller()
    const gone = async ({ ask }: HeldCall) => {
      await ask('elicitation/create', {}, withdrawn).catch(() => undefined)
      return result('done without')
    }
    const { id } = await begin(OWNER, gone)
    withdrawn.abort(new Error('withdrawn'))
    await sleep(5)
    const output = await inRound((call) => calls.resume(id, OWNER).next(call, undefined))
    assert.deepEqual(output, result('done without'))
  })
})
