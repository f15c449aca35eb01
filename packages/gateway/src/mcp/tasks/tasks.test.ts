import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { setImmediate as turn, setTimeout as sleep } from 'node:timers/promises'
import { TaskWorld, type TaskProcess, VERA } from '../../testing/tasks.ts'
import type { Task } from './task.ts'

const HOUR = 60 * 60_000

function setUp(t: TestContext, limits: string[] = []) {
  const world = new TaskWorld({ limits })
  t.after(async () => {
    assert.deepEqual(world.faults, [])
    await world.gate.close()
  })
  const open = (options?: { isKept: boolean }) => {
    const process = world.open(options)
    t.after(() => process.leave())
    return process
  }
  return { world, open, events: () => world.audit.records.map(({ event }) => event) }
}

/** Waits for an event of this process, however slow it is. */
async function until(check: () => unknown): Promise<void> {
  for (let left = 3000; !(await check()); left--) {
    assert.ok(left > 0, check.toString())
    await sleep(10)
  }
}

/** Gives everything that is under way a few turns. For what must not happen. */
async function rest(): Promise<void> {
  for (let i = 0; i < 50; i++) await turn()
}

const statusOf = async ({ store }: TaskProcess, { id }: Task) => (await store.get(VERA, id))?.status
const ends = (process: TaskProcess, task: Task, status: string) =>
  until(async () => (await statusOf(process, task)) === status)

describe('Tasks', () => {
  it('follows a task in one process at a time, and in another when the first is gone', async (t) => {
    const { world, open, events } = setUp(t)
    const first = open()
    const task = await world.begin(first)
    await until(() => world.follows === 1)
    const second = open()
    await second.tasks.resume()
    await rest()
    assert.equal(world.follows, 1)
    await first.leave()
    await second.tasks.resume()
    await until(() => world.follows === 2)
    world.move('finish')
    await ends(second, task, 'completed')
    assert.deepEqual(events(), [
      'tool_call',
      'tool_input_required',
      'tool_call',
      'tool_input_required',
      'tool_call',
      'tool_result',
    ])
  })

  it('lets go of a task that another process has taken meanwhile', async (t) => {
    const { world, open } = setUp(t)
    const first = open()
    const task = await world.begin(first)
    await until(() => world.follows === 1)
    world.clock.now += 11_000
    const second = open()
    await second.tasks.resume()
    await until(() => world.follows === 2)
    await first.tasks.resume()
    world.move('finish')
    await ends(second, task, 'completed')
    assert.equal(world.audit.records.filter(({ event }) => event === 'tool_result').length, 1)
    assert.deepEqual(world.cancelled, [])
  })

  it('takes the limit of a call once, over all of its rounds', async (t) => {
    const { world, open } = setUp(t, ['up:work:1/60'])
    const process = open()
    const task = await world.begin(process)
    world.move('finish')
    await ends(process, task, 'completed')
    const view = await world.gate.view({ user: 'vera' })
    assert.equal((await view.call({ tool: 'up:work', input: { n: 1 } })).status, 'refused')
  })

  it('fails a task whose client has no key any more, and cancels it at its server', async (t) => {
    const { world, open, events } = setUp(t)
    const first = open()
    const task = await world.begin(first)
    await until(() => world.follows === 1)
    await first.leave()
    world.isKnown = false
    const second = open()
    await second.tasks.resume()
    await ends(second, task, 'failed')
    await until(() => world.cancelled.length > 0)
    assert.deepEqual(world.cancelled, ['up toolgate.task:a'])
    assert.equal(events().at(-1), 'tool_abandoned')
  })

  it('stops a running task when its key is no longer accepted', async (t) => {
    const { world, open } = setUp(t)
    const process = open()
    const task = await world.begin(process)
    await until(() => world.follows === 1)
    world.isKnown = false
    await process.tasks.resume()
    await ends(process, task, 'failed')
  })

  it('cancels the task at its server where there is no room for a handle', async (t) => {
    const { world, open } = setUp(t)
    const process = open()
    const call = { kind: 'upstream', tool: 'up:none', callId: 'c' } as const
    for (let i = 0; i < 100; i++) await process.store.create(VERA, { call, work: {} })
    await assert.rejects(world.begin(process), { name: 'TooManyTasks' })
    assert.deepEqual(world.cancelled, ['up toolgate.task:a'])
  })

  it('goes on while its server is down, whatever else changes', async (t) => {
    const { world, open } = setUp(t)
    const process = open()
    const task = await world.begin(process)
    await until(() => world.follows === 1)
    world.setServer(false)
    world.gate.setPolicy({ allow: ['up:*'] })
    await rest()
    assert.equal(await statusOf(process, task), 'working')
    world.move('finish')
    await ends(process, task, 'completed')
  })

  it('is stopped by a policy, also while its server is down', async (t) => {
    const { world, open } = setUp(t)
    const process = open()
    const task = await world.begin(process)
    await until(() => world.follows === 1)
    world.setServer(false)
    world.gate.setPolicy({ deny: ['up:work'] })
    await ends(process, task, 'failed')
  })

  it('fails on record when its app is removed, and keeps no other task running', async (t) => {
    const { world, open, events } = setUp(t)
    const process = open()
    await process.tasks.resume()
    const task = await world.begin(process, 'desk')
    const other = await world.begin(process)
    await until(() => world.follows === 2)
    world.removeApp()
    await ends(process, task, 'failed')
    assert.equal(events().at(-1), 'tool_abandoned')
    assert.equal(await statusOf(process, other), 'working')
    world.gate.setPolicy({ deny: ['up:work'] })
    await ends(process, other, 'failed')
  })

  it('fails on record when its app was removed while no gateway ran, and keeps no other task waiting', async (t) => {
    const { world, open } = setUp(t)
    const first = open()
    const task = await world.begin(first, 'desk')
    const other = await world.begin(first)
    await until(() => world.follows === 2)
    await first.leave()
    world.removeApp()
    const second = open()
    await second.tasks.resume()
    await ends(second, task, 'failed')
    world.move('finish')
    await ends(second, other, 'completed')
    assert.deepEqual(await second.store.open('upstream'), [])
  })

  it('fails on record when its app is removed while a person is asked', async (t) => {
    const { world, open, events } = setUp(t)
    const process = open()
    process.approvals.resume()
    const task = await world.beginWaiting(process, undefined, 'desk')
    world.removeApp()
    const [pending] = await world.gate.approvals.list({ status: 'pending' })
    await world.gate.approvals.decide({ user: 'ann', roles: ['approver'] }, pending?.id ?? '', { decision: 'approve' })
    await ends(process, task, 'failed')
    await until(async () => (await process.store.open('approval')).length === 0)
    assert.equal(events().at(-1), 'tool_abandoned')
  })

  it('makes no call that its client has cancelled while it was approved', async (t) => {
    const { world, open, events } = setUp(t)
    const process = open()
    process.approvals.resume()
    const task = await world.beginWaiting(process)
    const update = process.store.update.bind(process.store)
    process.store.update = async (...asked) => {
      assert.equal(await process.tasks.cancel(task), true)
      return update(...asked)
    }
    const [pending] = await world.gate.approvals.list({ status: 'pending' })
    await world.gate.approvals.decide({ user: 'ann', roles: ['approver'] }, pending?.id ?? '', { decision: 'approve' })
    await until(async () => (await process.store.open('approval')).length === 0)
    assert.equal(await statusOf(process, task), 'cancelled')
    assert.ok(!events().includes('tool_result'), events().join(' '))
  })

  it('is stopped by a halt while it waits for its client, at its server too', async (t) => {
    const { world, open, events } = setUp(t)
    const process = open()
    await process.tasks.resume()
    const task = await world.begin(process)
    world.move('ask')
    await ends(process, task, 'input_required')
    await world.gate.halt({ tool: 'up:work', reason: 'leaked' })
    await ends(process, task, 'failed')
    await until(() => world.cancelled.length === 1)
    assert.ok(events().includes('tool_blocked'))
    assert.equal(world.audit.records.find(({ event }) => event === 'tool_blocked')?.reason, 'halted')
  })

  it('fails when its policy has come to want an approval, and leaves no request for one', async (t) => {
    const { world, open } = setUp(t)
    const process = open()
    const task = await world.begin(process)
    world.move('ask')
    await ends(process, task, 'input_required')
    world.gate.setPolicy({ ask: ['up:*'] })
    await process.tasks.answer((await process.store.get(VERA, task.id)) as Task, { a: { action: 'accept' } })
    await ends(process, task, 'failed')
    assert.deepEqual(await world.gate.approvals.list({ status: 'pending' }), [])
  })

  it('waits for a server that starts later than the gateway', async (t) => {
    const { world, open } = setUp(t)
    const first = open()
    const task = await world.begin(first)
    await until(() => world.follows === 1)
    await first.leave()
    world.setServer(false)
    const second = open()
    await second.tasks.resume()
    await rest()
    assert.deepEqual([await statusOf(second, task), world.follows], ['working', 1])
    world.setServer(true)
    await second.tasks.resume()
    await until(() => world.follows === 2)
    world.move('finish')
    await ends(second, task, 'completed')
  })

  it('takes an answer once', async (t) => {
    const { world, open, events } = setUp(t)
    const process = open()
    const task = await world.begin(process)
    world.move('ask')
    await ends(process, task, 'input_required')
    const waiting = (await process.store.get(VERA, task.id)) as Task
    const follows = world.follows
    await Promise.all([1, 2].map(() => process.tasks.answer(waiting, { a: { action: 'accept' } })))
    await until(() => world.follows === follows + 1)
    world.move('finish')
    await ends(process, task, 'completed')
    await process.tasks.answer(waiting, { a: { action: 'accept' } })
    await rest()
    assert.equal(world.follows, follows + 1)
    assert.equal(events().filter((event) => event === 'tool_result').length, 1)
  })

  it('is abandoned on record when its client never answers, also if the gateway stops meanwhile', async (t) => {
    for (const isStopped of [false, true]) {
      const { world, open } = setUp(t)
      const first = open()
      const task = await world.begin(first)
      world.move('ask')
      await ends(first, task, 'input_required')
      if (isStopped) await first.leave()
      world.clock.now += 30 * 24 * HOUR
      await (isStopped ? open() : first).tasks.resume()
      await until(() => world.audit.records.at(-1)?.event === 'tool_abandoned')
      const { reason, detail, continues } = world.audit.records.at(-1) ?? {}
      assert.deepEqual([reason, detail], ['caller_gone', 'The time of the task was over.'])
      assert.equal(continues, world.audit.records[0]?.tool_call_id)
    }
  })

  it('is cancelled at its server when its client never answers', async (t) => {
    const { world, open } = setUp(t)
    const process = open()
    const task = await world.begin(process)
    world.move('ask')
    await ends(process, task, 'input_required')
    world.clock.now += HOUR
    await process.tasks.resume()
    assert.deepEqual(world.cancelled, ['up toolgate.task:a'])
  })

  it('ends on record with a gateway that keeps no tasks', async (t) => {
    for (const asks of [false, true]) {
      const { world, open, events } = setUp(t)
      const process = open({ isKept: false })
      const task = await world.begin(process)
      await until(() => world.follows === 1)
      if (asks) world.move('ask')
      if (asks) await ends(process, task, 'input_required')
      await process.leave()
      assert.equal(events().at(-1), 'tool_abandoned')
      assert.deepEqual(await process.store.open('upstream'), [])
    }
  })
})
