import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createGate } from './gate.ts'
import { defineTool } from '../tools/tool.ts'

const tools = ['a', 'b', 'c'].map((name) => defineTool({ name, execute: () => name }))

describe('view.foreign', () => {
  const gate = createGate({ tools, policy: { deny: ['c'] } })

  it('lists what a visibility named beyond what it was given, also what is hidden, in order', async () => {
    const view = await gate.view({}, { visibility: ['z', 'c', 'a'] })
    assert.deepEqual([view.ids, view.foreign], [['a'], ['c', 'z']])
    assert.deepEqual(view.narrow({ activeTools: ['a'] }).foreign, ['c', 'z'])
  })

  it('is empty where nothing is foreign, and without a visibility', async () => {
    assert.deepEqual((await gate.view({}, { visibility: ({ tools: offered }) => offered })).foreign, [])
    assert.deepEqual((await gate.view({})).foreign, [])
  })
})

describe('gate.view', () => {
  it('keeps a thousand overlapping runs with visibilities of their own apart', async () => {
    const gate = createGate({ tools })
    const wanted = (i: number) => tools.filter((_, at) => (i >> at) % 2 === 1).map(({ id }) => id)
    const views = await Promise.all(
      Array.from({ length: 1000 }, (_, i) =>
        gate.view({ user: 'vera' }, { visibility: async () => (await Promise.resolve(), wanted(i)) }),
      ),
    )
    for (const [i, view] of views.entries()) assert.deepEqual(view.ids, wanted(i))
  })
})
