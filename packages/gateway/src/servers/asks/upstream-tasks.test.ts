import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createCanceller } from '@toolgate/values'
import type { JsonObject } from '@toolgate/values/json'
import type { McpResult } from '@toolgate/mcp'
import { type UpstreamCall, UpstreamError, type UpstreamState } from '../../model/upstream.ts'
import { isStartedTask, isTaskState, TaskCaller, type TaskWish } from './upstream-tasks.ts'

const READY: UpstreamState = { status: 'ready', since: 0, restarts: 0, rejected: [], tasks: true }
type Answer = (call: UpstreamCall) => McpResult | Promise<McpResult>

/** A server that answers by method. */
function open(era: 'legacy' | 'modern', answers: Readonly<Record<string, Answer>>, wish: Partial<TaskWish> = {}) {
  const sent: UpstreamCall[] = []
  const upstream = {
    name: 'up',
    state: { ...READY, era },
    call: async (call: UpstreamCall) => {
      sent.push(call)
      const answer = answers[call.method]
      if (!answer) throw new UpstreamError('upstream_rpc', 'Method not found', { rpc: { code: -32_601, message: 'x' } })
      return answer(call)
    },
  }
  const signal = createCanceller()
  const caller = new TaskCaller(upstream, { support: 'required', isTaskClient: false, ...wish }, new Set())
  const call = (more: Partial<UpstreamCall> = {}) =>
    caller.call({ method: 'tools/call', params: { name: 't' }, caller: {}, signal, ...more })
  return { call, signal, sent, methods: () => sent.map(({ method }) => method) }
}

const CREATED: Readonly<Record<'legacy' | 'modern', Answer>> = {
  legacy: () => ({ task: { taskId: 'a', status: 'working', pollInterval: 1 } }),
  modern: () => ({ resultType: 'task', taskId: 'a', status: 'working', pollIntervalMs: 1 }),
}
const state =
  (status: string, more: JsonObject = {}): Answer =>
  () => ({ taskId: 'a', status, ...more })

describe('TaskCaller', () => {
  it('asks for a task only where the server has them and the tool or the client wants one', async () => {
    const done: Answer = () => ({ content: [] })
    const asked = async (support: TaskWish['support'], isTaskClient: boolean) => {
      const { call, sent } = open('legacy', { 'tools/call': done }, { support, isTaskClient })
      await call()
      return sent[0]?.params['task'] !== undefined
    }
    assert.deepEqual(
      await Promise.all([
        asked('required', false),
        asked('optional', false),
        asked('optional', true),
        asked(undefined, true),
      ]),
      [true, false, true, false],
    )
    const modern = open('modern', { 'tools/call': done })
    await modern.call({ capabilities: { elicitation: {} } })
    assert.deepEqual(modern.sent[0]?.capabilities, {
      elicitation: {},
      extensions: { 'io.modelcontextprotocol/tasks': {} },
    })
  })

  it('gives a task client the task, with a state that leads to it', async () => {
    for (const era of ['legacy', 'modern'] as const) {
      const result = await open(era, { 'tools/call': CREATED[era] }, { isTaskClient: true }).call()
      assert.ok(isStartedTask(result))
      const { call, methods } = open(era, {
        'tasks/get': state('completed', { result: { content: [] } }),
        'tasks/result': () => ({ content: [] }),
      })
      await call({ answers: { inputResponses: {}, requestState: result.state } })
      assert.equal(methods().includes('tools/call'), false)
    }
  })

  const invalid: Readonly<Record<string, Answer>> = {
    'no id': () => ({ resultType: 'task', status: 'working' }),
    'a long id': () => ({ resultType: 'task', taskId: 'a'.repeat(1025), status: 'working' }),
    'an unknown status': () => ({ resultType: 'task', taskId: 'a', status: 'paused' }),
  }
  for (const [what, answer] of Object.entries(invalid)) {
    it(`rejects a task with ${what}`, async () => {
      await assert.rejects(open('modern', { 'tools/call': answer }).call(), /answered with an invalid task/)
    })
  }

  const ends: Readonly<Record<string, readonly [answer: Answer, problem: RegExp]>> = {
    'no result': [state('completed'), /ended the task without a result/],
    'a result of another kind': [state('completed', { result: { content: 7 } }), /no result of tools\/call/],
    'no error': [state('failed'), /ended the task without a result/],
    'an error': [state('failed', { error: { code: -32_000, message: 'sorry' } }), /sorry/],
    'its own cancellation': [state('cancelled'), /cancelled the task/],
    'another task': [() => ({ taskId: 'b', status: 'working' }), /another task than it was asked for/],
  }
  for (const [what, [answer, problem]] of Object.entries(ends)) {
    it(`fails a task that ends with ${what}`, async () => {
      await assert.rejects(open('modern', { 'tools/call': CREATED.modern, 'tasks/get': answer }).call(), problem)
    })
  }

  it('rejects a state of the server’s own that looks like a task', async () => {
    const started = await open('modern', { 'tools/call': CREATED.modern }, { isTaskClient: true }).call()
    assert.ok(isStartedTask(started) && isTaskState(started.state))
    const answer: Answer = () => ({ resultType: 'input_required', requestState: started.state })
    await assert.rejects(open('modern', { 'tools/call': answer }).call(), /input_required that is invalid/)
  })

  it('cancels a task that never ends when the call is aborted, and asks no more', async () => {
    const { call, signal, methods } = open('modern', {
      'tools/call': CREATED.modern,
      'tasks/get': state('working', { pollIntervalMs: 1 }),
      'tasks/cancel': () => ({}),
    })
    const calling = call()
    setTimeout(() => signal.abort(new Error('deadline')), 30)
    await assert.rejects(calling, { code: 'aborted' })
    const polls = methods().filter((method) => method === 'tasks/get').length
    assert.ok(polls <= 1, `polled ${polls} times in 30 ms`)
    assert.equal(methods().at(-1), 'tasks/cancel')
  })

  it('leaves a task when the gateway stops', async () => {
    const leave = createCanceller()
    const { call, methods } = open('modern', { 'tools/call': CREATED.modern, 'tasks/get': state('working') }, { leave })
    const calling = call()
    setTimeout(() => leave.abort(new Error('stopping')), 20)
    assert.ok(isStartedTask(await calling))
    assert.equal(methods().includes('tasks/cancel'), false)
  })

  it('goes on after a server was down for a moment', async () => {
    let polls = 0
    const { call } = open('modern', {
      'tools/call': CREATED.modern,
      'tasks/get': () => {
        if (++polls === 1) throw new UpstreamError('upstream_down', 'is not running')
        return { taskId: 'a', status: 'completed', result: { content: [] } }
      },
    })
    assert.deepEqual(await call(), { resultType: 'complete', content: [] })
  })

  it('reports a new status message as progress, once and cut', async () => {
    let polls = 0
    const said: string[] = []
    const { call } = open('modern', {
      'tools/call': CREATED.modern,
      'tasks/get': () =>
        ++polls < 3
          ? { taskId: 'a', status: 'working', statusMessage: 'x'.repeat(5000), pollIntervalMs: 1 }
          : { taskId: 'a', status: 'completed', result: { content: [] } },
    })
    await call({ onProgress: ({ message }) => said.push(message ?? '') })
    assert.equal(said.length, 1)
    assert.ok((said[0]?.length ?? 0) <= 1000)
  })
})
