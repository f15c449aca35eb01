import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Caller } from '../ports/caller.ts'
import { createGate } from './gate.ts'
import { memoryAvailability } from '../memory/availability.ts'
import { metaTools } from '../search/meta-tools.ts'
import type { Group } from '../tools/groups.ts'
import { defineTool } from '../tools/tool.ts'
import type { ViewOptions } from './views.ts'

const tool = (id: string) => {
  const [namespace, name] = id.split(':') as [string, string]
  return defineTool({ namespace, name, execute: () => `ran ${id}` })
}

function make(policy: Parameters<typeof createGate>[0] = {}) {
  return createGate({
    tools: ['web:open', 'web:click', 'git:push', 'git:log', 'sql:query', 'core:echo'].map(tool),
    groups: {
      web: { tools: ['web:*'], unlock: 'request', title: 'Web pages', hint: 'Opens and clicks pages.' },
      git: { tools: ['git:*'], unlock: { event: 'repository-opened' } },
      sql: { tools: ['sql:*'], unlock: 'search' },
    },
    ...policy,
  })
}

const vera = { user: 'vera', session: 's1' }

describe('gate.locks', () => {
  it('names the groups that a session must open', () => {
    const { groups } = make().locks
    assert.deepEqual([...groups.keys()], ['web', 'git', 'sql'])
    assert.equal(groups.get('web')?.hint, 'Opens and clicks pages.')
  })

  it('holds the tools of a locked group back, says how to open it, and runs none of them', async () => {
    const view = await make().view(vera)
    assert.deepEqual(view.ids, ['core:echo', 'request_tools'])
    const outcome = await view.call({ tool: 'web:open' })
    assert.equal(outcome.status, 'refused')
    assert.equal(outcome.text, 'web:open is locked. Call request_tools with the group "web" to open it.')
  })

  it('opens the groups of a session that continues in another process, as far as they are still locked', async () => {
    const [before, after] = [make(), make({ policy: { deny: ['web:click'] } })]
    before.locks.request(vera, 'web')
    assert.deepEqual([...before.locks.opened(vera)], ['web'])
    assert.deepEqual([...after.locks.opened(vera)], [])
    after.locks.reopen(vera, [...before.locks.opened(vera), 'gone', 'constructor'])
    assert.deepEqual([...after.locks.opened(vera)], ['web'])
    const view = await after.view(vera)
    assert.ok(view.has('web:open') && !view.has('web:click'))
    assert.equal((await view.call({ tool: 'web:click' })).status, 'refused')
    assert.equal((await after.view({ ...vera, session: 's2' })).has('web:open'), false)
  })

  it('opens all tools of the group together, for this session only, from the next step of the run', async () => {
    const gate = make()
    const run = await gate.view(vera)
    assert.deepEqual(gate.locks.request(vera, 'web'), ['web'])
    assert.equal(run.has('web:open'), false)
    assert.equal((await run.call({ tool: 'web:open' })).status, 'refused', 'the step under way did not list it')
    assert.deepEqual(run.narrow({}).ids, ['core:echo', 'web:click', 'web:open'])
    assert.equal((await run.narrow({}).call({ tool: 'web:click' })).text, 'ran web:click')
    for (const other of [
      { user: 'vera', session: 's2' },
      { user: 'adam', session: 's1' },
      { ...vera, tenant: 't' },
    ]) {
      assert.deepEqual((await gate.view(other)).ids, ['core:echo', 'request_tools'])
    }
  })

  it('opens by the rule of the group and by nothing else', () => {
    const gate = make()
    assert.deepEqual(gate.locks.request(vera, 'git'), [])
    assert.deepEqual(gate.locks.request(vera, 'no such group'), [])
    assert.deepEqual(gate.locks.event(vera, 'something else'), [])
    assert.deepEqual(gate.locks.found(vera, ['web:open', 'git:log']), [])
    assert.deepEqual(gate.locks.event(vera, 'repository-opened'), ['git'])
    assert.deepEqual(gate.locks.event(vera, 'repository-opened'), [], 'it was open already')
    assert.deepEqual(gate.locks.found(vera, ['sql:query']), ['sql'])
  })

  it('cannot open beyond the ceiling of the run', async () => {
    const gate = make({ policy: { deny: ['web:click'] } })
    const run = await gate.view(vera, { visibility: ['core:echo', 'web:click'] })
    gate.locks.request(vera, 'web')
    assert.deepEqual(run.narrow({}).ids, ['core:echo'])
    assert.deepEqual((await gate.view(vera)).ids, ['core:echo', 'web:open'])
  })

  it('locks again at once for a session that is forgotten, also in views that are open', async () => {
    const gate = make()
    gate.locks.request(vera, 'web')
    const view = await gate.view(vera)
    assert.equal((await view.call({ tool: 'web:open' })).status, 'done')
    gate.locks.forget(vera)
    assert.equal((await view.call({ tool: 'web:open' })).status, 'refused')
  })

  it('opens in the next step of a run of that session, and of no other', async () => {
    const gate = make()
    const [hers, his] = [await gate.view(vera), await gate.view({ ...vera, session: 's2' })]
    assert.equal(hers.narrow({}), hers)
    gate.locks.request(vera, 'web')
    assert.deepEqual([hers.narrow({}).has('web:open'), his.narrow({}).has('web:open')], [true, false])
    gate.locks.forget(vera)
    assert.equal(hers.narrow({}).has('web:open'), false)
  })

  it('decides nothing for a caller without a session, and opens nothing for them', async () => {
    const gate = make()
    assert.deepEqual(gate.locks.request({ user: 'vera' }, 'web'), [])
    assert.equal((await (await gate.view({ user: 'vera' })).call({ tool: 'web:open' })).status, 'done')
  })

  it('comes after denials, and beside unavailability', async () => {
    const availability = memoryAvailability({ web: { available: false, reason: 'no browser runs' } })
    const gate = createGate({
      tools: [tool('web:open'), tool('web:click')],
      groups: { web: { tools: ['web:*'], visibility: 'conditional', unlock: 'request' } },
      availability,
      policy: { deny: ['web:click'] },
    })
    const view = await gate.view(vera)
    assert.deepEqual(
      view.explain('web:open').reasons.map(({ code }) => code),
      ['group_unavailable', 'group_locked'],
    )
    assert.match((await view.call({ tool: 'web:click' })).text, /^Tool "web:click" is not available\./)
  })

  it('rejects an invalid rule', () => {
    const groups = { web: { tools: ['web:*'], unlock: 'magic' as 'request' } }
    assert.throws(() => createGate({ groups }), { code: 'config_invalid', path: 'groups.web.unlock' })
  })
})

describe('request_tools of a gate', () => {
  const web: Group = { tools: ['web:*'], unlock: 'request', title: 'Web pages', hint: 'Opens and clicks pages.' }
  const tools = ['web:open', 'web:click', 'core:echo'].map(tool)
  const request = (group?: string) => ({ tool: 'request_tools', input: group === undefined ? {} : { group } })
  const isOffered = async (options: Parameters<typeof createGate>[0], caller: Caller = vera, view: ViewOptions = {}) =>
    (await createGate({ tools, groups: { web }, ...options }).view(caller, view)).has('request_tools')

  it('opens a group from the next step of the run on, and says what is in it then', async () => {
    const gate = createGate({ tools, groups: { web } })
    const run = await gate.view(vera)
    assert.equal((await run.call(request())).text, '- web: Web pages. Opens and clicks pages.')
    const opened = 'The group "web" is open. In your list from your next step on: web:click, web:open.'
    assert.equal((await run.call(request('web'))).text, opened)
    assert.equal((await run.call({ tool: 'web:open' })).status, 'refused')
    assert.equal((await run.call(request('web'))).text, opened, 'another call of the same step')
    assert.deepEqual(run.narrow({}).ids, ['core:echo', 'web:click', 'web:open'])
    assert.equal((await run.narrow({}).call({ tool: 'web:open' })).text, 'ran web:open')
    gate.locks.forget(vera)
    assert.deepEqual(run.narrow({}).ids, ['core:echo', 'request_tools'])
  })

  it('says what is in the list of the next step where this one has only some tools active', async () => {
    const gate = createGate({ tools, groups: { web } })
    const step = (await gate.view(vera)).narrow({ activeTools: ['request_tools', 'core:echo'] })
    assert.match((await step.call(request('web'))).text, /next step on: web:click, web:open\.$/)
  })

  it('answers for a group of which the caller may use nothing as for one that there is not', async () => {
    const groups: Record<string, Group> = { web, core: { tools: ['core:*'], unlock: 'request' } }
    const run = await createGate({ tools, groups, policy: { deny: ['core:*'] } }).view(vera)
    assert.equal((await run.call(request('core'))).text, 'There is no group "core" to open. The groups are: web.')
    assert.equal((await run.call(request('cora'))).text, 'There is no group "cora" to open. The groups are: web.')
  })

  it('is hidden from those who have no session, or nothing to open', async () => {
    assert.equal(await isOffered({}), true)
    assert.equal(await isOffered({}, { user: 'vera' }), false)
    assert.equal(await isOffered({ policy: { deny: ['web:*'] } }), false)
    assert.equal(await isOffered({ groups: { web: { ...web, unlock: 'search' } } }), false)
    assert.equal(await isOffered({}, vera, { visibility: ['core:echo', 'request_tools'] }), false)
    const gate = createGate({ tools, groups: { web } })
    const without = await gate.view({ user: 'vera' })
    assert.deepEqual(
      without.explain('request_tools').reasons.map(({ code }) => code),
      ['nothing_to_open'],
    )
    assert.match((await without.call(request('web'))).text, /^Tool "request_tools" is not available\./)
  })

  for (const [how, options, view] of [
    ['a policy denies it', { policy: { deny: ['request_tools'] } }, {}],
    ['a policy allows other tools only', { policy: { allow: ['web:*'] } }, {}],
    ['it is not among the active tools', {}, { activeTools: ['web:open', 'core:echo'] }],
    ["the run's visibility leaves it out", {}, { visibility: ['web:open', 'core:echo'] }],
  ] as const) {
    it(`is named in no notice and no refusal where ${how}`, async () => {
      const gate = createGate({ tools, groups: { web }, ...options })
      const run = await gate.view(vera, view)
      assert.equal(run.has('request_tools'), false)
      assert.deepEqual(run.notices, [])
      assert.equal((await run.call({ tool: 'web:open' })).text, 'web:open is locked.')
    })
  }

  it('is named in no refusal to a run that saw the group open, where a policy has come to deny it', async () => {
    const gate = createGate({ tools, groups: { web } })
    gate.locks.request(vera, 'web')
    const run = await gate.view(vera)
    gate.setPolicy({ deny: ['request_tools'] })
    gate.locks.forget(vera)
    assert.equal((await run.call({ tool: 'web:open' })).text, 'web:open is locked.')
  })

  it('is named for those groups only that it can open now', async () => {
    const groups: Record<string, Group> = {
      web,
      core: { tools: ['core:*'], unlock: 'request', visibility: 'conditional' },
    }
    const availability = memoryAvailability({ core: { available: false, reason: 'it rests' } })
    const run = await createGate({ tools, groups, availability }).view(vera)
    assert.deepEqual(run.notices, [
      'Web pages: Opens and clicks pages. Call request_tools with the group "web" to open it.',
    ])
    assert.match((await run.call(request('core'))).text, /^There is no group "core" to open\./)
  })

  it('is not locked away by a group that names every tool', async () => {
    const gate = createGate({ tools, groups: { all: { tools: ['*'], unlock: 'request' } } })
    const run = await gate.view(vera)
    assert.deepEqual(run.ids, ['request_tools'])
    assert.match((await run.call(request('all'))).text, /next step on: core:echo, web:click, web:open\.$/)
    assert.deepEqual(run.narrow({}).ids, ['core:echo', 'web:click', 'web:open'])
  })

  it('is offered by an app with a locked group, and is not among the tools that the app lists', async () => {
    const gate = createGate({
      tools,
      groups: { web },
      apps: { browser: { import: ['web'] }, echo: { tools: ['core:echo'] } },
    })
    const run = await gate.view(vera, { app: 'browser' })
    assert.deepEqual(run.ids, ['request_tools'])
    assert.equal((await run.call(request('web'))).status, 'done')
    assert.deepEqual(run.narrow({}).ids, ['web:click', 'web:open'])
    assert.deepEqual((await gate.view({ ...vera, session: 's2' }, { app: 'echo' })).ids, ['core:echo'])
    assert.deepEqual(gate.apps.toolsOf('browser'), ['web:click', 'web:open'])
  })

  it('is not added to a gate that has a tool of that id, or no group that opens by request', async () => {
    const own = defineTool({ name: 'request_tools', description: 'Mine.', execute: () => 'mine' })
    const gate = createGate({ tools: [...tools, own], groups: { web } })
    assert.equal(gate.catalog.snapshot().get('request_tools'), own)
    assert.equal((await gate.view({ user: 'vera' })).has('request_tools'), true)
    assert.match((await gate.view(vera)).notices.join(), /Call request_tools/)
    const searched = createGate({ tools, groups: { web: { ...web, unlock: 'search' } } })
    assert.equal(searched.catalog.snapshot().has('request_tools'), false)
  })

  it('is neither held as a new tool nor found by a search for tools', async () => {
    const gate = createGate({ tools: [...tools, ...metaTools()], groups: { web }, pins: { new: 'suspend' } })
    const run = await gate.view(vera)
    assert.equal((await run.call(request())).status, 'done')
    const found = await run.call({ tool: 'search_tools', input: { query: 'request tools of a group' } })
    assert.ok(!found.text.includes('request_tools'))
  })

  it('opens for the callers of a fork, whose policy can deny it', async () => {
    const gate = createGate({ tools, groups: { web } })
    const run = await gate.fork({ policy: { deny: ['web:click'] } }).view(vera)
    assert.match((await run.call(request('web'))).text, /next step on: web:open\.$/)
    assert.deepEqual((await gate.fork({ policy: { deny: ['tag:meta'] } }).view({ ...vera, session: 's2' })).notices, [])
  })
})

describe('view.notices', () => {
  it('returns the messages of denials in the order of the policies, then the hints of locked groups, each once', async () => {
    const gate = make({
      policy: [
        {
          name: 'first',
          deny: [
            { match: 'core:*', message: 'Nothing echoes here.' },
            { match: 'git:*', message: 'Git is off today.' },
          ],
        },
        { name: 'second', deny: [{ match: 'core:echo', message: 'Nothing echoes here.' }] },
      ],
    })
    assert.deepEqual((await gate.view(vera)).notices, [
      'Nothing echoes here.',
      'Git is off today.',
      'sql: Search for it with search_tools to open it.',
      'Web pages: Opens and clicks pages. Call request_tools with the group "web" to open it.',
    ])
  })

  it('says nothing about a tool with a denial without a message', async () => {
    const gate = createGate({
      tools: [tool('a:x'), tool('a:y')],
      policy: { deny: [{ match: 'a:*', message: 'Off.' }, 'a:x', 'a:y'] },
    })
    assert.deepEqual((await gate.view({ user: 'vera' })).notices, [])
  })

  it('says nothing about a locked group whose tools are all denied', async () => {
    const gate = make({ policy: { deny: ['web:*', 'git:*', 'sql:*'] } })
    assert.deepEqual((await gate.view(vera)).notices, [])
  })

  it('of one user are a thousand at most, and nobody can have those of another forgotten', () => {
    const gate = createGate({ tools: { 'web:open': {} }, groups: { web: { tools: ['web:*'], unlock: 'request' } } })
    const omar = { user: 'omar', session: 's' }
    gate.locks.request(omar, 'web')
    const nth = (i: number) => ({ user: 'vera', session: `s${i}` })
    for (let i = 0; i <= 1000; i++) gate.locks.request(nth(i), 'web')
    // What is open already opens nothing more.
    assert.deepEqual([gate.locks.request(omar, 'web'), gate.locks.request(nth(1000), 'web')], [[], []])
    assert.deepEqual(gate.locks.request(nth(0), 'web'), ['web'])
  })
})

describe('one tool of a locked group', () => {
  const ask = async (gate: ReturnType<typeof make>, input: object, caller: Caller = vera) =>
    (await (await gate.view(caller)).call({ tool: 'request_tools', input })).text

  it('opens alone, for this session only, and the others stay locked', async () => {
    const gate = make()
    const run = await gate.view(vera)
    assert.deepEqual(gate.locks.request(vera, 'web', ['web:open']), ['web'])
    assert.equal(run.has('web:open'), false, 'from the next step on')
    const next = run.narrow({})
    assert.deepEqual(next.ids, ['core:echo', 'request_tools', 'web:open'])
    assert.equal((await next.call({ tool: 'web:open' })).status, 'done')
    assert.match((await next.call({ tool: 'web:click' })).text, /web:click is locked/)
    assert.ok(!(await gate.view({ user: 'vera', session: 's2' })).has('web:open'))
    assert.deepEqual(gate.locks.request(vera, 'web', ['web:open']), [], 'it is open already')
    gate.locks.forget(vera)
    assert.ok(!(await gate.view(vera)).has('web:open'))
  })

  it('stays open in a session that continues in another process', async () => {
    const [before, after] = [make(), make()]
    before.locks.request(vera, 'web', ['web:open'])
    after.locks.reopen(vera, [...before.locks.opened(vera), 'gone\nweb:click'])
    assert.deepEqual((await after.view(vera)).ids, ['core:echo', 'request_tools', 'web:open'])
  })

  it('can be followed by others, and by the whole group', async () => {
    const gate = make()
    gate.locks.request(vera, 'web', ['web:open'])
    gate.locks.request(vera, 'web', ['web:click'])
    assert.deepEqual((await gate.view(vera)).ids, ['core:echo', 'web:click', 'web:open'], 'nothing is left to request')
    gate.locks.request(vera, 'web')
    assert.deepEqual(gate.locks.request(vera, 'web', ['web:open']), [])
  })

  it('opens by request_tools, which names what is open', async () => {
    const gate = make()
    assert.equal(
      await ask(gate, { group: 'web', tools: ['web:open'] }),
      'In your list from your next step on: web:open. The rest of the group "web" stays as it was.',
    )
    assert.deepEqual((await gate.view(vera)).ids, ['core:echo', 'request_tools', 'web:open'])
  })

  it('opens nothing for other names: a denied tool and a tool that does not exist get the same text', async () => {
    const gate = make({ policy: { deny: ['web:click'] } })
    const texts = [
      await ask(gate, { group: 'web', tools: ['web:click'] }),
      await ask(gate, { group: 'web', tools: ['web:nothing'] }),
      await ask(gate, { group: 'web', tools: ['git:push'] }),
    ]
    assert.deepEqual([...new Set(texts)], ['The group "web" has none of these tools for you.'])
    assert.deepEqual(gate.locks.request(vera, 'web', ['web:nothing', 'git:push']), [], 'nothing is kept or announced')
    assert.deepEqual((await gate.view(vera)).ids, ['core:echo', 'request_tools'])
    assert.match(await ask(gate, { group: 'web', tools: [] }), /invalid input/)
  })

  it('opens by the rule of its group only', async () => {
    const gate = make()
    assert.deepEqual(gate.locks.request(vera, 'git', ['git:push']), [])
    assert.deepEqual(gate.locks.request(vera, 'sql', ['sql:query']), [])
    assert.match(await ask(gate, { group: 'git', tools: ['git:push'] }), /no group "git" to open/)
    assert.ok(!(await gate.view(vera)).has('git:push'))
  })

  it('stays locked by another group that it is in', async () => {
    const gate = make({
      groups: { a: { tools: ['web:*'], unlock: 'request' }, b: { tools: ['web:open'], unlock: 'request' } },
    })
    gate.locks.request(vera, 'a', ['web:open'])
    assert.ok(!(await gate.view(vera)).has('web:open'))
    gate.locks.request(vera, 'b', ['web:open'])
    assert.ok((await gate.view(vera)).has('web:open'))
  })
})
