import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createCanceller } from '@toolgate/values'
import { memoryState } from '@toolgate/core/stores'
import { type NewTask, type TaskCall, type TaskEnding, type TaskOwner, TooManyTasks } from './task.ts'
import { TaskStore, type TaskStoreOptions } from './task-store.ts'

const VERA: TaskOwner = { tenant: 'acme', user: 'vera', client: 'k1' }
const OTHERS: Readonly<Record<string, TaskOwner>> = {
  'another user': { ...VERA, user: 'eve' },
  'another tenant': { ...VERA, tenant: 'evil' },
  'no tenant': { ...VERA, tenant: undefined },
  'another client of the user': { ...VERA, client: 'k2' },
}
const MINUTE = 60_000
const CALL: TaskCall = { kind: 'upstream', tool: 'up:work', callId: 'c1' }
const SECRET = 'the-input-of-vera'
const ENDINGS: readonly TaskEnding[] = [
  { status: 'completed', result: { content: [{ type: 'text', text: 'done' }], isError: true } },
  { status: 'failed', error: { code: -32_000, message: 'no', data: { why: 1 } } },
  { status: 'cancelled' },
]

function setUp(options: Partial<TaskStoreOptions> = {}) {
  const clock = { now: 1000, wallMs: () => clock.now }
  const state = memoryState({ clock })
  const open = () => new TaskStore({ state, clock, ...options })
  const tasks = open()
  const create = (owner = VERA, more: Partial<NewTask> = {}) => tasks.create(owner, { call: CALL, work: {}, ...more })
  return { clock, state, open, tasks, create }
}

describe('TaskStore', () => {
  it('keeps a task for its owner, also after a restart', async () => {
    const { tasks, create, open, clock } = setUp()
    const { id } = await create(VERA, { statusMessage: 'Begun.', work: { at: 'server' } })
    clock.now += 5
    assert.equal(await tasks.update({ owner: VERA, id }, { status: 'input_required', requests: { a: {} } }), true)
    assert.deepEqual(await open().get(VERA, id), {
      id,
      owner: VERA,
      status: 'input_required',
      createdAt: 1000,
      updatedAt: 1005,
      ttlMs: 60 * MINUTE,
      progress: { status: 'input_required', requests: { a: {} } },
      ending: undefined,
    })
    assert.deepEqual(await open().workOf({ owner: VERA, id }), { at: 'server' })
  })

  it('keeps inputs, texts, results and errors sealed', async () => {
    const { tasks, create, state } = setUp()
    const word = { text: SECRET }
    const texts = { statusMessage: SECRET, requests: word }
    const running = await create(VERA, { work: word, ...texts })
    await tasks.update(running, { status: 'input_required', ...texts })
    await tasks.end(await create(), { status: 'completed', result: word })
    await tasks.end(await create(), { status: 'failed', error: { code: 1, message: SECRET } })
    assert.ok(!JSON.stringify(await state.list('')).includes(SECRET))
    assert.deepEqual((await tasks.get(VERA, running.id))?.progress, { status: 'input_required', ...texts })
  })

  for (const [whose, other] of Object.entries(OTHERS)) {
    it(`does not exist for ${whose}`, async () => {
      const { tasks, create } = setUp()
      const { id } = await create()
      assert.equal(await tasks.get(other, id), undefined)
      assert.deepEqual(await tasks.list(other), [])
      assert.equal(await tasks.find({ owner: other, id }), undefined)
      assert.equal(await tasks.update({ owner: other, id }, { status: 'input_required' }), false)
      assert.equal(await tasks.end({ owner: other, id }, { status: 'cancelled' }), false)
      assert.equal((await tasks.get(VERA, id))?.status, 'working')
    })
  }

  it('knows no handle but those it made', async () => {
    const { tasks, create } = setUp()
    const { id } = await create()
    const wrong = [
      undefined,
      null,
      7,
      {},
      '',
      '__proto__',
      `${id} `,
      `${id}/`,
      `../${id}`,
      id.slice(1),
      'x'.repeat(1e6),
    ]
    for (const one of wrong) assert.equal(await tasks.get(VERA, one), undefined)
  })

  for (const ending of ENDINGS) {
    it(`ends once: ${ending.status}`, async () => {
      const { tasks, create, open } = setUp()
      const { id } = await create()
      const ended = await Promise.all([tasks, open()].map((each) => each.end({ owner: VERA, id }, ending)))
      assert.deepEqual(ended.toSorted(), [false, true])
      assert.equal(await tasks.end({ owner: VERA, id }, { status: 'cancelled' }), false)
      assert.equal(await tasks.update({ owner: VERA, id }, { status: 'working' }), false)
      const { at: _, ...kept } = ((await open().get(VERA, id))?.ending ?? {}) as TaskEnding & { at: number }
      assert.deepEqual(kept, ending)
      assert.deepEqual(
        (await tasks.list(VERA)).map(({ status }) => status),
        [ending.status],
      )
    })
  }

  it('is forgotten when its time is over, which a client cannot make longer than a day', async () => {
    const { tasks, create, clock, state } = setUp()
    const task = await create(VERA, { ttlMs: 1e15 })
    assert.equal(task.ttlMs, 24 * 60 * MINUTE)
    await tasks.close(task)
    await tasks.end(task, ENDINGS[0] as TaskEnding)
    clock.now += task.ttlMs
    assert.equal(await tasks.get(VERA, task.id), undefined)
    assert.deepEqual(
      (await state.list('')).filter(({ key }) => !key.includes('state-keys')),
      [],
    )
    assert.equal((await create(VERA, { ttlMs: -1 })).ttlMs, 10_000)
  })

  it('is open until its call has a terminal record, also when its time is over', async () => {
    const { tasks, create, open, clock } = setUp()
    const task = await create()
    await tasks.end(task, { status: 'cancelled' })
    clock.now += 400 * 24 * 60 * MINUTE
    assert.deepEqual(await open().open('upstream'), [{ id: task.id, owner: VERA, call: CALL }])
    assert.deepEqual(await open().open('approval'), [])
    await tasks.close(task)
    assert.deepEqual(await tasks.open('upstream'), [])
  })

  it('is failed for its client if its record is written and its result was lost with the process', async () => {
    const { tasks, create } = setUp()
    const task = await create()
    await tasks.close(task)
    assert.equal((await tasks.get(VERA, task.id))?.status, 'failed')
  })

  it('makes tasks of an earlier form open ones that clients no longer see', async () => {
    const { tasks, state } = setUp()
    const continues = { callId: 'c7', round: 1, binding: 'b' }
    const work = { kind: 'upstream', tool: 'up:work', app: 'desk', server: 'up', state: 's', input: {}, continues }
    const id = 'A'.repeat(22)
    const progress = { status: 'working', work }
    await state.set(`gateway/tasks/x/${id}`, { owner: VERA, createdAt: 1, updatedAt: 1, ttlMs: 1e6, progress })
    await tasks.adopt()
    const call = { kind: 'upstream', tool: 'up:work', app: 'desk', callId: 'c7' }
    assert.deepEqual(await tasks.open('upstream'), [{ id, owner: VERA, call }])
    assert.equal(await tasks.get(VERA, id), undefined)
    assert.ok(!JSON.stringify(await state.list('gateway/tasks/')).includes('input'))
  })

  it('is bounded for each user, over all keys: ended tasks make room, running ones do not', async () => {
    const { tasks, create } = setUp({ maxOfUser: 2 })
    const [first, second] = [await create(), await create({ ...VERA, client: 'k2' })]
    await assert.rejects(create(), { name: 'TooManyTasks', message: 'too many tasks: a user may have 2 at once' })
    await create({ ...VERA, user: 'eve' })
    await tasks.end(second, ENDINGS[0] as TaskEnding)
    const third = await create()
    assert.deepEqual((await tasks.list(VERA)).map(({ id }) => id).toSorted(), [first.id, third.id].toSorted())
    assert.deepEqual(await tasks.list({ ...VERA, client: 'k2' }), [])
  })

  it('gives each user a fair share of what the gateway keeps, so that a late one finds room', async () => {
    const { create } = setUp({ max: 40 })
    const has: number[] = []
    for (const user of ['a', 'b', 'c', 'd', 'e', 'f']) {
      let count = 0
      const room = async () => create({ ...VERA, user }).then(() => ++count)
      await assert.rejects(async () => {
        for (;;) await room()
      }, /a user may have 100 at once, and the gateway, which keeps 40 for all users, has room for \d+ now/)
      has.push(count)
    }
    assert.deepEqual(has, [10, 8, 6, 4, 3, 3])
  })

  it('keeps room for calls that are on their way', async () => {
    const { tasks, create } = setUp({ maxOfUser: 2 })
    const rooms = await Promise.all([tasks.reserve(VERA), tasks.reserve(VERA)])
    await assert.rejects(tasks.reserve(VERA), TooManyTasks)
    await create(VERA, { room: rooms[0] })
    for (const room of rooms) room.release()
    rooms[0].release()
    const last = await tasks.reserve(VERA)
    await assert.rejects(create(), TooManyTasks)
    last.release()
    await create()
  })

  it('keeps no input that is too large', async () => {
    const { tasks } = setUp()
    await assert.rejects(tasks.reserve(VERA, { text: 'é'.repeat(200_000) }), /at most 262144 bytes/)
  })

  it('keeps large results, none that is too large, and no long message', async () => {
    const { tasks, create, state } = setUp()
    const task = await create(VERA, { statusMessage: 'x'.repeat(5000) })
    assert.equal(task.progress.statusMessage?.length, 1000)
    await tasks.end(task, { status: 'completed', result: { content: ['x'.repeat(2 * 1024 * 1024)] } })
    const ended = await tasks.get(VERA, task.id)
    assert.equal(ended?.status, 'failed')
    assert.match(JSON.stringify(ended?.ending), /larger than the 2097152 characters/)
    const large = await create()
    const result = { content: ['é'.repeat(2_000_000)] }
    await tasks.end(large, { status: 'completed', result })
    const { ending } = (await tasks.get(VERA, large.id)) ?? {}
    assert.deepEqual(ending?.status === 'completed' && ending.result, result)
    assert.ok((await state.list('gateway/task-results/')).length > 10)
  })

  it('wakes those who wait for its end, and they end with their signal', async () => {
    const { tasks, create } = setUp()
    const task = await create()
    const gone = createCanceller()
    const waiting = tasks.settled(VERA, task.id, gone)
    const other = tasks.settled(VERA, task.id, createCanceller())
    setImmediate(() => gone.abort(new Error('gone')))
    assert.equal((await waiting)?.status, 'working')
    await tasks.end(task, { status: 'cancelled' })
    assert.equal((await other)?.status, 'cancelled')
  })
})
