import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type CallContext, defineTool } from '@toolgate/core'
import { toCancelling } from '@toolgate/values'
import { toClientLink } from '../servers/asks/client-link.ts'
import { HeldStreams } from './held-streams.ts'
import { createKeepAlive } from './answer-stream.ts'
import { type Key, serveMcp } from '../testing/mcp.ts'

const TOKEN = { progressToken: 'p' }
const text = (value: string) => ({ content: [{ type: 'text', text: value }] })

/** Tools whose calls go on until the test says so. */
async function setUp(t: TestContext, given: Parameters<typeof serveMcp>[2] = {}) {
  const gates = new Map<string, PromiseWithResolvers<void>>()
  const of = (step: string) => {
    let one = gates.get(step)
    if (!one) gates.set(step, (one = Promise.withResolvers<void>()))
    return one
  }
  const aborted: string[] = []
  const begun: CallContext[] = []
  const steps = defineTool({
    name: 'steps',
    async execute(_: unknown, call) {
      begun.push(call)
      call.onAbort(() => aborted.push((call.reason as Error).message))
      call.onProgress?.({ progress: 1 })
      await Promise.race([of('second').promise, new Promise((resolve) => call.onAbort(() => resolve(0)))])
      call.onProgress?.({ progress: 2 })
      await Promise.race([of('end').promise, new Promise((resolve) => call.onAbort(() => resolve(0)))])
      return text('done')
    },
  })
  const asks = defineTool({
    name: 'asks',
    async execute(_: unknown, call) {
      const link = toClientLink(call.context)
      if (!link?.ask) return text('nobody to ask')
      try {
        const params = { message: 'Who?', requestedSchema: { type: 'object', properties: {} } }
        return text(JSON.stringify(await link.ask('elicitation/create', params, toCancelling(call.signal))))
      } catch (error) {
        return text(`refused: ${(error as Error).message}`)
      }
    },
  })
  const logs = defineTool({
    name: 'logs',
    execute(_: unknown, call) {
      for (const level of ['debug', 'warning', 'no-level']) toClientLink(call.context)?.log({ level, data: level })
      return text('done')
    },
  })
  const endpoint = await serveMcp(t, [steps, asks, logs], given)
  return { ...endpoint, let: (step: string) => of(step).resolve(), aborted, begun }
}

describe('the answer to a call of an earlier client', () => {
  it('is JSON if nothing comes before it', async (t) => {
    const { call, initialize, let: go } = await setUp(t)
    go('second')
    go('end')
    const answer = await call('steps', { session: await initialize() })
    assert.equal(answer.headers['content-type'], 'application/json')
    assert.deepEqual((await answer.message(0)).result, text('done'))
  })

  it('is the last event of a stream if something does, and its client gets an id to resume from first', async (t) => {
    const { call, initialize, let: go } = await setUp(t)
    const answer = await call('steps', { session: await initialize(), meta: TOKEN })
    assert.equal(answer.headers['content-type'], 'text/event-stream')
    assert.deepEqual((await answer.message(0)).params, { progress: 1, progressToken: 'p' })
    go('second')
    go('end')
    await answer.ended()
    assert.deepEqual(
      answer.messages.map(({ method, result }) => method ?? result),
      ['notifications/progress', 'notifications/progress', text('done')],
    )
    assert.match(answer.text(), /^id: [0-9a-f-]{36}_0\nretry: \d+\ndata: \n\n/)
    assert.deepEqual(
      answer.eventIds.map((id) => id.split('_')[1]),
      ['0', '1', '2', '3'],
    )
  })

  it('is JSON for a client that takes only JSON, which gets neither progress nor signs of life', async (t) => {
    const keepAlive = createKeepAlive({ openMs: 10, commentMs: 10 })
    const { call, initialize, let: go, begun } = await setUp(t, { keepAlive })
    const answering = call('steps', {
      session: await initialize(),
      meta: TOKEN,
      headers: { accept: 'application/json' },
    })
    while (begun.length === 0) await sleep(5)
    await sleep(40)
    go('second')
    go('end')
    const answer = await answering
    assert.equal(answer.headers['content-type'], 'application/json')
    assert.deepEqual((await answer.message(0)).result, text('done'))
  })

  it('begins without an empty event before 2025-11-25, as those clients cannot read one', async (t) => {
    const { call, initialize } = await setUp(t)
    const answer = await call('steps', { session: await initialize({ version: '2025-06-18' }), meta: TOKEN })
    await answer.message(0)
    assert.match(answer.text(), /^id: [0-9a-f-]{36}_1\nevent: message\n/)
  })

  it('has no ids without a session', async (t) => {
    const { call } = await setUp(t)
    const answer = await call('steps', { meta: TOKEN })
    await answer.message(0)
    assert.deepEqual(answer.eventIds, [])
  })

  it('becomes a stream when it takes long, with comments so that nobody takes it for dead', async (t) => {
    const { call, initialize, let: go } = await setUp(t, { keepAlive: createKeepAlive({ openMs: 40, commentMs: 60 }) })
    const answer = await call('steps', { session: await initialize() })
    assert.equal(answer.headers['content-type'], 'text/event-stream')
    while (!answer.text().includes(': keepalive')) await sleep(5)
    go('second')
    go('end')
    assert.deepEqual((await answer.message(0)).result, text('done'))
  })
})

describe('a stream whose connection broke', () => {
  async function broken(t: TestContext, given: Parameters<typeof serveMcp>[2] = {}) {
    const all = await setUp(t, given)
    const session = await all.initialize()
    const first = await all.call('steps', { session, meta: TOKEN })
    await first.message(0)
    first.break()
    await sleep(20)
    const resume = (lastEventId: string, key: Key = 'vera', inSession = session) =>
      all.send(undefined, { method: 'GET', key, session: inSession, headers: { 'last-event-id': lastEventId } })
    return { ...all, session, first, resume, last: first.eventIds.at(-1) ?? '' }
  }

  it('is resumed after the last event, and its call was not cancelled', async (t) => {
    const { resume, last, let: go, aborted } = await broken(t)
    go('second')
    await sleep(20)
    const second = await resume(last)
    assert.equal((await second.message(0)).params.progress, 2)
    go('end')
    assert.deepEqual((await second.message(1)).result, text('done'))
    await second.ended()
    assert.deepEqual(aborted, [])
  })

  it('is resumed after its answer, and as often as it breaks', async (t) => {
    const { resume, last, first, let: go } = await broken(t)
    go('second')
    go('end')
    await sleep(20)
    for (const id of [last, first.eventIds[0] ?? '', last]) {
      const again = await resume(id)
      await again.ended()
      assert.deepEqual(again.messages.at(-1).result, text('done'))
      assert.equal(again.messages.length, id === last ? 2 : 3)
    }
  })

  it('moves to the last connection that resumes it', async (t) => {
    const { resume, last, let: go } = await broken(t)
    const second = await resume(last)
    const third = await resume(last)
    await second.ended()
    go('second')
    go('end')
    assert.deepEqual((await third.message(1)).result, text('done'))
    assert.deepEqual(second.messages, [])
  })

  it('is one error for every id that is not its client’s: made up, of another session, of another key', async (t) => {
    const { resume, last, initialize, session } = await broken(t)
    const answers = [
      await resume('1'),
      await resume(''),
      await resume(`${last}0000000000`),
      await resume(`00000000-0000-0000-0000-000000000000_1`),
      await resume('__proto___1'),
      await resume(last, 'vera2'),
      await resume(last, 'vera', await initialize()),
    ]
    for (const answer of answers) {
      assert.equal(answer.status, 400)
      assert.deepEqual((await answer.message(0)).error, { code: -32_000, message: 'Event not found.' })
    }
    const foreign = await resume(last, 'paul', session)
    assert.equal(foreign.status, 404)
  })

  it('is given up when its client does not come back, and so is its call', async (t) => {
    let nowMs = 0
    const held = new HeldStreams({ clock: { monotonicMs: () => nowMs, wallMs: () => 0 }, holdMs: 1000 })
    const { resume, last, aborted } = await broken(t, { held })
    held.sweep()
    assert.deepEqual([held.count, aborted], [1, []])
    nowMs = 1000
    held.sweep()
    await sleep(20)
    assert.deepEqual([held.count, held.chars], [0, 0])
    assert.deepEqual(aborted, ['the client went away and did not come back'])
    assert.equal((await resume(last)).status, 400)
  })

  it('ends with its session', async (t) => {
    const { send, session, aborted, deps } = await broken(t)
    await send(undefined, { method: 'DELETE', session })
    await sleep(20)
    assert.equal(deps.held.count, 0)
    assert.deepEqual(aborted, ['the client went away and did not come back'])
  })
})

describe('a call of an earlier client that disconnects', () => {
  it('is cancelled if it has no stream: nobody could get its answer', async (t) => {
    const { call, initialize, begun, aborted } = await setUp(t)
    for (const session of [undefined, await initialize()]) {
      const broken = new AbortController()
      const answer = call('steps', { session, signal: broken.signal })
      while (begun.length === 0) await sleep(5)
      broken.abort()
      await assert.rejects(answer)
      while (aborted.length === 0) await sleep(5)
      assert.deepEqual(aborted, ['the client went away'])
      begun.length = 0
      aborted.length = 0
    }
  })

  it('is cancelled without a session, stream or not', async (t) => {
    const { call, aborted } = await setUp(t)
    const answer = await call('steps', { meta: TOKEN })
    await answer.message(0)
    answer.break()
    while (aborted.length === 0) await sleep(5)
    assert.deepEqual(aborted, ['the client went away'])
  })

  it('is cancelled if too many streams are held already', async (t) => {
    const clock = { monotonicMs: () => 0, wallMs: () => 0 }
    const held = new HeldStreams({ clock, maxStreams: 1 })
    const { call, initialize, aborted } = await setUp(t, { held })
    const session = await initialize()
    const [first, second] = [
      await call('steps', { session, id: 1, meta: TOKEN }),
      await call('steps', { session, id: 2, meta: TOKEN }),
    ]
    await Promise.all([first.message(0), second.message(0)])
    assert.deepEqual(second.eventIds, [])
    second.break()
    while (aborted.length === 0) await sleep(5)
    first.break()
    await sleep(30)
    assert.equal(aborted.length, 1)
  })
})

describe('a stream of a process that is gone', () => {
  it('ends with an error for its call, so that the client does not wait for it', async (t) => {
    const { call, initialize } = await setUp(t)
    const first = await call('steps', { session: await initialize(), id: 77, meta: TOKEN })
    await first.message(0)
    const next = await setUp(t)
    const session = await next.initialize()
    const headers = { 'last-event-id': first.eventIds.at(-1) ?? '' }
    const resumed = await next.send(undefined, { method: 'GET', session, headers })
    await resumed.ended()
    assert.deepEqual([resumed.status, resumed.headers['content-type']], [200, 'text/event-stream'])
    const [{ id, error }] = resumed.messages
    assert.deepEqual([id, error.code], [77, -32_000])
    assert.match(error.message, /may have run/)
  })

  it('is unknown if it does not name its request, or is of this process', async (t) => {
    const { call, initialize, send } = await setUp(t)
    const session = await initialize()
    const own = await call('steps', { session, id: 78, meta: TOKEN })
    await own.message(0)
    const other = await initialize()
    for (const id of [own.eventIds[0] ?? '', '0f8fad5b-d9cb-469f-a165-70867728950e_1', 'x', '00000001-aaaa-8aaa_1'])
      assert.equal(
        (await send(undefined, { method: 'GET', session: other, headers: { 'last-event-id': id } })).status,
        400,
      )
  })
})

describe('notifications/cancelled', () => {
  it('cancels the call of its session and key, held or not, and no other', async (t) => {
    const { call, initialize, send, aborted } = await setUp(t)
    const session = await initialize()
    const answer = await call('steps', { session, id: 7, meta: TOKEN })
    await answer.message(0)
    const cancel = (requestId: unknown, options: object) =>
      send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId } }, options)
    assert.equal((await cancel('07', { session })).status, 202)
    assert.equal((await cancel(7, { session: await initialize() })).status, 202)
    assert.equal((await cancel(7, { session, key: 'vera2' })).status, 202)
    assert.equal((await cancel(7, {})).status, 202)
    assert.equal((await cancel(7, { session, key: 'paul' })).status, 404)
    assert.deepEqual(aborted, [])
    answer.break()
    await sleep(20)
    // Some clients give the number back as text.
    assert.equal((await cancel('7', { session })).status, 202)
    assert.deepEqual(aborted, ['the client cancelled the call'])
  })
})

describe('a question of a server', () => {
  const reply = (id: unknown, result: object = { action: 'accept', content: {} }) => ({ jsonrpc: '2.0', id, result })

  it('goes over the stream of its call, and its answer comes by POST', async (t) => {
    const { call, initialize, send, deps } = await setUp(t)
    const session = await initialize({ capabilities: { elicitation: {} } })
    const answer = await call('asks', { session })
    const question = await answer.message(0)
    assert.equal(question.method, 'elicitation/create')
    assert.equal(question.params.message, 'Who?')
    assert.equal((await send(reply(question.id), { session })).status, 202)
    assert.deepEqual((await answer.message(1)).result, text('{"action":"accept","content":{}}'))
    assert.equal(deps.questions.count, 0)
  })

  it('cannot reach a client that takes only JSON, so the server is told at once', async (t) => {
    const { call, initialize } = await setUp(t)
    const session = await initialize({ capabilities: { elicitation: {} } })
    const answer = await call('asks', { session, headers: { accept: 'application/json' } })
    assert.deepEqual((await answer.message(0)).result, text('nobody to ask'))
  })

  it('can be refused with an error', async (t) => {
    const { call, initialize, send } = await setUp(t)
    const session = await initialize()
    const answer = await call('asks', { session })
    const { id } = await answer.message(0)
    await send({ jsonrpc: '2.0', id, error: { code: -1, message: 'no' } }, { session })
    assert.deepEqual((await answer.message(1)).result, text('refused: no'))
  })

  it('is answered once, by its own client: any other answer gets the same 202 and changes nothing', async (t) => {
    const { call, initialize, send, deps } = await setUp(t)
    const session = await initialize()
    const answer = await call('asks', { session })
    const { id } = await answer.message(0)
    const wrong = { action: 'accept', content: { who: 'somebody else' } }
    const others = [
      await send(reply('made up', wrong), { session }),
      await send(reply(1, wrong), { session }),
      await send(reply(id, wrong), { session: await initialize() }),
      await send(reply(id, wrong), {}),
      await send(reply(id, wrong), { session, key: 'vera2' }),
    ]
    assert.deepEqual(
      others.map((one) => [one.status, one.text()]),
      others.map(() => [202, '']),
    )
    assert.equal((await send(reply(id, wrong), { session, key: 'paul' })).status, 404)
    assert.equal(deps.questions.count, 1)
    assert.equal((await send(reply(id), { session })).status, 202)
    assert.equal((await send(reply(id, wrong), { session })).status, 202)
    assert.deepEqual((await answer.message(1)).result, text('{"action":"accept","content":{}}'))
  })

  it('is asked again where a broken stream is resumed, until it was answered', async (t) => {
    const { call, initialize, send } = await setUp(t)
    const session = await initialize()
    const first = await call('asks', { session })
    const question = await first.message(0)
    first.break()
    await sleep(20)
    const headers = { 'last-event-id': first.eventIds[0] ?? '' }
    const second = await send(undefined, { method: 'GET', session, headers })
    assert.deepEqual(await second.message(0), question)
    await send(reply(question.id), { session })
    await second.ended()
    const third = await send(undefined, { method: 'GET', session, headers })
    await third.ended()
    assert.equal(third.messages.length, 1)
  })

  it('is not asked without a session, as nobody could tell whose answer it is', async (t) => {
    const { call } = await setUp(t)
    assert.deepEqual((await (await call('asks')).message(0)).result, text('nobody to ask'))
  })

  it('is withdrawn when its call is cancelled, and is over when its session ends', async (t) => {
    const { call, initialize, send, deps } = await setUp(t)
    const session = await initialize()
    const answer = await call('asks', { session, id: 5 })
    const { id } = await answer.message(0)
    await send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 5 } }, { session })
    assert.deepEqual(await answer.message(1), {
      jsonrpc: '2.0',
      method: 'notifications/cancelled',
      params: { requestId: id },
    })
    const other = await call('asks', { session, id: 6 })
    await other.message(0)
    await send(undefined, { method: 'DELETE', session })
    assert.deepEqual((await other.message(1)).result, text('refused: The session has ended.'))
    assert.equal(deps.questions.count, 0)
  })

  it('is refused beyond 16 of one session', async (t) => {
    const { call, initialize, deps } = await setUp(t)
    const session = await initialize()
    const answers = await Promise.all(Array.from({ length: 17 }, (_, id) => call('asks', { session, id })))
    const last = await Promise.all(answers.map((answer) => answer.message(0)))
    assert.equal(deps.questions.count, 16)
    const refused = last.filter(({ result }) => result !== undefined)
    assert.deepEqual(
      refused.map(({ result }) => result),
      [text('refused: Too many questions wait for this client.')],
    )
  })
})

describe('logging/setLevel', () => {
  const setLevel = (level: unknown) => ({ jsonrpc: '2.0', id: 1, method: 'logging/setLevel', params: { level } })
  const levels = async (answer: Awaited<ReturnType<Awaited<ReturnType<typeof serveMcp>>['call']>>) => {
    await answer.ended()
    return answer.messages.flatMap(({ params }) => (params ? [params.level] : []))
  }

  it('holds for its session; until then all levels are sent', async (t) => {
    const { call, initialize, send } = await setUp(t)
    const [one, other] = [await initialize(), await initialize()]
    assert.deepEqual(await levels(await call('logs', { session: one })), ['debug', 'warning'])
    assert.deepEqual((await (await send(setLevel('warning'), { session: one })).message(0)).result, {})
    assert.deepEqual(await levels(await call('logs', { session: one })), ['warning'])
    assert.deepEqual(await levels(await call('logs', { session: other })), ['debug', 'warning'])
  })

  it('refuses an unknown level', async (t) => {
    const { initialize, send } = await setUp(t)
    const session = await initialize()
    for (const level of ['loud', undefined, 1, 'constructor'])
      assert.equal((await (await send(setLevel(level), { session })).message(0)).error.code, -32_602)
  })
})
