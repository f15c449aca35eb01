import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Caller } from '../ports/caller.ts'
import { createGate } from '../gate/gate.ts'
import type { GateOptions } from '../gate/options.ts'
import { memoryState } from '../memory/state.ts'
import type { StateStore } from '../ports/ports.ts'
import { defineTool } from '../tools/tool.ts'
import type { Preferences } from './preferences.ts'

const VERA: Caller = { user: 'vera', tenant: 'acme' }
const TOOLS = ['files:read', 'web:fetch', 'web:search'].map((id) => {
  const [namespace, name] = id.split(':') as [string, string]
  return defineTool({ namespace, name, execute: () => 'ran' })
})

function setup(options: GateOptions = {}) {
  const faults: unknown[] = []
  const gate = createGate({
    tools: TOOLS,
    groups: { web: { tools: ['web:*'] } },
    onFault: (error) => faults.push(error),
    ...options,
  })
  return { gate, faults, seen: async (caller: Caller) => (await gate.view(caller)).ids }
}

const off = (groups: string[], tools: string[] = []): Preferences => ({ groups, tools })

describe('gate.preferences', () => {
  it('switches groups and tools off for one user, and on again', async () => {
    const { gate, seen } = setup()
    assert.deepEqual(gate.preferences.get(VERA), off([]))
    await gate.preferences.set(VERA, off(['web']))
    assert.deepEqual(await seen(VERA), ['files:read'])
    assert.deepEqual(gate.preferences.get(VERA), off(['web']))
    await gate.preferences.set(VERA, off([], ['web:fetch']))
    assert.deepEqual(await seen(VERA), ['files:read', 'web:search'])
    await gate.preferences.set(VERA, off([]))
    assert.equal((await seen(VERA)).length, 3)
  })

  it('is about that user in that tenant, whatever the names are made of', async () => {
    const { gate, seen } = setup()
    await gate.preferences.set({ user: '1:a', tenant: 'b' }, off(['web']))
    const others: Caller[] = [VERA, { user: '1:a' }, { user: 'a', tenant: 'b1:' }, { user: '1:a', tenant: '-' }, {}]
    for (const other of others) assert.equal((await seen(other)).length, 3)
    assert.deepEqual(await seen({ user: '1:a', tenant: 'b', session: 's', roles: ['admin'] }), ['files:read'])
  })

  it('is in force at the next decision of a view that is open, both ways', async () => {
    const { gate } = setup()
    const view = await gate.view(VERA)
    await gate.preferences.set(VERA, off(['web']))
    const refused = await view.call({ tool: 'web:search' })
    assert.equal(
      refused.text,
      'web:search is unavailable: the user has switched it off. The user can switch it on again in the preferences.',
    )
    assert.deepEqual(view.narrow({}).ids, ['files:read'])
    await gate.preferences.set(VERA, off([]))
    assert.equal((await view.call({ tool: 'web:search' })).status, 'done')
  })

  it('is no part of what a run may at most: its next step has again what is switched on again', async () => {
    const { gate } = setup()
    await gate.preferences.set(VERA, off(['web']))
    const run = await gate.view(VERA, { visibility: ['files:read', 'web:search'] })
    assert.deepEqual(run.ids, ['files:read'])
    await gate.preferences.set(VERA, off([]))
    assert.deepEqual(run.narrow({}).ids, ['files:read', 'web:search'])
  })

  it('is explained as a layer of its own', async () => {
    const { gate } = setup()
    await gate.preferences.set(VERA, off(['web'], ['files:read']))
    const view = await gate.view(VERA)
    assert.deepEqual(
      ['web:search', 'files:read'].map((id) => view.explain(id).reasons.map(({ code, text }) => [code, text])),
      [
        [['switched_off', 'the user has switched off the group web']],
        [['switched_off', 'the user has switched it off']],
      ],
    )
    assert.deepEqual(view.explain('web:search').answers[0], { layer: 'preferences', outcome: 'wait' })
  })

  it('never gives what policy denies, and tells nothing of it', async () => {
    const { gate, seen } = setup({ policy: { deny: ['web:*'] } })
    await gate.preferences.set(VERA, off(['web'], ['none:such']))
    assert.deepEqual(await seen(VERA), ['files:read'])
    const { text } = await (await gate.view(VERA)).call({ tool: 'web:search' })
    assert.match(text, /^Tool "web:search" is not available\./)
    await gate.preferences.set(VERA, off([]))
    assert.deepEqual(await seen(VERA), ['files:read'])
  })

  it('holds in every app and in forks', async () => {
    const { gate } = setup({ apps: { research: { import: ['web'] } } })
    await gate.preferences.set(VERA, off([], ['web:fetch']))
    assert.deepEqual((await gate.view(VERA, { app: 'research' })).ids, ['web:search'])
    assert.deepEqual((await gate.fork({}).view(VERA)).ids, ['files:read', 'web:search'])
  })

  it('tells those who listen', async () => {
    const { gate } = setup()
    const heard: string[] = []
    gate.subscribe(({ event }) => heard.push(event))
    await gate.preferences.set(VERA, off(['web']))
    await gate.preferences.set(VERA, off(['web']))
    assert.deepEqual(heard, ['preferences-changed'])
  })

  it('is kept, and leaves nothing behind where nothing is off', async () => {
    const state = memoryState()
    const { gate } = setup({ state, pins: 'off' })
    const kept = () => (state.list('preferences:') as readonly { key: string }[]).map(({ key }) => key)
    await gate.preferences.set(VERA, off(['web']))
    assert.deepEqual(kept(), ['preferences:4:acme4:vera'])
    assert.deepEqual(await setup({ state, pins: 'off' }).seen(VERA), ['files:read'])
    await gate.preferences.set(VERA, off([]))
    assert.deepEqual(kept(), [])
  })

  it('reaches other replicas within a second', async () => {
    const state = memoryState()
    const [one, other] = [setup({ state, pins: 'off' }), setup({ state, pins: 'off' })]
    const view = await other.gate.view(VERA)
    await one.gate.preferences.set(VERA, off(['web']))
    for (let waitedMs = 0; waitedMs < 20_000 && (await other.seen(VERA)).length > 1; waitedMs += 20) await sleep(20)
    assert.deepEqual(await other.seen(VERA), ['files:read'])
    assert.equal((await view.call({ tool: 'web:search' })).status, 'refused')
    await one.gate.close()
    await other.gate.close()
  })

  it('gives what it keeps sorted and once, and forgets groups that are gone', async () => {
    const state = memoryState()
    const { gate } = setup({ state, groups: { web: { tools: ['web:*'] }, old: { tools: ['files:*'] } } })
    await gate.preferences.set(VERA, off(['web', 'old', 'web'], ['b', 'a']))
    assert.deepEqual(gate.preferences.get(VERA), off(['old', 'web'], ['a', 'b']))
    const later = setup({ state })
    assert.deepEqual(later.gate.preferences.get(VERA), off(['web'], ['a', 'b']))
    assert.deepEqual(await later.seen(VERA), ['files:read'])
  })

  const wrong: [unknown, RegExp][] = [
    [
      { groups: ['wbe'], tools: [] },
      /^preferences\.groups: no group is named "wbe" \(did you mean "web"\?\); the groups are /,
    ],
    [{ groups: [] }, /^preferences\.tools: must be a list/],
    [{ groups: [], tools: [7] }, /^preferences\.tools\[0\]: must be a name/],
    [{ groups: [], tools: ['x'.repeat(301)] }, /^preferences\.tools\[0\]: must be a name of 1 to 300/],
    [{ groups: [], tools: [], on: [] }, /^preferences\.on: unknown field/],
    [[], /^preferences: must be an object/],
    [{ groups: [], tools: Array.from({ length: 1001 }, (_, i) => `t${i}`) }, /at most 1000/],
  ]
  for (const [preferences, message] of wrong) {
    it(`refuses what is told as ${String(message)}`, async () => {
      const { gate, seen } = setup()
      await assert.rejects(gate.preferences.set(VERA, preferences as Preferences), { message })
      assert.equal((await seen(VERA)).length, 3)
    })
  }

  it('takes any tool for known: the answer would tell which hidden ones there are', async () => {
    const { gate } = setup({ policy: { deny: ['web:*'] } })
    for (const id of ['web:search', 'web:none'])
      assert.deepEqual(await gate.preferences.set(VERA, off([], [id])), off([], [id]))
  })

  it('is of users: a caller without one has none', async () => {
    const { gate } = setup()
    await assert.rejects(gate.preferences.set({ tenant: 'acme' }, off(['web'])), { code: 'caller_invalid' })
    assert.deepEqual(gate.preferences.get({ tenant: 'acme' }), off([]))
  })
})

describe('gate.preferences over a store that fails', () => {
  const over = (parts: Partial<StateStore>, state = memoryState()) => {
    const store: StateStore = { ...state, ...parts }
    return setup({ state: store, pins: 'off' })
  }

  it('keeps what was in force where a change is not taken, and says so', async () => {
    const state = memoryState()
    await state.set('preferences:4:acme4:vera', off([], ['web:fetch']))
    const { gate, seen } = over(
      {
        set() {
          throw new Error('disk full')
        },
      },
      state,
    )
    await assert.rejects(gate.preferences.set(VERA, off(['web'])), { code: 'state_unavailable' })
    assert.deepEqual(await seen(VERA), ['files:read', 'web:search'])
  })

  it('has nothing switched off until the store has answered', async () => {
    const answer = Promise.withResolvers<{ key: string; value: unknown }[]>()
    const { seen } = over({ list: (prefix) => (prefix === 'preferences:' ? answer.promise : []) })
    assert.equal((await seen(VERA)).length, 3)
    answer.resolve([{ key: 'preferences:4:acme4:vera', value: off(['web']) }])
    await sleep(0)
    assert.deepEqual(await seen(VERA), ['files:read'])
  })

  it('keeps the last that was known, tells the host, and asks again', async () => {
    const state = memoryState()
    let isBroken = false
    const { gate, seen, faults } = over(
      {
        list(prefix) {
          if (isBroken && prefix === 'preferences:') throw new Error('unreachable')
          return state.list(prefix)
        },
      },
      state,
    )
    await gate.preferences.set(VERA, off(['web']))
    await sleep(250)
    isBroken = true
    await state.set('preferences:4:acme4:omar', off([], ['files:read']))
    assert.deepEqual(await seen(VERA), ['files:read'])
    for (let waitedMs = 0; waitedMs < 20_000 && faults.length === 0; waitedMs += 20) await sleep(20)
    assert.match(String(faults[0]), /unreachable/)
    assert.deepEqual(await seen(VERA), ['files:read'])
    isBroken = false
    const omar = { user: 'omar', tenant: 'acme' }
    for (let waitedMs = 0; waitedMs < 20_000 && (await seen(omar)).length === 3; waitedMs += 20) await sleep(20)
    assert.deepEqual(await seen(omar), ['web:fetch', 'web:search'])
    await gate.close()
  })

  it('keeps what was known of a user whose entry cannot be read, and tells the host', async () => {
    const state = memoryState()
    await state.set('preferences:4:acme4:vera', { groups: 'web' })
    await state.set('preferences:4:acme4:omar', off(['web']))
    const { seen, faults } = over({}, state)
    assert.equal((await seen(VERA)).length, 3)
    assert.deepEqual(await seen({ user: 'omar', tenant: 'acme' }), ['files:read'])
    assert.match(String(faults[0]), /preferences\.groups: must be a list/)
  })

  it('brings nothing back that was read before a change of one’s own', async () => {
    const state = memoryState()
    const answer = Promise.withResolvers<readonly { key: string; value: unknown }[]>()
    let isFirst = true
    const { gate, seen } = over(
      {
        list(prefix) {
          if (prefix !== 'preferences:' || !isFirst) return state.list(prefix)
          isFirst = false
          return answer.promise
        },
      },
      state,
    )
    await gate.preferences.set(VERA, off(['web']))
    answer.resolve([])
    await sleep(0)
    assert.deepEqual(await seen(VERA), ['files:read'])
    await gate.close()
  })
})
