import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { buildToolset } from '../decide/build-toolset.ts'
import { createGate } from '../gate/gate.ts'
import type { Source } from '../tools/catalog.ts'
import type { Group } from '../tools/groups.ts'
import { defineTool, type ToolDefinition } from '../tools/tool.ts'

const VERA = { user: 'vera' }
const run = () => 'ok'
const wipe = defineTool({ name: 'wipe', groups: ['danger'], execute: run })
const fetch = defineTool({ name: 'fetch', execute: run })
const DANGER = { danger: { tools: [] } }

/** A source whose tools the test changes. */
function changingSource(first: readonly ToolDefinition[]): Source & { change(tools: readonly ToolDefinition[]): void } {
  let offered = first
  let tell = () => {}
  return {
    name: 'changing',
    tools: () => offered,
    subscribe(listener) {
      tell = listener
      return () => {}
    },
    change(tools) {
      offered = tools
      tell()
    },
  }
}

describe('a tool that joins groups', () => {
  it('is a member beside those that the group names', () => {
    const gate = createGate({ tools: [wipe, fetch], groups: { danger: { tools: ['fetch'] } } })
    assert.deepEqual(gate.membersOf('danger'), ['fetch', 'wipe'])
    assert.deepEqual(gate.lint(), [])
  })

  for (const [where, options] of [
    ['the gate', { tools: [wipe, fetch] }],
    ['an app', { tools: [fetch], apps: { ops: { tools: [wipe] } } }],
    [
      'an app, as a definition',
      { tools: [fetch], apps: { ops: { tools: [{ ...definition(), groups: ['danger'] }] } } },
    ],
    ['a source', { sources: [{ name: 'more', tools: () => [wipe, fetch] }] }],
    [
      'a source, as a definition',
      { sources: [changingSource([{ ...definition(), groups: ['danger'] }])], tools: [fetch] },
    ],
  ] as const) {
    it(`is denied, locked and switched off with its group, where it is of ${where}`, async () => {
      const denying = createGate({ ...options, groups: DANGER, policy: { deny: ['group:danger'] } })
      assert.deepEqual((await denying.view(VERA)).ids, ['fetch'])
      const call = await (await denying.view(VERA)).call({ tool: 'wipe' })
      assert.equal(call.status, 'refused')

      const locking = createGate({ ...options, groups: { danger: { tools: [], unlock: 'request' } } })
      const caller = { ...VERA, session: 's' }
      assert.deepEqual((await locking.view(caller)).ids, ['fetch', 'request_tools'])
      locking.locks.request(caller, 'danger')
      assert.deepEqual((await locking.view(caller)).ids, ['fetch', 'wipe'])

      const off = createGate({
        ...options,
        groups: { danger: { tools: [], visibility: 'conditional' } },
        availability: {
          revision: 1,
          get: () => ({ available: false }),
          subscribe: () => () => {},
        },
      })
      assert.deepEqual((await off.view(VERA)).ids, ['fetch'])
    })
  }

  it('is offered by the apps that import the group', async () => {
    const gate = createGate({ tools: [wipe, fetch], groups: DANGER, apps: { ops: { import: ['danger'] } } })
    assert.deepEqual((await gate.view(VERA, { app: 'ops' })).ids, ['wipe'])
  })

  it('is taken of what the group loads', async () => {
    const load = () => [wipe, fetch]
    const gate = createGate({ groups: { danger: { tools: [], load } } })
    const { failure } = await gate.loads.load('danger')
    assert.deepEqual(gate.catalog.snapshot().ids, ['wipe'])
    assert.match(failure ?? '', /"fetch" is not a tool of the group/)
    await gate.close()
  })

  it('is hidden with it in a toolset that a policy makes', () => {
    const set = buildToolset({ from: [wipe, fetch], groups: DANGER, policy: { deny: ['group:danger'] } })
    assert.deepEqual(set.ids, ['fetch'])
  })

  it('joins when its source says so, and leaves when it says that', async () => {
    const source = changingSource([definition()])
    const gate = createGate({ sources: [source], groups: DANGER, policy: { deny: ['group:danger'] } })
    const before = await gate.view(VERA)
    assert.deepEqual(before.ids, ['wipe'])
    source.change([{ ...definition(), groups: ['danger'] }])
    assert.equal((await before.call({ tool: 'wipe' })).status, 'refused')
    assert.deepEqual((await gate.view(VERA)).ids, [])
    source.change([definition()])
    assert.deepEqual((await gate.view(VERA)).ids, ['wipe'])
  })

  it('leaves its group as it was given: what it inherits still holds', async () => {
    const locked: Group = Object.create({ unlock: 'request' }, { tools: { value: [], enumerable: true } })
    const gate = createGate({ tools: [wipe], groups: { danger: locked } })
    assert.deepEqual((await gate.view({ ...VERA, session: 's' })).ids, ['request_tools'])
  })

  it('cannot join one that there is not', () => {
    const nowhere = { ...definition(), groups: ['dangre'] }
    const problem = /tool "wipe"\.groups: no group is named "dangre" \(did you mean "danger"\?\); the groups are danger/
    assert.throws(() => createGate({ tools: [defineTool(nowhere)], groups: DANGER }), problem)
    assert.throws(() => createGate({ apps: { ops: { tools: [nowhere] } }, groups: DANGER }), problem)
    assert.throws(() => buildToolset({ from: [defineTool(nowhere)], groups: DANGER }), problem)
    // @ts-expect-error -- a text is no list
    assert.throws(() => defineTool({ name: 'search', groups: 'web' }), { code: 'tool_invalid' })
  })

  it('is not taken of a source where it joins one that there is not: what the group says could not hold for it', () => {
    const source = changingSource([{ ...definition(), groups: ['dangre'] }])
    const { catalog } = createGate({ sources: [source], groups: DANGER })
    assert.deepEqual(catalog.snapshot().ids, [])
    assert.deepEqual(catalog.rejected, [
      {
        source: 'changing',
        tool: 'wipe',
        code: 'tool_invalid',
        reason: 'tool "wipe".groups: no group is named "dangre" (did you mean "danger"?); the groups are danger',
      },
    ])
  })

  it('is another tool than one that joins others: an app cannot mean both', () => {
    const tools = [defineTool(definition())]
    assert.throws(() => createGate({ tools, apps: { ops: { tools: [wipe] } }, groups: DANGER }), {
      code: 'tool_duplicate',
      message: /with another groups/,
    })
  })
})

function definition(): ToolDefinition {
  return { name: 'wipe', execute: run }
}
