import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Caller, createGate, defineTool, memoryAudit } from '@toolgate/core'
import { memoryAvailability } from '@toolgate/core/groups'
import { memoryState, systemClock as clock } from '@toolgate/core/stores'
import { InputRequired } from '@toolgate/core/toolset'
import { toClientLink } from '../relay/client-link.ts'
import { type TaskOwner, TaskStore } from './task-store.ts'
import { Tasks } from './tasks.ts'

const VERA: TaskOwner = { tenant: undefined, user: 'vera', client: 'k1' }
const STARTED = { resultType: 'task', state: 'toolgate.task:a', statusMessage: undefined, ttlMs: undefined } as const
const LEASE_MS = 60

/** Gateways over one store, with a tool that runs as a task until `finish` is called. */
function setUp(t: TestContext, limits: string[] = [], { asks = false } = {}) {
  const state = memoryState({ clock })
  const audit = memoryAudit()
  const ended = Promise.withResolvers<string>()
  const cancelled: string[] = []
  let follows = 0
  const tool = defineTool({
    namespace: 'up',
    name: 'work',
    execute: (_input: unknown, call) => {
      const link = toClientLink(call.context)
      if (!link?.answers) return new InputRequired(STARTED)
      follows++
      if (asks) {
        const isAnswered = Object.keys(link.answers.responses).length > 0
        const asked = new InputRequired({ requests: { a: { method: 'elicitation/create' } }, state: 's' })
        return isAnswered ? { content: [{ type: 'text', text: 'answered' }] } : asked
      }
      return Promise.race([
        ended.promise.then((text) => ({ content: [{ type: 'text', text }] })),
        new Promise((resolve) => link.tasks?.leave?.onAbort(() => resolve(new InputRequired(STARTED)))),
      ])
    },
  })
  const availability = memoryAvailability({ server: { available: true } })
  const groups = { server: { tools: ['up:work'], visibility: 'conditional' as const } }
  const gate = createGate({ tools: [tool], audit, limits, groups, availability })
  t.after(() => gate.close())
  let isKnown = true
  const open = () => {
    const tasks = new Tasks({
      store: new TaskStore({ state, clock }),
      state,
      clock,
      gate,
      callerOf: (): Caller | undefined => (isKnown ? { user: 'vera' } : undefined),
      cancelUpstream: async (server, id) => void cancelled.push(`${server} ${id}`),
      onFault: (error) => assert.fail(String(error)),
      leaseMs: LEASE_MS,
    })
    t.after(() => tasks.leave())
    return tasks
  }
  const begin = async (tasks: Tasks) => {
    const view = await gate.view({ user: 'vera' })
    const outcome = await view.call({ tool: 'up:work', input: { n: 1 } })
    assert.ok(outcome.status === 'input_required')
    return tasks.begin({
      owner: VERA,
      view,
      tool: 'up:work',
      input: { n: 1 },
      client: { era: 'modern', capabilities: {} },
      ttlMs: undefined,
      outcome,
    })
  }
  return {
    gate,
    open,
    begin,
    cancelled,
    setUp: (available: boolean) => availability.set('server', { available }),
    finish: ended.resolve,
    follows: () => follows,
    forgetKey: () => (isKnown = false),
    events: () => audit.records.map(({ event }) => event),
    status: async (tasks: Tasks, id: string) => (await tasks.store.get(VERA, id))?.status,
  }
}

describe('Tasks', () => {
  it('follows a task in one process at a time, and in another when the first is gone', async (t) => {
    const { open, begin, follows, finish, status, events } = setUp(t)
    const first = open()
    const { id } = await begin(first)
    const second = open()
    await sleep(LEASE_MS * 2)
    assert.equal(follows(), 1)
    first.leave()
    await sleep(LEASE_MS * 2)
    assert.equal(follows(), 2)
    finish('done')
    await sleep(LEASE_MS)
    assert.equal(await status(second, id), 'completed')
    assert.deepEqual(events(), [
      'tool_call',
      'tool_input_required',
      'tool_call',
      'tool_input_required',
      'tool_call',
      'tool_result',
    ])
  })

  it('takes the limit of a call once, over all of its rounds', async (t) => {
    const { open, begin, gate, finish, status } = setUp(t, ['up:work:1/60'])
    const tasks = open()
    const { id } = await begin(tasks)
    finish('done')
    await sleep(20)
    assert.equal(await status(tasks, id), 'completed')
    const view = await gate.view({ user: 'vera' })
    assert.equal((await view.call({ tool: 'up:work', input: { n: 1 } })).status, 'refused')
  })

  it('fails a task whose client has no key any more, and cancels it at its server', async (t) => {
    const { open, begin, forgetKey, cancelled, status, events } = setUp(t)
    const first = open()
    const { id } = await begin(first)
    forgetKey()
    first.leave()
    const second = open()
    await sleep(LEASE_MS * 2)
    assert.equal(await status(second, id), 'failed')
    assert.deepEqual(cancelled, ['up toolgate.task:a'])
    assert.equal(events().at(-1), 'tool_blocked')
  })

  it('cancels the task at its server where there is no room for a handle', async (t) => {
    const { open, begin, cancelled } = setUp(t)
    const tasks = open()
    for (let i = 0; i < 100; i++) await tasks.store.create(VERA)
    await assert.rejects(begin(tasks), { name: 'TooManyTasks' })
    assert.deepEqual(cancelled, ['up toolgate.task:a'])
  })

  it('goes on while its server is down, whatever else changes', async (t) => {
    const { gate, open, begin, finish, status, setUp: setServer } = setUp(t)
    const tasks = open()
    const { id } = await begin(tasks)
    setServer(false)
    gate.setPolicy({ allow: ['up:*'] })
    await sleep(20)
    assert.equal(await status(tasks, id), 'working')
    finish('done')
    await sleep(20)
    assert.equal(await status(tasks, id), 'completed')
  })

  it('is stopped by a policy, also while its server is down', async (t) => {
    const { gate, open, begin, status, setUp: setServer } = setUp(t)
    const tasks = open()
    const { id } = await begin(tasks)
    setServer(false)
    gate.setPolicy({ deny: ['up:work'] })
    await sleep(20)
    assert.equal(await status(tasks, id), 'failed')
  })

  it('waits for a server that starts later than the gateway', async (t) => {
    const { open, begin, finish, status, follows, setUp: setServer } = setUp(t)
    const first = open()
    const { id } = await begin(first)
    await sleep(20)
    first.leave()
    setServer(false)
    const second = open()
    await sleep(LEASE_MS * 2)
    assert.deepEqual([await status(second, id), follows()], ['working', 1])
    setServer(true)
    await sleep(LEASE_MS * 2)
    finish('done')
    await sleep(LEASE_MS)
    assert.equal(await status(second, id), 'completed')
  })

  it('takes an answer once', async (t) => {
    const { open, begin, status, follows, events } = setUp(t, [], { asks: true })
    const tasks = open()
    const { id } = await begin(tasks)
    await sleep(20)
    const waiting = await tasks.store.get(VERA, id)
    assert.equal(waiting?.status, 'input_required')
    for (let i = 0; i < 2; i++) {
      await tasks.answer(waiting, { a: { action: 'accept' } })
      await sleep(20)
    }
    assert.deepEqual([await status(tasks, id), follows()], ['completed', 2])
    assert.equal(events().filter((event) => event === 'tool_result').length, 1)
  })
})
