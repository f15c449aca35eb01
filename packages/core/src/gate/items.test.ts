import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { memoryAudit } from '../audit/memory.ts'
import type { Policies, Policy } from '../policy/policy.ts'
import type { Source } from '../tools/catalog.ts'
import { definePrompt, defineResource, defineTemplate } from '../tools/items.ts'
import { isNormalUri } from '../tools/uri.ts'
import { ITEM_KINDS, type ItemKind } from '../tools/tool-id.ts'
import { defineTool, type Tool } from '../tools/tool.ts'
import { createGate } from './gate.ts'
import type { GateOptions } from './options.ts'
import type { View } from './view.ts'

const resource = (uri: string, more: object = {}) =>
  defineResource({ uri, namespace: 'files', execute: (input) => ({ contents: [{ uri: input.uri }] }), ...more })
const template = (uriTemplate: string, more: object = {}) =>
  defineTemplate({ uriTemplate, namespace: 'files', ...more })
const prompt = (name: string, more: object = {}) =>
  definePrompt({ name, namespace: 'files', execute: (input) => ({ messages: [input] }), ...more })

const A = 'resource:files:file:///docs/a.md'
const B = 'resource:files:file:///secret/b.md'
const ANY = 'resource:files:file:///{+path}'
const ASK = 'prompt:files:ask'

/** A gate over one server, which has every `file:` URI. */
function gateOver(items: readonly Tool[], options: GateOptions = {}) {
  const listeners = new Set<() => void>()
  let listed = [defineTool({ name: 'read', namespace: 'files', execute: () => 'ran' }), ...items]
  const source: Source = {
    name: 'files',
    namespaces: ['files'],
    tools: () => listed,
    subscribe(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    unlisted: (uri) => (uri.startsWith('file:') ? resource(uri) : undefined),
  }
  const gate = createGate({ sources: [source], onWarning: () => {}, ...options })
  const list = (...next: readonly Tool[]) => {
    listed = [...next]
    for (const listener of listeners) listener()
  }
  return { gate, list }
}

const ALL = [resource('file:///docs/a.md'), resource('file:///secret/b.md'), prompt('ask')]
const OPEN: Policy = { allow: ['*', 'resource:*:*', 'prompt:*:*'] }

const seen = async (policy: Policies | undefined, items: readonly Tool[] = ALL, options: GateOptions = {}) => {
  const view = await gateOver(items, { ...(policy && { policy }), ...options }).gate.view({ user: 'vera' })
  return [...view.items('prompt'), ...view.items('resource'), ...view.items('template')].map(({ id }) => id)
}

describe('view.items', () => {
  const table: readonly (readonly [what: string, policy: Policies | undefined, ids: readonly string[]])[] = [
    ['nothing without a policy', undefined, []],
    ['nothing without an allow', { deny: ['other:*'] }, []],
    ['nothing where an allow names tools only', { allow: ['*', 'files:*', '*:*', 'hint:destructive'] }, []],
    ['what an allow names', { allow: ['resource:files:file:///docs/*'] }, [A]],
    ['everything that an allow names', OPEN, [ASK, A, B]],
    ['nothing where one policy of several does not name it', [OPEN, { deny: ['other:*'] }], []],
    ['what each policy names', [OPEN, { allow: ['prompt:files:*'] }], [ASK]],
    ['nothing that a deny names', { ...OPEN, deny: ['resource:files:file:///secret/*'] }, [ASK, A]],
    ['nothing of a denied server', { ...OPEN, deny: ['server:files'] }, []],
    [
      'nothing of a server that is denied to this caller',
      { ...OPEN, deny: [{ match: 'server:files', when: "caller.user == 'vera'" }] },
      [],
    ],
    [
      'all that is not denied by selectors of tools',
      { ...OPEN, deny: ['*', 'tag:x', 'hint:destructive'] },
      [ASK, A, B],
    ],
    ['nothing without a required tag', { ...OPEN, requireTags: ['reviewed'] }, []],
    [
      'nothing that an input clause denies by its URI',
      { ...OPEN, deny: [{ match: 'resource:files:*', input: "input.uri.contains('secret')" }] },
      [ASK, A],
    ],
    [
      'only what an input clause allows by its URI',
      { allow: [{ match: 'resource:files:*', input: "input.uri.contains('docs')" }] },
      [A],
    ],
    [
      'nothing whose input clause fails',
      { ...OPEN, deny: [{ match: 'resource:files:*', input: 'input.nothing == 1' }] },
      [ASK],
    ],
    [
      'what an input clause asks about',
      { ...OPEN, ask: [{ match: 'resource:files:*', input: "input.uri.contains('secret')" }] },
      [ASK, A, B],
    ],
    ['nothing of a function that does not decide the kind', { decide: () => 'allow' }, []],
    ['what a function decides', { kinds: ['prompt'], decide: () => 'allow' }, [ASK]],
  ]
  for (const [what, policy, ids] of table)
    it(`has ${what}`, async () => {
      assert.deepEqual(await seen(policy), ids)
    })

  it('has tagged items, where tags are required', async () => {
    const tagged = [resource('file:///docs/a.md', { tags: ['reviewed'] }), prompt('ask')]
    assert.deepEqual(await seen({ ...OPEN, requireTags: ['reviewed'] }, tagged), [A])
  })

  it('has nothing that needs a scope the caller does not hold', async () => {
    assert.deepEqual(await seen(OPEN, [prompt('ask', { requiredScopes: ['x'] })]), [])
  })

  it('is apart from the tools, which no allow of items changes', async () => {
    const view = await gateOver(ALL, { policy: OPEN }).gate.view({})
    assert.deepEqual([view.ids, view.size, view.items('tool')], [['files:read'], 1, view.tools])
    const without = await gateOver([], { policy: OPEN }).gate.view({})
    assert.equal(view.fingerprint, without.fingerprint)
  })

  it('has what an app names, and nothing else', async () => {
    const apps = { docs: { tools: ['resource:files:file:///docs/*', 'files:read'] } }
    const { gate } = gateOver(ALL, { policy: OPEN, apps })
    const view = await gate.view({}, { app: 'docs' })
    assert.deepEqual(
      view.items('resource').map(({ id }) => id),
      [A],
    )
    assert.deepEqual([view.items('prompt'), view.ids], [[], ['files:read']])
    assert.equal((await view.call({ tool: ASK })).status, 'refused')
  })

  it('is narrowed by forks, steps, visibility and policies', async () => {
    const { gate } = gateOver(ALL, { policy: OPEN })
    const all = async (view: Promise<{ items: (kind: 'resource' | 'prompt') => readonly Tool[] }>) => {
      const { items } = await view
      return [...items('prompt'), ...items('resource')].map(({ id }) => id)
    }
    assert.deepEqual(await all(gate.fork({ policy: { deny: ['resource:*:*'] } }).view({})), [])
    assert.deepEqual(await all(gate.fork({ policy: { allow: ['prompt:*:*'] } }).view({})), [ASK])
    assert.deepEqual(await all(gate.view({}, { activeTools: ['files:read'] })), [])
    assert.deepEqual(await all(gate.view({}, { activeTools: [A] })), [A])
    assert.deepEqual(await all(gate.view({}, { visibility: [ASK] })), [ASK])
    assert.deepEqual(await all(gate.view({}, { visibility: ({ items }) => items.slice(1, 2) })), [A])
    assert.deepEqual(await all(gate.view({}, { visibility: () => assert.fail('no') })), [])
    const view = await gate.view({})
    assert.deepEqual(await all(Promise.resolve(view.narrow({ policy: { allow: ['resource:*:*'] } }))), [A, B])
    await assert.rejects(gate.view({}, { activeTools: ['prompt:files:aks'] }), { code: 'tool_unknown' })
  })

  it('is empty in a fork of a gate without a policy, which would else be wider than it', async () => {
    const { gate } = gateOver(ALL)
    assert.deepEqual((await gate.fork({ policy: OPEN }).view({})).items('prompt'), [])
    gate.setPolicy(OPEN)
    assert.equal((await gate.fork({ policy: OPEN }).view({})).items('prompt').length, 1)
    assert.equal((await gate.fork({}).view({})).items('prompt').length, 1)
  })

  it('has nothing that is halted', async () => {
    const { gate } = gateOver(ALL, { policy: OPEN })
    await gate.halt({ tool: 'server:files', reason: 'it leaks' })
    const view = await gate.view({})
    assert.deepEqual([view.ids, view.items('resource'), view.items('prompt')], [[], [], []])
    assert.match((await view.call({ tool: A, input: { uri: 'file:///docs/a.md' } })).text, /it leaks/)
  })
})

describe('a template', () => {
  const items = [...ALL, template('file:///{+path}')]

  it('is an item of its own, and is matched by its text', async () => {
    assert.deepEqual(await seen({ allow: ['resource:files:*'] }, items), [A, B, ANY])
    assert.deepEqual(await seen({ allow: [ANY] }, items), [ANY])
  })

  it('hides every resource that it may match, where it is not allowed itself', async () => {
    assert.deepEqual(await seen({ allow: ['resource:files:file:///docs/*'] }, items), [])
    assert.deepEqual(await seen({ allow: ['resource:files:file:///docs/*', ANY] }, items), [A, ANY])
    assert.deepEqual(await seen({ ...OPEN, deny: [ANY] }, items), [ASK])
    const other = [...ALL, template('db://{table}')]
    assert.deepEqual(await seen({ ...OPEN, deny: ['resource:files:db:*'] }, other), [ASK, A, B])
  })

  it('asks, waits and judges the URI for what it may match', async () => {
    const outcome = async (policy: Policies, id: string) =>
      (await gateOver(items, { policy }).gate.view({})).explain(id).outcome
    assert.equal(await outcome({ ...OPEN, ask: [ANY] }, A), 'ask')
    assert.equal(await outcome({ ...OPEN, ask: [ANY] }, 'resource:files:file:///not/listed'), 'ask')
    const judged: Policy = { ...OPEN, deny: [{ match: ANY, input: "input.uri.contains('secret')" }] }
    assert.deepEqual([await outcome(judged, A), await outcome(judged, B)], ['allow', 'deny'])
  })

  it('says in an explanation that it is the reason', async () => {
    const view = await gateOver(items, { policy: { ...OPEN, deny: [ANY] } }).gate.view({})
    assert.match(view.explain(A).reasons[0]?.text ?? '', /^the template "resource:files:file:.*" may match it: policy/)
  })
})

describe('a resource that is not listed', () => {
  const C = 'resource:files:file:///docs/c.md'
  const read = async (policy: Policies, id: string, items: readonly Tool[] = ALL) => {
    const view = await gateOver(items, { policy }).gate.view({ user: 'vera' })
    return view.call({ tool: id, input: { uri: id.slice('resource:files:'.length) } })
  }

  it('is read, decided by its own URI', async () => {
    const outcome = await read(OPEN, C)
    assert.deepEqual(outcome.status === 'done' && outcome.output, { contents: [{ uri: 'file:///docs/c.md' }] })
    assert.equal((await read({ allow: ['resource:files:file:///docs/*'] }, C)).status, 'done')
    assert.equal((await read({ allow: ['resource:files:file:///docs/a*'] }, C)).status, 'refused')
    assert.equal((await read({ ...OPEN, deny: ['server:files'] }, C)).status, 'refused')
    assert.equal((await read({ ...OPEN, ask: ['resource:files:*'] }, C)).status, 'waiting')
    assert.equal(
      (await read({ ...OPEN, deny: [{ match: 'resource:files:*', input: "input.uri.endsWith('c.md')" }] }, C)).status,
      'refused',
    )
  })

  it('is unknown in any spelling that is not normal, unless that is listed', async () => {
    for (const uri of ['FILE:///docs/c.md', 'file:///docs/../secret/b.md', 'file:///docs/%2Fc.md', 'file:/docs/c.md'])
      assert.equal((await read(OPEN, `resource:files:${uri}`)).status, 'refused', uri)
    const odd = resource('FILE:///docs/c.md')
    assert.equal((await read(OPEN, 'resource:files:FILE:///docs/c.md', [odd])).status, 'done')
  })

  it('is unknown where it is listed in another spelling, by which rules name it', async () => {
    const spellings: readonly (readonly [listed: string, normal: string])[] = [
      ['FILE:///secret/c.md', 'file:///secret/c.md'],
      ['file:///docs/../secret/c.md', 'file:///secret/c.md'],
      ['file://localhost/secret/c.md', 'file:///secret/c.md'],
      ['file:/secret/c.md', 'file:///secret/c.md'],
      ['file:///secret/', 'file:///secret'],
      ['file:///secret/%28c%29.md', 'file:///secret/(c).md'],
      ['file:///geheim/ü.md', 'file:///geheim/%C3%BC.md'],
    ]
    for (const [listed, normal] of spellings) {
      const policy = { ...OPEN, deny: [`resource:files:${listed}`] }
      assert.equal((await read(policy, `resource:files:${normal}`, [resource(listed)])).status, 'refused', listed)
      assert.equal((await read(policy, `resource:files:${normal}x`, [resource(listed)])).status, 'done', listed)
    }
  })

  it('is unknown where no source has it, or where it answers something else', async () => {
    assert.equal((await read(OPEN, 'resource:files:db://a')).status, 'refused')
    assert.equal((await read(OPEN, 'resource:other:file:///docs/c.md')).status, 'refused')
    const lying: Source = { name: 'l', tools: () => [], unlisted: () => resource('file:///secret/b.md') }
    const throwing: Source = { name: 't', tools: () => [], unlisted: () => assert.fail('no') }
    const faults: unknown[] = []
    const gate = createGate({ sources: [lying, throwing], policy: OPEN, onFault: (error) => faults.push(error) })
    assert.equal((await (await gate.view({})).call({ tool: C })).status, 'refused')
    assert.equal(faults.length > 0, true)
  })

  it('keeps to the bounds of the run: what narrowed it, and the policy as it was', async () => {
    const { gate } = gateOver(ALL, { policy: { allow: ['prompt:*:*'] } })
    const before = await gate.view({})
    gate.setPolicy(OPEN)
    assert.equal((await before.call({ tool: C, input: { uri: 'file:///docs/c.md' } })).status, 'refused')
    const after = await gate.view({})
    assert.equal(after.has(C), true)
    assert.equal(after.narrow({ activeTools: ['files:read'] }).has(C), false)
    assert.equal(after.narrow({ policy: { deny: ['server:files'] } }).has(C), false)
    gate.setPolicy({ allow: ['prompt:*:*'] })
    assert.equal(after.explain(C).outcome, 'deny')
  })

  it('gets the input of its own URI only', async () => {
    const { gate } = gateOver(ALL, { policy: OPEN })
    const view = await gate.view({})
    const outcome = await view.call({ tool: C, input: { uri: 'file:///secret/b.md' } })
    assert.equal(outcome.status === 'refused' && outcome.decision.reasons[0]?.code, 'input_invalid')
  })
})

describe('view.search with kinds', () => {
  const items = [
    resource('file:///docs/a.md', { description: 'Notes of a meeting.', mimeType: 'text/markdown' }),
    resource('file:///secret/b.md', { description: 'Notes of nobody.' }),
    template('file:///{+path}', { name: 'notes' }),
    prompt('notes', { arguments: [{ name: 'audience' }] }),
    defineTool({ name: 'notes', namespace: 'files' }),
  ]
  const found = (view: Pick<View, 'search'>, query: string, kinds?: readonly ItemKind[]) =>
    view
      .search(query, { kinds })
      .map(({ id }) => id)
      .toSorted()

  it('finds the kinds that it names, and tools only where it names none', async () => {
    const view = await gateOver(items, { policy: OPEN }).gate.view({})
    assert.deepEqual(found(view, 'notes'), ['files:notes'])
    assert.deepEqual(found(view, 'notes', ['tool']), ['files:notes'])
    assert.deepEqual(found(view, 'notes', ['resource']), [A, B])
    assert.deepEqual(found(view, 'notes', ['template', 'prompt']), ['prompt:files:notes', ANY])
    assert.deepEqual(found(view, 'notes', ITEM_KINDS), ['files:notes', 'prompt:files:notes', A, B, ANY])
    assert.deepEqual(found(view, 'notes', []), [])
  })

  it('says the kind of each hit, and finds by URI and by arguments', async () => {
    const view = await gateOver(items, { policy: OPEN }).gate.view({})
    const kinds = view.search('notes', { kinds: ITEM_KINDS }).map(({ id, kind }) => [id, kind])
    assert.deepEqual(Object.fromEntries(kinds), {
      'files:notes': 'tool',
      'prompt:files:notes': 'prompt',
      [A]: 'resource',
      [B]: 'resource',
      [ANY]: 'template',
    })
    assert.deepEqual(found(view, 'audience', ['prompt', 'resource']), ['prompt:files:notes'])
    const named = [resource('file:///reports/2026.md', { name: 'Numbers' })]
    const other = await gateOver(named, { policy: OPEN }).gate.view({})
    assert.deepEqual(found(other, 'reports', ['resource']), ['resource:files:file:///reports/2026.md'])
  })

  it('finds nothing that a policy, a clause about the URI, a template, a step or a later policy hides', async () => {
    const ask = async (policy: Policies | undefined) =>
      found(await gateOver(items, { ...(policy && { policy }) }).gate.view({}), 'notes', ['resource', 'prompt'])
    assert.deepEqual(await ask(undefined), [])
    assert.deepEqual(await ask({ ...OPEN, deny: ['resource:files:file:///secret/*'] }), ['prompt:files:notes', A])
    const clause = { match: 'resource:files:*', input: "input.uri.contains('secret')" }
    assert.deepEqual(await ask({ ...OPEN, deny: [clause] }), ['prompt:files:notes', A])
    assert.deepEqual(await ask({ ...OPEN, deny: [ANY] }), ['prompt:files:notes'])
    const { gate } = gateOver(items, { policy: OPEN })
    const view = await gate.view({})
    assert.deepEqual(found(view.narrow({ activeTools: [A, ANY] }), 'notes', ITEM_KINDS), [A, ANY])
    assert.deepEqual(found(view, 'notes', ['resource', 'prompt']), ['prompt:files:notes', A, B])
    gate.setPolicy({ ...OPEN, deny: ['prompt:*:*'] })
    assert.deepEqual(found(view, 'notes', ['resource', 'prompt']), [A, B])
    await gate.halt({ tool: 'server:files', reason: 'it leaks' })
    assert.deepEqual(found(view, 'notes', ITEM_KINDS), [])
  })

  it('finds only what the app names', async () => {
    const apps = { docs: { tools: ['resource:files:file:///docs/*', 'resource:files:file:///{+path}'] } }
    const view = await gateOver(items, { policy: OPEN, apps }).gate.view({}, { app: 'docs' })
    assert.deepEqual(found(view, 'notes', ITEM_KINDS), [A, ANY])
  })

  it('refuses unknown kinds, and names them', async () => {
    const view = await gateOver(items, { policy: OPEN }).gate.view({})
    for (const kinds of ['prompt', ['prompts'], [1], null, {}])
      assert.throws(() => view.search('notes', { kinds: kinds as never }), {
        code: 'query_invalid',
        message: 'The kinds of a search must be a list of tool, resource, template, prompt.',
      })
  })
})

describe('preferences', () => {
  it('switch resources and prompts off for one user, in lists, searches and calls', async () => {
    const { gate } = gateOver(ALL, { policy: OPEN })
    const vera = { user: 'vera' }
    const view = await gate.view(vera)
    await gate.preferences.set(vera, { groups: [], tools: [A, ASK] })
    const ids = async (user: string) => {
      const { items } = await gate.view({ user })
      return [...items('resource'), ...items('prompt')].map(({ id }) => id)
    }
    assert.deepEqual([await ids('vera'), await ids('udo')], [[B], [A, B, ASK]])
    assert.deepEqual(view.search('ask', { kinds: ['prompt'] }), [])
    for (const [tool, input] of [
      [A, { uri: 'file:///docs/a.md' }],
      [ASK, {}],
    ] as const) {
      const outcome = await view.call({ tool, input })
      assert.equal(outcome.status, 'refused')
      assert.match(outcome.text, /the user has switched it off/)
    }
    await gate.preferences.set(vera, { groups: [], tools: [] })
    assert.deepEqual(await ids('vera'), [A, B, ASK])
    assert.equal((await (await gate.view(vera)).call({ tool: ASK, input: {} })).status, 'done')
  })
})

describe('a view and what holds its items back for a while', () => {
  const VERA = { user: 'vera' }
  const TOOL = 'files:read'
  const UNLISTED = 'resource:files:file:///docs/unlisted.md'
  const inputOf = (id: string) => (id.startsWith('resource:') ? { uri: id.slice('resource:files:'.length) } : {})
  const word = async (view: View, id: string) => (await view.call({ tool: id, input: inputOf(id) })).status

  /** What holds an item back, and lets it go again. */
  type Holder = (id: string, gate: ReturnType<typeof gateOver>['gate']) => readonly [() => unknown, () => unknown]
  const holders: readonly (readonly [string, Holder])[] = [
    ['a halt', (_, gate) => [() => gate.halt({ user: 'vera', reason: 'wait' }), () => gate.release({ user: 'vera' })]],
    [
      'a preference',
      (id, gate) => [
        () => gate.preferences.set(VERA, { groups: [], tools: [id] }),
        () => gate.preferences.set(VERA, { groups: [], tools: [] }),
      ],
    ],
  ]
  for (const [what, holder] of holders)
    for (const id of [TOOL, A, ASK, UNLISTED]) {
      it(`lets ${id} go with ${what} that came after it, also if it was first used meanwhile`, async () => {
        const { gate } = gateOver(ALL, { policy: OPEN })
        const [hold, release] = holder(id, gate)
        const view = await gate.view(VERA)
        await hold()
        assert.equal(await word(view, id), 'refused')
        await release()
        assert.deepEqual([view.has(id), await word(view, id)], [true, 'done'])
      })

      it(`keeps ${id} back with ${what} that was before it, until its next step, whenever it is first used`, async () => {
        const { gate } = gateOver(ALL, { policy: OPEN })
        const [hold, release] = holder(id, gate)
        await hold()
        const view = await gate.view(VERA)
        await release()
        assert.deepEqual([view.has(id), await word(view, id)], [false, 'refused'])
        assert.equal(await word(view.narrow({}), id), 'done')
      })
    }
})

describe('hooks', () => {
  it('are asked before and told after reads and prompts, and may refuse them', async () => {
    const seenBy: unknown[] = []
    const { gate } = gateOver(ALL, {
      policy: OPEN,
      hooks: {
        beforeToolCall: ({ tool, input }) => {
          seenBy.push(['before', tool.kind, input])
          return tool.id === B ? { allow: false, reason: 'not today' } : undefined
        },
        afterToolCall: ({ tool, ok, output }) => void seenBy.push(['after', tool.kind, ok, output]),
      },
    })
    const view = await gate.view({})
    const secret = { uri: 'file:///secret/b.md' }
    const unlisted = { uri: 'file:///docs/c.md' }
    const refused = await view.call({ tool: B, input: secret })
    assert.equal(refused.status, 'refused')
    assert.match(refused.text, /not today/)
    await view.call({ tool: `resource:files:${unlisted.uri}`, input: unlisted })
    await view.call({ tool: ASK, input: { topic: 'x' } })
    assert.deepEqual(seenBy, [
      ['before', 'resource', secret],
      ['before', 'resource', unlisted],
      ['after', 'resource', true, { contents: [unlisted] }],
      ['before', 'prompt', { topic: 'x' }],
      ['after', 'prompt', true, { messages: [{ topic: 'x' }] }],
    ])
  })
})

describe('calls of items', () => {
  it('are recorded with their kind, and their purpose', async () => {
    const audit = memoryAudit()
    const { gate } = gateOver(ALL, { policy: OPEN, audit })
    const view = await gate.view({})
    await view.call({ tool: 'files:read' })
    await view.call({ tool: ASK, input: { a: 'b' } })
    await view.call({ tool: ASK, as: { kind: 'complete', run: () => ({ values: [] }) }, input: { argument: 1 } })
    await view.call({ tool: 'resource:files:file:///../x' })
    const rows = audit.records.map(({ event, tool, kind, purpose }) => [event, tool, kind, purpose])
    assert.deepEqual(rows, [
      ['tool_call', 'files:read', undefined, undefined],
      ['tool_result', 'files:read', undefined, undefined],
      ['tool_call', ASK, 'prompt', undefined],
      ['tool_result', ASK, 'prompt', undefined],
      ['tool_call', ASK, 'prompt', 'complete'],
      ['tool_result', ASK, 'prompt', 'complete'],
      ['tool_blocked', 'resource:files:file:///../x', 'resource', undefined],
    ])
  })

  it('are refused for a purpose where a person would have to approve', async () => {
    const { gate } = gateOver(ALL, { policy: { ...OPEN, ask: ['prompt:*:*'] } })
    const view = await gate.view({})
    const ran: unknown[] = []
    const outcome = await view.call({ tool: ASK, as: { kind: 'complete', run: (input) => ran.push(input) } })
    assert.deepEqual([outcome.status, ran], ['refused', []])
    assert.match(outcome.text, /it needs an approval for each call/)
  })

  it('take a purpose only with what runs instead, and the other way round', async () => {
    const view = await gateOver(ALL, { policy: OPEN }).gate.view({})
    for (const as of [{ kind: 'complete' }, { run: () => 1 }, { kind: 'x', run: () => 1 }])
      await assert.rejects(async () => view.call({ tool: ASK, as: as as never }), { code: 'config_invalid' })
  })

  it('of URIs of one server share a limit', async () => {
    const { gate } = gateOver(ALL, { policy: OPEN, limits: ['resource:files:*:2/60', '*:1/60'] })
    const view = await gate.view({ user: 'vera' })
    const read = (uri: string) => view.call({ tool: `resource:files:${uri}`, input: { uri } })
    assert.equal((await read('file:///docs/a.md')).status, 'done')
    assert.equal((await read('file:///docs/x')).status, 'done')
    assert.match((await read('file:///docs/y')).text, /rate limited \(2\/60\)/)
    assert.equal((await view.call({ tool: 'files:read' })).status, 'done')
  })

  it('end as unknown where a later list has the item no more', async () => {
    const { gate, list } = gateOver(ALL, { policy: OPEN })
    const view = await gate.view({})
    list()
    assert.equal((await view.call({ tool: ASK })).status, 'refused')
    assert.deepEqual((await gate.view({})).items('prompt'), [])
  })
})

describe('what is hidden and what does not exist', () => {
  const pairs: readonly (readonly [kind: string, hidden: string, unknown: string])[] = [
    ['resource', B, 'resource:files:file:///secret/x.md'],
    ['resource', B, 'resource:nobody:file:///secret/b.md'],
    ['resource', B, 'resource:files:db://nothing'],
    ['template', ANY, 'resource:files:db://{+path}'],
    ['prompt', ASK, 'prompt:files:other'],
    ['tool', 'files:read', 'files:other'],
  ]
  for (const [kind, hidden, unknown] of pairs)
    it(`get the same answer: ${kind} ${hidden} and ${unknown}`, async () => {
      const policy = { allow: ['resource:files:file:///docs/*', 'nothing:*'] }
      const view = await gateOver([...ALL, template('file:///{+path}')], { policy }).gate.view({ user: 'vera' })
      assert.deepEqual([view.has(hidden), view.get(hidden)], [view.has(unknown), view.get(unknown)])
      const answers = [hidden, unknown].map(async (tool) => {
        const outcome = await view.call({ tool, calledAs: 'x', callId: '1' })
        return [outcome.status, outcome.text]
      })
      assert.deepEqual(await answers[0], await answers[1])
    })

  it('get the same answer where a clause about the input denies the URI', async () => {
    const policy = { ...OPEN, deny: [{ match: 'resource:files:*', input: "input.uri.contains('secret')" }] }
    const view = await gateOver(ALL, { policy }).gate.view({})
    const textOf = async (tool: string) => (await view.call({ tool, calledAs: 'x', input: { uri: 'x' } })).text
    const unknown = await textOf('resource:files:db://nothing')
    assert.deepEqual([await textOf(B), await textOf('resource:files:file:///secret/c.md')], [unknown, unknown])
  })

  it('never list names of tools for other kinds', async () => {
    const view = await gateOver(ALL, { policy: { allow: ['*'] } }).gate.view({})
    assert.equal(
      (await view.call({ tool: A, calledAs: 'file:///docs/a.md' })).text,
      'Resource "file:///docs/a.md" is not available.',
    )
    assert.equal((await view.call({ tool: ASK, calledAs: 'ask' })).text, 'Prompt "ask" is not available.')
    assert.ok(isNormalUri('file:///docs/a.md'))
  })
})
