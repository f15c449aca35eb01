import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { defineTool } from '../tools/tool.ts'
import { createLiveCalls, type LiveCall, waitWhile } from './lifetime.ts'
import { getEventListeners } from 'node:events'
import { createCanceller } from '@toolgate/values'
import { createGate } from '../gate/gate.ts'

const slow = defineTool({ name: 'slow' })

function liveCall(stopped: unknown[]): LiveCall {
  return { caller: {}, tool: slow, stop: (reason) => stopped.push(reason), before: undefined, after: undefined }
}

describe('createLiveCalls', () => {
  it('stops the calls under way with a reason, and no others', () => {
    const live = createLiveCalls()
    const [a, b, c] = [[], [], []] as [unknown[], unknown[], unknown[]]
    const [first, second, third] = [liveCall(a), liveCall(b), liveCall(c)]
    for (const call of [first, second, third]) live.add(call)
    live.remove(second)
    live.stopWhere((call) => (call === third ? undefined : 'halted'))
    assert.deepEqual([a, b, c], [['halted'], [], []])
  })

  it('stops one that was let in just before the closing, once it can be taken out', async () => {
    const live = createLiveCalls()
    const stopped: unknown[] = []
    live.begin()
    const closed = live.close('closed')
    live.add(liveCall(stopped))
    assert.deepEqual(stopped, [])
    await Promise.resolve()
    assert.deepEqual(stopped, ['closed'])
    live.end()
    await closed
  })

  it('is idle when no attempt is under way', async () => {
    const live = createLiveCalls()
    await live.idle()
    live.begin()
    live.begin()
    let isIdle = false
    const idle = live.idle().then(() => (isIdle = true))
    live.end()
    await new Promise((resolve) => setImmediate(resolve))
    assert.equal(isIdle, false)
    live.end()
    await idle
    assert.equal(live.isClosed, false)
  })

  it('is closed once, when the last attempt has ended', async () => {
    const live = createLiveCalls()
    live.begin()
    live.begin()
    let isClosed = false
    const closing = Promise.all([live.close('closed'), live.close('again')]).then(() => (isClosed = true))
    live.end()
    await new Promise(setImmediate)
    assert.deepEqual([live.isClosed, isClosed], [true, false])
    live.end()
    await closing
  })
})

function setup() {
  const live = createLiveCalls()
  const canceller = createCanceller()
  const tool = defineTool({ name: 'pay' })
  const attempt = { view: { caller: { user: 'vera' } }, ports: { live }, cancelling: canceller }
  const waitingNow = () => {
    const tools: string[] = []
    live.stopWhere((call) => void tools.push(`${call.caller.user} ${call.tool.id}`))
    return tools
  }
  return { live, canceller, tool, attempt, waitingNow }
}

/** What a host gives as the signal of a call, which cannot be heard or cannot be left. */
const ODD: readonly (readonly [what: string, onAbort: () => unknown])[] = [
  ['throws when it is listened to', raise],
  ['throws when it is left', () => raise],
  ['gives no way to leave it', () => 'nothing'],
]

function raise(): never {
  throw new Error('broken')
}

describe('waitWhile', () => {
  it('is a call that can be found and stopped, for as long as it waits', async () => {
    const { attempt, tool, waitingNow } = setup()
    const answer = Promise.withResolvers<string>()
    const waiting = waitWhile(attempt, tool, () => answer.promise)
    assert.deepEqual(waitingNow(), ['vera pay'])
    answer.resolve('here')
    assert.equal(await waiting, 'here')
    assert.deepEqual(waitingNow(), [])
  })

  for (const [what, onAbort] of ODD)
    it(`loses no slot to a signal that ${what}`, async () => {
      const going = Promise.withResolvers<string>()
      const job = defineTool({ name: 'job', execute: () => going.promise })
      const gate = createGate({ tools: [job], concurrency: [{ match: 'job', max: 1, waitMs: 60_000 }] })
      const view = await gate.view({ user: 'vera' })
      const first = view.call({ tool: 'job' })
      const signal = { aborted: false, reason: undefined, onAbort } as unknown as AbortSignal
      const second = view.call({ tool: 'job', signal })
      const third = view.call({ tool: 'job' })
      setImmediate(() => going.resolve('ok'))
      assert.deepEqual([(await first).status, (await third).status], ['done', 'done'])
      assert.ok(['done', 'refused', 'failed'].includes((await second).status))
      assert.equal((await view.call({ tool: 'job' })).status, 'done')
      await gate.close()
    })

  it('ends where the awaited work fails', async () => {
    const { attempt, tool, waitingNow } = setup()
    await assert.rejects(async () => waitWhile(attempt, tool, () => Promise.reject(new Error('broken'))), /broken/)
    assert.deepEqual(waitingNow(), [])
  })

  it('returns an answer at once, and is not a call under way for it', () => {
    const { attempt, tool, waitingNow } = setup()
    assert.equal(
      waitWhile(attempt, tool, () => 7),
      7,
    )
    assert.deepEqual(waitingNow(), [])
  })

  it('aborts with the reason when the caller leaves', async () => {
    const { attempt, tool, canceller } = setup()
    const told = Promise.withResolvers<unknown>()
    void waitWhile(attempt, tool, (cancelling) => {
      cancelling.onAbort(() => told.resolve([cancelling.aborted, cancelling.reason]))
      return told.promise
    })
    canceller.abort('gone')
    assert.deepEqual(await told.promise, [true, 'gone'])
  })

  it('aborts with the reason when it is stopped', async () => {
    const { attempt, tool, live } = setup()
    const told = Promise.withResolvers<unknown>()
    void waitWhile(attempt, tool, (cancelling) => {
      cancelling.onAbort(() => told.resolve([cancelling.aborted, cancelling.reason]))
      return told.promise
    })
    live.stopWhere(() => 'halted')
    assert.deepEqual(await told.promise, [true, 'halted'])
  })

  it('leaves no listener at the signal of a caller who stays', async () => {
    const { signal } = new AbortController()
    const gate = createGate({
      tools: [defineTool({ name: 'pay', execute: async () => 'paid' })],
      hooks: { beforeToolCall: async () => {}, afterToolCall: async ({ signal: own }) => void own },
      concurrency: 'pay:1',
    })
    const view = await gate.view({})
    const outcomes = await Promise.all([1, 2].map(() => view.call({ tool: 'pay', signal })))
    assert.deepEqual(
      outcomes.map(({ status }) => status),
      ['done', 'done'],
    )
    assert.deepEqual(getEventListeners(signal, 'abort'), [])
  })

  it('is stopped by a halt of its tool, and not by one of another', async () => {
    const answers = { pay: Promise.withResolvers<undefined>(), read: Promise.withResolvers<undefined>() }
    const gate = createGate({
      tools: (['pay', 'read'] as const).map((name) => defineTool({ name, execute: () => 'ok' })),
      hooks: { beforeToolCall: ({ tool }) => answers[tool.name as 'pay'].promise },
    })
    const view = await gate.view({})
    const [paying, reading] = (['pay', 'read'] as const).map((tool) => view.call({ tool }))
    await new Promise(setImmediate)
    await gate.halt({ tool: 'pay', reason: 'its key has leaked' })
    assert.equal((await paying)?.text, 'pay is unavailable: its key has leaked.')
    answers.read.resolve(undefined)
    assert.equal((await reading)?.status, 'done')
  })
})
