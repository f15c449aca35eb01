import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createGate, type Gate } from './gate.ts'
import type { Source } from '../tools/catalog.ts'
import { defineTool, type Tool } from '../tools/tool.ts'

const tool = (name: string, tags: readonly string[] = []): Tool =>
  defineTool({ name, tags, execute: () => `ran ${name}` })
const idsOf = async (gate: Gate) => (await gate.view({ user: 'vera' })).ids

describe('gate.fork', () => {
  const make = () => createGate({ tools: [tool('a'), tool('b'), tool('c')], policy: { name: 'parent', deny: ['a'] } })

  it('is under the policy of its parent and its own', async () => {
    const gate = make()
    const fork = gate.fork({ policy: { deny: ['b'] } })
    assert.deepEqual(await idsOf(fork), ['c'])
    assert.deepEqual(await idsOf(gate), ['b', 'c'])
  })

  it('cannot allow what its parent denies', async () => {
    assert.deepEqual(await idsOf(make().fork({ policy: { allow: ['a', 'b'] } })), ['b'])
  })

  it('follows later changes of its parent, at any depth, also in views that are open', async () => {
    const gate = make()
    let fork = gate
    for (let depth = 0; depth < 50; depth++) fork = fork.fork({ policy: { ask: ['c'] } })
    const view = await fork.view({ user: 'vera' })
    assert.deepEqual(view.ids, ['b', 'c'])
    gate.setPolicy({ deny: ['b'] })
    assert.equal((await view.call({ tool: 'b' })).status, 'refused')
    assert.deepEqual(await idsOf(fork), ['a', 'c'])
    assert.equal((await view.call({ tool: 'a' })).status, 'refused', 'widening waits for the next view')
  })

  it('does not reach its parent or its siblings by its own policy', async () => {
    const gate = make()
    const [one, other] = [gate.fork({}), gate.fork({})]
    one.setPolicy({ allow: [] })
    assert.deepEqual([await idsOf(one), await idsOf(other), await idsOf(gate)], [[], ['b', 'c'], ['b', 'c']])
  })

  it('puts tools that come later under the policy too', async () => {
    const tools = [tool('a')]
    let changed = () => {}
    const source: Source = {
      name: 'live',
      tools: () => tools,
      subscribe: (listener) => {
        changed = listener
        return () => {}
      },
    }
    const fork = createGate({ sources: [source] }).fork({ policy: { deny: ['tag:danger'] } })
    tools.push(tool('drop', ['danger']), tool('find'))
    changed()
    assert.deepEqual(await idsOf(fork), ['a', 'find'])
  })

  it('replaces the policy where it says so, and only of a gate that is not itself a fork', async () => {
    const gate = make()
    assert.deepEqual(await idsOf(gate.fork({ policy: { deny: ['b'] }, inherit: false })), ['a', 'c'])
    assert.throws(() => gate.fork({}).fork({ policy: {}, inherit: false }), {
      code: 'config_invalid',
      path: 'fork.inherit',
    })
    const replaced = gate.fork({ policy: { deny: ['b'] }, inherit: false })
    assert.throws(() => replaced.fork({ inherit: false }), { code: 'config_invalid' })
  })

  it('has to say by which policy it replaces that of its parent: without one it would allow everything', () => {
    const gate = make()
    for (const options of [{ inherit: false }, { inherit: false, policy: undefined }])
      assert.throws(() => gate.fork(options), { code: 'config_invalid', path: 'fork.policy' })
  })

  it('has a policy revision that grows with every change that concerns it', () => {
    const gate = make()
    const fork = gate.fork({})
    const before = fork.policyRevision
    gate.setPolicy({})
    assert.ok(fork.policyRevision > before)
    fork.setPolicy({})
    assert.ok(fork.policyRevision > before + 1)
  })
})
