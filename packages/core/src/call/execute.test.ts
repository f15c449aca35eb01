import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createCanceller, createDeadlines } from '@toolgate/values'
import { type CallContext, defineTool, type Progress } from '../tools/tool.ts'
import { createLiveCalls } from './lifetime.ts'
import { execute, type Execution } from './execute.ts'

type Execute = (input: unknown, call: CallContext) => unknown

function run(executeTool: Execute, more: Partial<Execution> = {}) {
  return execute(
    {
      tool: defineTool({ name: 'tool', execute: executeTool }),
      input: { q: 'x' },
      callId: 'call-1',
      caller: { user: 'vera' },
      cancelling: undefined,
      onProgress: undefined,
      startedMs: performance.now(),
      deadlineMs: 60_000,
      ...more,
    },
    { deadlines: createDeadlines(() => performance.now()), live: createLiveCalls() },
  )
}

const never = () => new Promise(() => {})

describe('execute', () => {
  it('returns at once what a tool returns at once', () => {
    assert.deepEqual(
      run(() => 7),
      { ok: true, output: 7, lasting: undefined },
    )
    assert.deepEqual(
      run(() => undefined),
      { ok: true, output: undefined, lasting: undefined },
    )
  })

  it('waits for a promise, or anything that can be waited for', async () => {
    assert.deepEqual(await run(async () => 7), { ok: true, output: 7, lasting: undefined })
    // oxlint-disable-next-line unicorn/no-thenable -- what a tool may give
    const thenable = { then: (resolve: (value: number) => void) => resolve(7) }
    assert.deepEqual(await run(() => thenable), { ok: true, output: 7, lasting: undefined })
  })

  it('passes an output through untouched, an iterator too', () => {
    async function* stream() {
      yield 1
    }
    const output = stream()
    const executed = run(() => output)
    assert.ok(!(executed instanceof Promise) && executed.ok && executed.output === output)
    executed.lasting?.close()
  })

  it('passes the caller and the input to the tool, and its progress to the caller', () => {
    const heard: Progress[] = []
    void run(
      (input, call) => {
        assert.deepEqual([input, call.callId, call.caller.user, call.tool.id], [{ q: 'x' }, 'call-1', 'vera', 'tool'])
        assert.equal(call.signal.aborted, false)
        call.onProgress?.({ progress: 1, total: 2 })
      },
      { onProgress: (progress) => heard.push(progress) },
    )
    assert.deepEqual(heard, [{ progress: 1, total: 2 }])
  })

  it('fails with the error of the tool, now or later', async () => {
    const error = new Error('boom')
    const failed = { ok: false, code: 'tool_failed', error }
    assert.deepEqual(
      run(() => {
        throw error
      }),
      failed,
    )
    assert.deepEqual(await run(() => Promise.reject(error)), failed)
  })

  it('fails for something that throws when it is waited for', async () => {
    const error = new Error('boom')
    // oxlint-disable-next-line unicorn/no-thenable -- what a tool may give
    const getter = Object.defineProperty({}, 'then', {
      get() {
        throw error
      },
    })
    assert.deepEqual(await run(() => getter), { ok: false, code: 'tool_failed', error })
    // oxlint-disable-next-line unicorn/no-thenable -- what a tool may give
    const thrower = Object.defineProperty({}, 'then', { value: () => assert.fail(error) })
    assert.deepEqual(await run(() => thrower), { ok: false, code: 'tool_failed', error })
  })

  it('ends at the deadline, aborts the tool, and drops its later answer', async () => {
    let signal: AbortSignal | undefined
    const late = Promise.withResolvers<string>()
    const executed = await run(
      (_, call) => {
        signal = call.signal
        return late.promise
      },
      { deadlineMs: 1 },
    )
    assert.ok(!executed.ok)
    assert.equal(executed.code, 'tool_timeout')
    assert.match(String(executed.error), /TimeoutError: no answer in 0\.001 s/)
    assert.equal(signal?.aborted, true)
    assert.equal(signal.reason, executed.error)
    late.resolve('late')
  })

  it('ends when the caller goes away, and aborts the tool with the reason', async () => {
    const caller = createCanceller()
    let heard = 0
    const running = run(
      (_, call) => {
        call.onAbort(() => heard++)
        return never()
      },
      { cancelling: caller },
    )
    caller.abort('gone')
    assert.deepEqual(await running, { ok: false, code: 'tool_aborted', error: 'gone' })
    assert.equal(heard, 1)
  })

  it('ends at once for a caller who is gone already', async () => {
    const caller = createCanceller()
    caller.abort('gone')
    const executed = run(
      (_, call) => {
        assert.deepEqual([call.signal.aborted, call.aborted, call.reason], [true, true, 'gone'])
        return never()
      },
      { cancelling: caller },
    )
    assert.deepEqual(await executed, { ok: false, code: 'tool_aborted', error: 'gone' })
  })

  it('returns an aborted signal to a tool that reads it too late', async () => {
    let context: CallContext | undefined
    await run(
      (_, call) => {
        context = call
        return never()
      },
      { deadlineMs: 1 },
    )
    assert.equal(context?.signal.aborted, true)
  })

  it('leaves no late rejection unhandled', async () => {
    const late = Promise.withResolvers<string>()
    await run(() => late.promise, { deadlineMs: 1 })
    late.reject(new Error('late'))
    await new Promise((resolve) => setImmediate(resolve))
  })

  it('receives no abort after its answer', async () => {
    const caller = createCanceller()
    let signal: AbortSignal | undefined
    await run(
      async (_, call) => {
        signal = call.signal
      },
      { cancelling: caller },
    )
    caller.abort('gone')
    assert.equal(signal?.aborted, false)
  })

  it('lets a listener’s own fault pass by', async () => {
    const executed = await run(
      (_, call) => {
        call.onAbort(() => assert.fail('its own'))
        return never()
      },
      { deadlineMs: 1 },
    )
    assert.equal(!executed.ok && executed.code, 'tool_timeout')
  })

  it('ends where its caller cannot be listened to, or not be let alone', async () => {
    const deaf = { aborted: false, reason: undefined, onAbort: () => assert.fail('deaf') }
    const executed = await run(never, { cancelling: deaf })
    assert.equal(!executed.ok && executed.code, 'tool_aborted')
    const clinging = { aborted: false, reason: undefined, onAbort: () => () => assert.fail('clinging') }
    assert.equal((await run(async () => 'ok', { cancelling: clinging })).ok, true)
  })
})
