import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { memoryState } from '@toolgate/core'
import { manualClock } from '@toolgate/core/testing'
import type { PauseState } from './pause.ts'
import { createPauseStore } from './pause-store.ts'

const stateOf = (content = 'hello'): PauseState => ({
  version: 1,
  nonce: 'n',
  runId: 'r',
  identity: 'vera',
  app: undefined,
  tools: [['search', 'h']],
  policyRevision: 1,
  lineage: [],
  budgets: {},
  used: { steps: 1, calls: 0, timeMs: 0, tokens: 0 },
  usage: { input: 0, output: 0, total: 0 },
  level: {
    messages: [
      {
        role: 'user',
        content: [
          { type: 'file', mediaType: 'image/png', data: new Uint8Array([1, 2]) },
          { type: 'text', text: content },
        ],
      },
    ],
    steps: [],
    instructions: undefined,
    context: undefined,
    pending: [],
  },
})

describe('createPauseStore', () => {
  const open = () => {
    const clock = manualClock()
    const state = memoryState({ clock })
    return { clock, state, pauses: createPauseStore(state) }
  }

  it('gives a pause once, to one of however many ask, bytes in messages among it', async () => {
    const { state, pauses } = open()
    const id = await pauses.put(stateOf(), 1e15)
    assert.match(id, /^[A-Za-z0-9_-]{43}$/)
    assert.deepEqual((await pauses.get(id))?.level.messages, stateOf().level.messages)
    const taken = await Promise.all(Array.from({ length: 100 }, () => pauses.take(id)))
    assert.equal(taken.filter((pause) => pause !== undefined).length, 1)
    assert.equal(await pauses.get(id), undefined)
    assert.deepEqual(state.list(''), [])
  })

  it('keeps one that is larger than an entry of the store may be, and cuts no character', async () => {
    const { state, pauses } = open()
    for (const content of ['ä"\n🙂'.repeat(400_000), `x${'🙂'.repeat(500_000)}`, '\uD800'.repeat(300_000)]) {
      const id = await pauses.put(stateOf(content), 1e15)
      assert.ok((state.list('') as readonly unknown[]).length > 2)
      assert.deepEqual((await pauses.take(id))?.level.messages, stateOf(content).level.messages)
      assert.deepEqual(state.list(''), [])
    }
  })

  it('looks for no number of parts that somebody has written into the store', async () => {
    const { state } = open()
    let asked = 0
    const pauses = createPauseStore({ ...state, get: (key) => (asked++, state.get(key)) })
    const id = await pauses.put(stateOf(), 1e15)
    const [entry] = state.list('') as readonly { key: string; value: object }[]
    assert.ok(entry)
    for (const parts of [1e12, 1e6, -1, 1.5, '2', { length: 9 }, null]) {
      await state.set(entry.key, { ...entry.value, parts })
      assert.equal(await pauses.get(id), undefined)
    }
    assert.equal(asked, 7)
    assert.equal(await pauses.take(id), undefined)
  })

  it('gives nothing of one that was changed in the store, that has expired, or that never was', async () => {
    const { clock, state, pauses } = open()
    const id = await pauses.put(stateOf(), 1e15)
    const [entry] = state.list('') as readonly { key: string; value: { text: string } }[]
    assert.ok(entry)
    await state.set(entry.key, { ...entry.value, text: entry.value.text.replace('vera', 'adam') })
    assert.equal(await pauses.get(id), undefined)
    assert.equal(await pauses.take(id), undefined)
    const second = await pauses.put(stateOf(), clock.wallMs() + 10)
    clock.advance(10)
    assert.equal(await pauses.take(second), undefined)
    assert.equal(await pauses.take('x'.repeat(43)), undefined)
  })
})
