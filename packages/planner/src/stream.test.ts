import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { defineTool } from '@toolgate/core'
import { memoryLock } from '@toolgate/core/stores'
import { readUIMessageStream, toUIMessageStream, type UIMessage } from 'ai'
import fc from 'fast-check'
import { type ModelServer, startModelServer } from '../../adapters/src/testing/model-server.ts'
import type { PlannerStream } from './options.ts'
import { callOf, paused, setStage, type StageOptions, toldOf, VERA } from './testing/stage.ts'
import { runs } from '../../testing/src/runs.ts'

/** Waits without a time of its own: the test's is the longest. */
async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) await new Promise((resolve) => setTimeout(resolve, 5))
}

function streamOf({ stream }: PlannerStream) {
  assert.ok(stream)
  return stream.stream
}

async function lastOf<T>(items: AsyncIterable<T>): Promise<T> {
  const all = await Array.fromAsync(items)
  assert.ok(all.length > 0)
  return all.at(-1) as T
}

function toolStatesOf({ parts }: UIMessage): readonly string[] {
  return parts.flatMap((part) => ('toolCallId' in part ? [part.state] : []))
}

const FAST = { settings: { maxRetries: 0 } }

async function serve(
  t: TestContext,
  script: Parameters<typeof startModelServer>[0],
  options: Partial<StageOptions> = {},
) {
  const server: ModelServer = await startModelServer(script)
  t.after(() => server.close())
  const model = createOpenAICompatible({ name: 'test', baseURL: `${server.url}/v1`, includeUsage: true }).chatModel(
    'm1',
  )
  const sessions = memoryLock()
  const stage = setStage({ turns: [], ...options, planner: { model, sessions, ...FAST, ...options.planner } })
  return { ...stage, server, sessions }
}

describe('planner.stream', () => {
  it('returns the SDK’s stream, and beside it the same result as run', async () => {
    const turns = [callOf('search'), 'One two three.']
    const { planner } = setStage({ turns })
    const { stream, result, runId } = await planner.stream({ prompt: 'x', caller: VERA })
    const texts: string[] = []
    for await (const text of stream?.textStream ?? []) texts.push(text)
    const streamed = await result
    const plain = await setStage({ turns }).planner.run({ prompt: 'x', caller: VERA })
    assert.equal(texts.join(''), 'One two three.')
    assert.equal(streamed.runId, runId)
    assert.deepEqual(
      JSON.parse(JSON.stringify({ ...streamed, runId: '' })),
      JSON.parse(JSON.stringify({ ...plain, runId: '' })),
    )
  })

  it('holds the session’s turn until it is over, and ends also where nobody reads', async () => {
    const sessions = memoryLock()
    const { planner, told } = setStage({ turns: [callOf('search'), 'Ok.'], planner: { sessions } })
    const first = await planner.stream({ prompt: 'x', caller: VERA })
    assert.equal(sessions.size, 1)
    assert.equal((await first.result).status, 'done')
    assert.equal(sessions.size, 0)
    assert.equal(told().at(-1), 'run-ended')
  })

  it('ends when it is cancelled, by hand or by leaving its scope', async (t) => {
    const answers = Promise.withResolvers<void>()
    const { planner, sessions, server } = await serve(t, () => ({
      text: 'one two three',
      between: () => answers.promise,
    }))
    // What was cancelled holds no connection to the provider.
    const idle = () => until(async () => (await server.connections()) === 0)
    const byHand = await planner.stream({ prompt: 'x', caller: VERA })
    await until(() => server.requests.length === 1)
    byHand.cancel(new Error('closed the tab'))
    const result = await byHand.result
    assert.ok(result.status === 'failed')
    assert.deepEqual([result.reason, (result.error as Error).message, sessions.size], ['aborted', 'closed the tab', 0])
    await idle()
    // As `await using` does at the end of a scope.
    const left = await planner.stream({ prompt: 'x', caller: VERA })
    assert.ok(left.stream)
    await until(() => server.requests.length === 2)
    await left[Symbol.asyncDispose]()
    assert.equal(sessions.size, 0)
    await idle()
    answers.resolve()
  })

  it('gives its turn back wherever it is cancelled, whoever reads', async () => {
    const sometime = () => new Promise((resolve) => setImmediate(resolve))
    const tools = ['search', 'slow'].map((name) => defineTool({ name, execute: () => sometime().then(() => name) }))
    const cuts = fc.record({ turnsOfLoop: fc.nat(40), micro: fc.nat(40), reads: fc.boolean(), leaves: fc.nat(20) })
    await fc.assert(
      fc.asyncProperty(cuts, async ({ turnsOfLoop, micro, reads, leaves }) => {
        const sessions = memoryLock()
        const stage = setStage({
          turns: [callOf('search'), callOf('slow'), 'Ok.'],
          tools,
          gate: { policy: [] },
          planner: { sessions },
        })
        const { stream, result, cancel } = await stage.planner.stream({ prompt: 'x', caller: VERA })
        const read = async () => {
          let seen = 0
          for await (const _ of stream?.fullStream ?? []) if (seen++ === leaves) break
        }
        const reading = reads ? read() : undefined
        for (let i = 0; i < turnsOfLoop; i++) await sometime()
        for (let i = 0; i < micro; i++) await Promise.resolve()
        cancel()
        const ended = await result
        await reading
        assert.ok(ended.status === 'done' || (ended.status === 'failed' && ended.reason === 'aborted'))
        assert.equal(sessions.size, 0)
        assert.equal((await stage.planner.run({ prompt: 'y', caller: VERA })).status, 'done')
      }),
      runs(60, 60),
    )
  })

  it('continues when a reader leaves, so that no turn is held for nobody', async (t) => {
    const { planner, sessions } = await serve(t, [{ text: 'one two three four' }])
    const { stream, result } = await planner.stream({ prompt: 'x', caller: VERA })
    for await (const text of stream?.textStream ?? []) if (text) break
    assert.deepEqual([(await result).text, sessions.size], ['one two three four', 0])
  })

  it('updates a page that shows the waiting call with its outcome', async () => {
    for (const [answer, state] of [
      [{ approve: true }, 'output-available'],
      [{ reject: 'too much' }, 'output-error'],
    ] as const) {
      const { planner } = setStage({ turns: [callOf('pay'), 'Over.'] })
      const first = await planner.stream({ prompt: 'x', caller: VERA })
      let message = await lastOf(readUIMessageStream({ stream: toUIMessageStream({ stream: streamOf(first) }) }))
      assert.deepEqual(toolStatesOf(message), ['approval-requested'])
      const second = await planner.resumeStream(paused(await first.result).resumeToken, { caller: VERA, ...answer })
      const stream = toUIMessageStream({ stream: streamOf(second) })
      message = await lastOf(readUIMessageStream({ message, stream }))
      assert.deepEqual(toolStatesOf(message), [state])
      const { messages } = await second.result
      const results = messages.flatMap(({ role, content }) => (role === 'tool' ? content : []))
      assert.equal(results.filter(({ type }) => type === 'tool-result').length, 1)
    }
  })

  it('pauses and goes on, streamed', async () => {
    const { planner, witness } = setStage({ turns: [callOf('pay'), 'Paid.'] })
    const first = await planner.stream({ prompt: 'x', caller: VERA })
    const { resumeToken } = paused(await first.result)
    const second = await planner.resumeStream(resumeToken, { caller: VERA, approve: true })
    let text = ''
    for await (const part of second.stream?.textStream ?? []) text += part
    const done = await second.result
    assert.deepEqual([text, done.text, second.runId, witness.ran], ['Paid.', 'Paid.', first.runId, ['pay']])
    await assert.rejects(planner.resumeStream(resumeToken, { caller: VERA, approve: true }), { code: 'resume_refused' })
  })

  it('has no stream where no model is asked', async () => {
    const { planner, clock } = setStage({ turns: [callOf('pay'), 'Paid.'], planner: { pauseMs: 1e9 } })
    const gone = await planner.stream({ prompt: 'x', caller: VERA, signal: AbortSignal.abort() })
    assert.deepEqual([gone.stream, (await gone.result).status], [undefined, 'failed'])
    const spent = await planner.stream({ prompt: 'x', caller: VERA, budgets: { steps: 0 } })
    assert.deepEqual([spent.stream, (await spent.result).status], [undefined, 'failed'])
    const { resumeToken } = paused(await planner.run({ prompt: 'x', caller: VERA }))
    clock.advance(600_001)
    const again = await planner.resumeStream(resumeToken, { caller: VERA, approve: true })
    assert.deepEqual([again.stream, (await again.result).status], [undefined, 'paused'])
    await assert.rejects(planner.stream({ caller: VERA }), { code: 'config_invalid' })
  })

  it('fails as a value when the provider breaks off, with the steps before', async (t) => {
    const { planner, sessions } = await serve(t, [
      { calls: [{ name: 'search' }] },
      { text: 'one two three', breaksAfter: 2 },
      { status: 500, text: 'down' },
    ])
    const { result } = await planner.stream({ prompt: 'x', caller: VERA })
    const broken = await result
    assert.ok(broken.status === 'failed')
    assert.equal(broken.reason, 'model_failed')
    assert.deepEqual([broken.steps[0]?.calls.length, broken.messages.length >= 3, sessions.size], [1, true, 0])
    const down = await (await planner.stream({ prompt: 'x', caller: VERA })).result
    assert.ok(down.status === 'failed')
    assert.match((down.error as Error).message, /down/)
  })
})

describe('a planner against a provider’s API', () => {
  it('sends what is visible and nothing else, and tells what was refused, in JSON and streamed', async (t) => {
    for (const streams of [false, true]) {
      const script = [
        { calls: [{ name: 'delete_all' }, { name: 'search', input: { q: 'ä' } }, { name: 'pay', input: '{"cents":' }] },
        { calls: [{ name: 'pay', input: { cents: 5 } }] },
        { text: 'Paid.' },
      ]
      const { planner, server, witness, attempts } = await serve(t, script, {
        gate: { policy: [{ deny: ['delete_all'] }, { ask: ['pay'] }] },
      })
      const run = streams
        ? await (
            await planner.stream({ prompt: 'Pay.', caller: VERA })
          ).result
        : await planner.run({ prompt: 'Pay.', caller: VERA })
      const { resumeToken } = paused(run)
      const done = streams
        ? await (
            await planner.resumeStream(resumeToken, { caller: VERA, approve: true })
          ).result
        : await planner.resume(resumeToken, { caller: VERA, approve: true })
      assert.equal(done.text, 'Paid.')
      assert.deepEqual(witness.ran, ['search', 'pay'])
      assert.deepEqual(
        server.requests.map(({ stream }) => stream),
        [streams, streams, streams],
      )
      for (const { text, tools } of server.requests) {
        assert.deepEqual(tools, ['pay', 'search'])
        assert.equal(text.includes('"name":"delete_all","description"'), false)
      }
      const last = server.requests[2]
      assert.ok(last)
      assert.deepEqual(
        (last.body.messages as { role: string; content: string }[])
          .filter(({ role }) => role === 'tool')
          .map(({ content }) => content),
        [
          'Tool "delete_all" is not available. Available tools: pay, search.',
          'search done',
          toldOf(done, 'call-1-3'),
          'pay done',
        ],
      )
      assert.deepEqual(attempts().toSorted(), [
        'delete_all tool_blocked policy_denied',
        'pay tool_approval_required approval_required',
        'pay tool_blocked input_invalid',
        'pay tool_call',
        'pay tool_result',
        'search tool_call',
        'search tool_result',
      ])
      assert.deepEqual(done.usage, { input: 30, output: 15, total: 45 })
    }
  })

  it('maps names that a provider refuses, and maps them back', async (t) => {
    const tools = [defineTool({ namespace: 'files', name: 'read.me', execute: () => 'read' })]
    let name = ''
    const { planner, server } = await serve(
      t,
      ({ tools: sent }, index) => {
        name = sent[0] ?? ''
        return index === 0 ? { calls: [{ name }] } : { text: 'Ok.' }
      },
      { tools, gate: { policy: [] } },
    )
    const result = await planner.run({ prompt: 'x', caller: VERA })
    assert.match(name, /^[A-Za-z0-9_-]{1,64}$/)
    assert.deepEqual(result.steps[0]?.calls, [{ tool: 'files:read.me', callId: 'call-1-1', status: 'done' }])
    assert.equal(server.requests[1]?.tools[0], name)
  })

  it('ends when it is aborted while the provider thinks', async (t) => {
    const never = new Promise<never>(() => {})
    const asked = Promise.withResolvers<void>()
    const { planner } = await serve(t, () => {
      asked.resolve()
      return { after: never }
    })
    const controller = new AbortController()
    const running = planner.run({ prompt: 'x', caller: VERA, signal: controller.signal })
    await asked.promise
    controller.abort()
    const result = await running
    assert.equal(result.status === 'failed' && result.reason, 'aborted')
  })

  it('ends at its budget of time, whatever the provider does', async (t) => {
    const { planner } = await serve(t, () => ({ after: new Promise(() => {}) }))
    const result = await planner.run({ prompt: 'x', caller: VERA, budgets: { timeMs: 20 } })
    assert.equal(result.status === 'failed' && result.reason, 'budget_time')
  })
})
