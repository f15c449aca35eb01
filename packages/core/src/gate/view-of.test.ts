import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createGate } from './gate.ts'
import { defineTool } from '../tools/tool.ts'
import { isView, isViewOf } from './view-of.ts'

const VERA = { user: 'vera' }
const createTestGate = () =>
  createGate({ tools: [defineTool({ name: 'a', execute: () => 'a' })], apps: { desk: { tools: ['a'] } } })

describe('isViewOf', () => {
  it('is true for the views of a gate: shared, narrowed, and of an app', async () => {
    const gate = createTestGate()
    const view = await gate.view(VERA)
    for (const one of [view, view.narrow({ activeTools: [] }), await gate.view(VERA, { app: 'desk' })])
      assert.equal(isViewOf(gate, one), true)
  })

  it('is false for a view of another gate, however alike', async () => {
    assert.equal(isViewOf(createTestGate(), await createTestGate().view(VERA)), false)
  })

  it('knows a gate that a host wraps', async () => {
    const gate = createTestGate()
    const wrapper = { ...gate, view: gate.view }
    assert.equal(isViewOf(wrapper, await gate.view(VERA)), true)
    assert.equal(isViewOf(wrapper, await createTestGate().view(VERA)), false)
  })

  it('is true for a view of a fork of the gate, which only tightens, and false the other way round', async () => {
    const gate = createTestGate()
    const fork = gate.fork({ policy: { deny: ['a'] } })
    const again = fork.fork({})
    assert.equal(isViewOf(gate, await fork.view(VERA)), true)
    assert.equal(isViewOf(gate, await again.view(VERA)), true)
    assert.equal(isViewOf(fork, await gate.view(VERA)), false)
    assert.equal(isViewOf(gate.fork({}), await fork.view(VERA)), false)
  })

  it('is false for a view of a fork that replaced the policy', async () => {
    const gate = createTestGate()
    const fork = gate.fork({ policy: { deny: ['a'] }, inherit: false })
    assert.equal(isViewOf(gate, await fork.view(VERA)), false)
    assert.equal(isViewOf(fork, await fork.view(VERA)), true)
  })
})

describe('isView', () => {
  it('knows what core made from what only looks like it', async () => {
    const gate = createTestGate()
    const view = await gate.view(VERA)
    assert.equal(isView(view), true)
    for (const other of [undefined, null, 'view', {}, { ...view }, gate, VERA]) assert.equal(isView(other), false)
  })
})
