import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createGate } from './gate.ts'
import { memoryAvailability } from './memory/availability.ts'
import { defineTool } from './tools/tool.ts'

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
  it('holds the tools of a locked group back, says how to open it, and runs none of them', async () => {
    const view = await make().view(vera)
    assert.deepEqual(view.ids, ['core:echo'])
    const outcome = await view.call({ tool: 'web:open' })
    assert.equal(outcome.status, 'refused')
    assert.equal(outcome.text, 'web:open is locked. Call request_tools with the group "web" to open it.')
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
      assert.deepEqual((await gate.view(other)).ids, ['core:echo'])
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

  it('decides nothing for a caller without a session, and opens nothing for him', async () => {
    const gate = make()
    assert.deepEqual(gate.locks.request({ user: 'vera' }, 'web'), [])
    assert.equal((await (await gate.view({ user: 'vera' })).call({ tool: 'web:open' })).status, 'done')
  })

  it('is told after what denies, and beside what is unavailable', async () => {
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

  it('refuses a rule that is none', () => {
    const groups = { web: { tools: ['web:*'], unlock: 'magic' as 'request' } }
    assert.throws(() => createGate({ groups }), { code: 'config_invalid', path: 'groups.web.unlock' })
  })
})

describe('view.notices', () => {
  it('gives the messages of denials in the order of the policies, then the hints of locked groups, each once', async () => {
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

  it('tells nothing of a tool that one denial without a message holds for', async () => {
    const gate = createGate({
      tools: [tool('a:x'), tool('a:y')],
      policy: { deny: [{ match: 'a:*', message: 'Off.' }, 'a:x', 'a:y'] },
    })
    assert.deepEqual((await gate.view({ user: 'vera' })).notices, [])
  })

  it('tells nothing of a locked group whose tools are all denied', async () => {
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
