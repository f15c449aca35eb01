import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { memoryAudit } from '../audit/memory.ts'
import { expose } from '../../../expose/src/expose.ts'
import { createGate } from '../gate/gate.ts'
import type { GateOptions } from '../gate/options.ts'
import { memoryAvailability } from '../memory/availability.ts'
import type { Source } from '../tools/catalog.ts'
import { defineTool, type Tool } from '../tools/tool.ts'
import type { App } from './app.ts'

const VERA = { user: 'vera' }

const tool = (id: string, more: object = {}): Tool => {
  const [namespace, name] = id.includes(':') ? (id.split(':') as [string, string]) : [undefined, id]
  return defineTool({ namespace, name, description: `does ${id}`, execute: () => `ran ${id}`, ...more })
}
const TOOLS = ['files:read', 'files:write', 'web:search', 'web:fetch', 'py:run'].map((id) => tool(id))
const GROUPS = { web: { tools: ['web:*'] }, python: { tools: ['py:*'] }, files: { tools: ['files:*'] } }
const make = (apps: Record<string, App>, options: GateOptions = {}) =>
  createGate({ tools: TOOLS, groups: GROUPS, apps, ...options })

describe('gate.view({ app })', () => {
  const research: App = { import: ['web'], tools: ['files:read'] }

  it('sees the tools of the groups that the app imports, and those of its own', async () => {
    const gate = make({ research })
    const view = await gate.view(VERA, { app: 'research' })
    assert.deepEqual(view.ids, ['files:read', 'web:fetch', 'web:search'])
    assert.equal(view.app, 'research')
    assert.equal((await gate.view(VERA)).size, 5)
    assert.equal((await gate.view(VERA)).app, undefined)
  })

  it('runs nothing else, and tells of it as of no tool', async () => {
    const view = await make({ research }).view(VERA, { app: 'research' })
    assert.equal((await view.call({ tool: 'web:search' })).status, 'done')
    const hidden = await view.call({ tool: 'py:run' })
    const unknown = await view.call({ tool: 'py:ran' })
    assert.equal(hidden.text.replace('py:run', '?'), unknown.text.replace('py:ran', '?'))
    assert.match(hidden.text, /^Tool "py:run" is not available\./)
  })

  it('searches and exposes nothing else', async () => {
    const view = await make({ research }).view(VERA, { app: 'research' })
    assert.deepEqual(view.search('run'), [])
    assert.equal(view.search('search')[0]?.id, 'web:search')
    assert.deepEqual(expose(view, 'openai-chat').names.toId('py__run'), undefined)
  })

  it('explains what the app leaves out as a layer of its own', async () => {
    const gate = make({ research: { import: ['web', { group: 'python', visibility: 'hidden' }] } })
    const view = await gate.view(VERA, { app: 'research' })
    const reasonsOf = (id: string) => view.explain(id).reasons.map(({ layer, code, text }) => [layer, code, text])
    assert.deepEqual(reasonsOf('files:read'), [
      ['app', 'app_hidden', 'the app research neither imports it nor lists it'],
    ])
    assert.deepEqual(reasonsOf('py:run'), [['app', 'app_hidden', 'the app research hides the group python']])
    assert.deepEqual(view.explain('py:run').answers[0], { layer: 'app', outcome: 'deny' })
    assert.deepEqual(view.explain('web:fetch').outcome, 'allow')
    assert.deepEqual(view.notices, [])
  })

  it('is under the policy of the gate and that of the app', async () => {
    const gate = make(
      { research: { import: ['web', 'files'], policy: { deny: ['files:write'], ask: ['web:fetch'] } } },
      { policy: { name: 'gate', deny: ['files:read'] } },
    )
    const view = await gate.view(VERA, { app: 'research' })
    assert.deepEqual(view.ids, ['web:fetch', 'web:search'])
    assert.equal((await view.call({ tool: 'web:fetch' })).status, 'waiting')
    assert.equal(view.explain('files:write').reasons[0]?.policy, 'app research')
    assert.deepEqual((await gate.view(VERA)).explain('files:write').outcome, 'allow')
    assert.deepEqual((await gate.view(VERA)).explain('web:fetch').outcome, 'allow')
  })

  it('asks the app’s conditions, over the caller and over the input', async () => {
    const gate = make({
      research: {
        import: ['web'],
        policy: {
          deny: [
            { match: 'web:fetch', unless: "'admin' in caller.roles" },
            { match: 'web:search', input: "input.q == 'secret'" },
          ],
        },
      },
    })
    const [viewer, admin] = await Promise.all(
      [VERA, { user: 'olga', roles: ['admin'] }].map((caller) => gate.view(caller, { app: 'research' })),
    )
    assert.deepEqual([viewer?.ids, admin?.ids], [['web:search'], ['web:fetch', 'web:search']])
    assert.equal((await viewer?.call({ tool: 'web:search', input: { q: 'secret' } }))?.status, 'refused')
    assert.equal((await viewer?.call({ tool: 'web:search', input: { q: 'open' } }))?.status, 'done')
    const whole = await gate.view(VERA)
    assert.equal((await whole.call({ tool: 'web:search', input: { q: 'secret' } })).status, 'done')
  })

  it('holds a group that it imports as conditional to what is known of it now', async () => {
    const availability = memoryAvailability({ web: { available: false, reason: 'the browser is closed' } })
    const apps = {
      strict: { import: [{ group: 'web', visibility: 'conditional' as const }] },
      loose: { import: ['web'] },
    }
    const gate = make(apps, { availability })
    const view = await gate.view(VERA, { app: 'strict' })
    assert.deepEqual(view.ids, [])
    assert.equal((await view.call({ tool: 'web:search' })).text, 'web:search is unavailable: the browser is closed.')
    assert.equal((await gate.view(VERA, { app: 'loose' })).size, 2)
    assert.deepEqual([gate.apps.availableOf('strict'), gate.apps.toolsOf('strict').length], [[], 2])
    availability.set('web', { available: true })
    assert.equal((await view.narrow({}).call({ tool: 'web:search' })).status, 'done')
    assert.equal((await gate.view(VERA, { app: 'strict' })).size, 2)
    assert.equal(gate.apps.availableOf('strict').length, 2)
  })

  it('stays the app’s when it is narrowed, however it is', async () => {
    const view = await make({ research }).view(VERA, { app: 'research', visibility: ['web:search', 'py:run'] })
    assert.deepEqual(view.ids, ['web:search'])
    assert.deepEqual(view.foreign, ['py:run'])
    const narrow = view.narrow({ activeTools: ['web:search', 'py:run'], policy: { allow: ['*'] } })
    assert.deepEqual([narrow.ids, narrow.app], [['web:search'], 'research'])
    assert.equal((await narrow.call({ tool: 'py:run' })).status, 'refused')
  })

  it('shares one view of equal callers in one app, and of no two apps', async () => {
    const gate = make({ research, other: { import: ['web'], tools: ['files:read'] } })
    const view = await gate.view(VERA, { app: 'research' })
    assert.equal(await gate.view({ user: 'vera' }, { app: 'research' }), view)
    assert.notEqual(await gate.view(VERA, { app: 'other' }), view)
    assert.equal(await gate.view(VERA), await gate.view(VERA, {}))
  })

  it('follows policy and catalog, and what a tool has come to be', async () => {
    let changed = () => {}
    const tools = [tool('a', { tags: ['research'] })]
    const source: Source = {
      name: 'live',
      tools: () => tools,
      subscribe: (listener) => {
        changed = listener
        return () => {}
      },
    }
    const gate = createGate({ sources: [source], apps: { research: { tools: ['tag:research'] } } })
    const view = await gate.view(VERA, { app: 'research' })
    tools.push(tool('b', { tags: ['research'] }), tool('c'))
    changed()
    assert.deepEqual((await gate.view(VERA, { app: 'research' })).ids, ['a', 'b'])
    tools[0] = tool('a')
    changed()
    assert.deepEqual((await gate.view(VERA, { app: 'research' })).ids, ['b'])
    assert.equal((await view.call({ tool: 'a' })).status, 'refused')
    gate.setPolicy({ deny: ['b'] })
    assert.deepEqual((await gate.view(VERA, { app: 'research' })).ids, [])
  })

  it('is that of a fork too, under both policies', async () => {
    const gate = make({ research: { import: ['web'], policy: { deny: ['web:fetch'] } } })
    const fork = gate.fork({ policy: { deny: ['web:search'] } })
    assert.deepEqual((await fork.view(VERA, { app: 'research' })).ids, [])
    assert.deepEqual((await gate.view(VERA, { app: 'research' })).ids, ['web:search'])
  })

  it('has no say from a hint that nobody vouches for', async () => {
    const claimed = tool('x:look', { annotations: { readOnlyHint: true }, hintsTrusted: false })
    const gate = createGate({ tools: [...TOOLS, claimed], apps: { readers: { tools: ['hint:read-only'] } } })
    assert.deepEqual((await gate.view(VERA, { app: 'readers' })).ids, [])
  })

  it('leaves its name in every record, whatever the run says', async () => {
    const audit = memoryAudit()
    const view = await make({ research }, { audit }).view(VERA, { app: 'research' })
    await view.call({ tool: 'web:search', run: { id: 'r1', app: 'other' } })
    await view.call({ tool: 'py:run' })
    assert.deepEqual(
      audit.records.map(({ event, app }) => [event, app]),
      [
        ['tool_call', 'research'],
        ['tool_result', 'research'],
        ['tool_blocked', 'research'],
      ],
    )
  })

  it('names the nearest of the apps there are', async () => {
    const gate = make({ research, billing: { import: ['files'] } })
    await assert.rejects(gate.view(VERA, { app: 'reserch' }), {
      code: 'app_unknown',
      message: 'No app is named "reserch"; the nearest is "research".',
    })
    for (const app of ['constructor', '__proto__', '', 'Research'])
      await assert.rejects(gate.view(VERA, { app }), { code: 'app_unknown' })
    assert.throws(() => gate.apps.toolsOf('none'), { code: 'app_unknown' })
  })
})

describe('gate.apps', () => {
  it('says of each app what it is and what it offers', () => {
    const gate = make({
      research: {
        title: 'Research',
        import: ['web', { group: 'python', visibility: 'hidden' }],
        instructions: 'Cite.',
      },
    })
    assert.deepEqual(gate.apps.list, [
      {
        name: 'research',
        title: 'Research',
        instructions: 'Cite.',
        groups: [
          { name: 'web', visibility: undefined },
          { name: 'python', visibility: 'hidden' },
        ],
      },
    ])
    assert.deepEqual(gate.apps.toolsOf('research'), ['web:fetch', 'web:search'])
  })
})

describe('an app’s own definitions', () => {
  const cite = { name: 'cite', description: 'cites', execute: () => 'cited' }

  it('are tools of the gate', async () => {
    const gate = make({ research: { tools: [cite, 'web:search'] }, billing: { import: ['files'] } })
    assert.deepEqual((await gate.view(VERA, { app: 'research' })).ids, ['cite', 'web:search'])
    assert.equal((await (await gate.view(VERA, { app: 'billing' })).call({ tool: 'cite' })).status, 'refused')
    assert.ok((await gate.view(VERA)).has('cite'))
  })

  it('may stand in several apps, as long as they are the same', async () => {
    const gate = make({
      one: { tools: [cite] },
      two: { tools: [{ ...cite }, tool('web:search')], import: ['web'] },
    })
    assert.deepEqual((await gate.view(VERA, { app: 'two' })).ids, ['cite', 'web:fetch', 'web:search'])
  })

  const different: [string, Record<string, App>, RegExp][] = [
    [
      'between two apps',
      { one: { tools: [cite] }, two: { tools: ['web:search', { ...cite, description: 'quotes' }] } },
      /^apps\.two\.tools\[1\]: the tool "cite" is defined in apps\.one\.tools\[0\] too, with another description$/,
    ],
    [
      'between an app and a group that it imports',
      { one: { import: ['web'], tools: [tool('web:search', { tags: ['danger'] })] } },
      /^apps\.one\.tools\[0\]: the tool "web:search" is defined in tools too, with another tags$/,
    ],
    [
      'within one app',
      { one: { tools: [cite, { ...cite, requiredScopes: ['s'] }] } },
      /^apps\.one\.tools\[1\]: .* in apps\.one\.tools\[0\] too, with another requiredScopes$/,
    ],
  ]
  for (const [where, apps, message] of different) {
    it(`are an error where they differ ${where}`, () => {
      assert.throws(() => make(apps), { code: 'tool_duplicate', message })
    })
  }
})

describe('apps that cannot be used', () => {
  const wrong: [object, RegExp][] = [
    [{ import: ['wbe'] }, /^apps\.a\.import\[0\]: no group is named "wbe"; the nearest is "web"\.$/],
    [
      { import: [{ group: 'web', visibility: 'always' }] },
      /^apps\.a\.import\[0\]\.visibility: must be conditional or hidden/,
    ],
    [{ import: [{ group: 'web', visible: true }] }, /^apps\.a\.import\[0\]\.visible: unknown field/],
    [{ import: ['web', { group: 'web' }] }, /^apps\.a\.import\[1\]: imports the group "web" a second time/],
    [{ import: [7] }, /^apps\.a\.import\[0\]: must be the name of a group/],
    [{ import: 'web' }, /^apps\.a\.import: must be a list/],
    [{}, /^apps\.a: must import a group or have tools/],
    [{ tools: ['group:web'] }, /^apps\.a\.tools\[0\]: found "group:web": a group is imported/],
    [{ tools: ['files:'] }, /^apps\.a\.tools\[0\]: /],
    [{ tools: ['files:raed'] }, /^apps\.a\.tools\[0\]: "files:raed" names no tool; the nearest are "files:read"/],
    [{ tools: [7] }, /^apps\.a\.tools\[0\]: must be a selector or a tool/],
    [{ import: ['web'], policy: { deny: ['group:none'] } }, /^apps\.a\.policy\[0\]\.deny\[0\]\.match: .*group:none/],
    [
      { import: ['web'], polcy: {} },
      /^apps\.a\.polcy: unknown field; did you mean "policy"\? The fields are title, import, tools, policy/,
    ],
    [{ import: ['web'], title: 7 }, /^apps\.a\.title: must be a text/],
  ]
  for (const [app, message] of wrong) {
    it(`are told as ${String(message)}`, () => {
      assert.throws(() => make({ a: app as App }), { message })
    })
  }

  it('have names that can stand in an address', () => {
    for (const name of ['', 'a/b', 'a b', '..', '-a', 'ä', 'a'.repeat(65)])
      assert.throws(() => make({ [name]: { import: ['web'] } }), /the name of an app has 1 to 64 letters/)
  })

  it('are warned of where a selector names no tool, on a catalog that can change', () => {
    const gate = make({ a: { tools: ['other:*'] } })
    assert.deepEqual(
      gate.lint().map(({ code, path }) => [code, path]),
      [['selector_unmatched', 'apps.a.tools[0]']],
    )
  })
})
