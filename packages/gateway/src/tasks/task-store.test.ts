import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createCanceller } from '@toolgate/core/internal'
import { memoryState } from '@toolgate/core/stores'
import { type TaskEnding, type TaskOwner, TaskStore, type TaskStoreOptions, TooManyTasks } from './task-store.ts'

const VERA: TaskOwner = { tenant: 'acme', user: 'vera', client: 'k1' }
const OTHERS: Readonly<Record<string, TaskOwner>> = {
  'another user': { ...VERA, user: 'eve' },
  'another tenant': { ...VERA, tenant: 'evil' },
  'no tenant': { ...VERA, tenant: undefined },
  'another client of the user': { ...VERA, client: 'k2' },
}
const MINUTE = 60_000
const ENDINGS: readonly TaskEnding[] = [
  { status: 'completed', result: { content: [{ type: 'text', text: 'done' }], isError: true } },
  { status: 'failed', error: { code: -32_000, message: 'no', data: { why: 1 } } },
  { status: 'cancelled' },
]

function setUp(options: Partial<TaskStoreOptions> = {}) {
  const clock = { now: 1000, wallMs: () => clock.now }
  const state = memoryState({ clock })
  const open = () => new TaskStore({ state, clock, ...options })
  return { clock, state, open, tasks: open() }
}

describe('TaskStore', () => {
  it('keeps a task for its owner, also after a restart', async () => {
    const { tasks, open, clock } = setUp()
    const { id } = await tasks.create(VERA, { statusMessage: 'Begun.', work: { at: 'server' } })
    clock.now += 5
    assert.equal(await tasks.update({ owner: VERA, id }, { status: 'input_required', requests: { a: {} } }), true)
    assert.deepEqual(await open().get(VERA, id), {
      id,
      owner: VERA,
      status: 'input_required',
      createdAt: 1000,
      updatedAt: 1005,
      ttlMs: 60 * MINUTE,
      progress: { status: 'input_required', requests: { a: {} }, work: { at: 'server' } },
      ending: undefined,
    })
  })

  for (const [whose, other] of Object.entries(OTHERS)) {
    it(`does not exist for ${whose}`, async () => {
      const { tasks } = setUp()
      const { id } = await tasks.create(VERA)
      assert.equal(await tasks.get(other, id), undefined)
      assert.deepEqual(await tasks.list(other), [])
      assert.equal(await tasks.update({ owner: other, id }, { status: 'input_required' }), false)
      assert.equal(await tasks.end({ owner: other, id }, { status: 'cancelled' }), false)
      assert.equal((await tasks.get(VERA, id))?.status, 'working')
    })
  }

  it('knows no handle but those it made', async () => {
    const { tasks } = setUp()
    const { id } = await tasks.create(VERA)
    for (const wrong of [
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
    ])
      assert.equal(await tasks.get(VERA, wrong), undefined)
  })

  for (const ending of ENDINGS) {
    it(`ends once: ${ending.status}`, async () => {
      const { tasks, open } = setUp()
      const { id } = await tasks.create(VERA)
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
      assert.deepEqual(await tasks.unfinished(), [])
    })
  }

  it('is forgotten when its time is over, which a client cannot make longer than a day', async () => {
    const { tasks, clock, state } = setUp()
    const { id, ttlMs } = await tasks.create(VERA, { ttlMs: 1e15 })
    assert.equal(ttlMs, 24 * 60 * MINUTE)
    await tasks.end({ owner: VERA, id }, ENDINGS[0] as TaskEnding)
    clock.now += ttlMs
    assert.equal(await tasks.get(VERA, id), undefined)
    assert.deepEqual(state.list(''), [])
    assert.equal((await tasks.create(VERA, { ttlMs: -1 })).ttlMs, 10_000)
  })

  it('is bounded for each owner: ended tasks make room, running ones do not', async () => {
    const { tasks } = setUp({ maxOfOwner: 2 })
    const [first, second] = [await tasks.create(VERA), await tasks.create(VERA)]
    await assert.rejects(tasks.create(VERA), TooManyTasks)
    await tasks.create({ ...VERA, user: 'eve' })
    await tasks.end(second, ENDINGS[0] as TaskEnding)
    const third = await tasks.create(VERA)
    assert.deepEqual((await tasks.list(VERA)).map(({ id }) => id).toSorted(), [first.id, third.id].toSorted())
  })

  it('is bounded for all owners together', async () => {
    const { tasks } = setUp({ max: 2 })
    await tasks.create(VERA)
    await tasks.create({ ...VERA, user: 'eve' })
    await assert.rejects(tasks.create({ ...VERA, user: 'max' }), TooManyTasks)
  })

  it('keeps no result that is too large, and no long message', async () => {
    const { tasks } = setUp()
    const task = await tasks.create(VERA, { statusMessage: 'x'.repeat(5000) })
    assert.equal(task.progress.statusMessage?.length, 1000)
    await tasks.end(task, { status: 'completed', result: { content: ['x'.repeat(2 * 1024 * 1024)] } })
    const ended = await tasks.get(VERA, task.id)
    assert.equal(ended?.status, 'failed')
    assert.match(JSON.stringify(ended?.ending), /larger than the 2097152 characters/)
  })

  it('wakes those who wait for its end, and they end with their signal', async () => {
    const { tasks } = setUp()
    const task = await tasks.create(VERA)
    const gone = createCanceller()
    const waiting = tasks.settled(VERA, task.id, gone)
    const other = tasks.settled(VERA, task.id, createCanceller())
    setImmediate(() => gone.abort(new Error('gone')))
    assert.equal((await waiting)?.status, 'working')
    await tasks.end(task, { status: 'cancelled' })
    assert.equal((await other)?.status, 'cancelled')
  })
})
