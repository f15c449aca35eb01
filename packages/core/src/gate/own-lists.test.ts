import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import type { Caller } from '../ports/caller.ts'
import { createEmitter } from '@toolgate/values'
import { definePrompt, defineResource } from '../tools/items.ts'
import type { OwnSource } from '../tools/own-lists.ts'
import { defineTool, type Tool } from '../tools/tool.ts'
import type { Source } from '../tools/catalog.ts'
import type { Policies } from '../policy/policy.ts'
import { createGate } from './gate.ts'

const VERA: Caller = { user: 'vera' }
const OTTO: Caller = { user: 'otto' }
const ZOE: Caller = { user: 'zoe', roles: ['admin'] }
const EVERYONE = [VERA, OTTO, ZOE]

/** A server that lists other items for each user. */
function mailServer(shared: readonly Tool[] = []): Source & { set(user: string, items?: readonly Tool[]): void } {
  const lists = new Map<string, OwnSource & { items: readonly Tool[] }>()
  const changes = createEmitter<[OwnSource]>()
  return {
    name: 'mail',
    namespaces: ['mail'],
    tools: () => shared,
    own: {
      of: ({ user = '' }) => lists.get(user),
      all: () => lists.values(),
      subscribe: changes.subscribe,
    },
    set(user, items) {
      const before = lists.get(user)
      const list = before ?? {
        owner: { user },
        items: [],
        tools() {
          return this.items
        },
      }
      if (items) {
        list.items = items
        lists.set(user, list)
      } else lists.delete(user)
      changes.emit(list)
    },
  }
}

const NAMES = ['send', 'read', 'list_all'] as const

function mailTool(name: string, variant = 0): Tool {
  return defineTool({
    namespace: 'mail',
    name,
    description: `Does ${name}, variant ${variant}.`,
    inputSchema: {
      type: 'object',
      properties: { [`field${variant}`]: { type: 'string' } },
      additionalProperties: false,
    },
    tags: variant === 2 ? ['odd'] : [],
    execute: () => `${name} ${variant}`,
  })
}

function mailItems(name: string, variant: number): readonly Tool[] {
  const uri = `mail:///${name}`
  return [
    defineResource({ namespace: 'mail', uri, description: `r${variant}`, execute: () => `content ${variant}` }),
    definePrompt({ namespace: 'mail', name, description: `p${variant}`, execute: () => `text ${variant}` }),
  ]
}

const SHARED = ['read', 'write'].map((name) =>
  defineTool({ namespace: 'files', name, description: `Files: ${name}.`, execute: () => name }),
)

describe('the lists of single callers', () => {
  const world = (policy: Policies = [], shared: readonly Tool[] = []) => {
    const mail = mailServer(shared)
    return { mail, gate: createGate({ tools: SHARED, sources: [mail], policy }) }
  }
  const callText = async (gate: ReturnType<typeof world>['gate'], caller: Caller, tool: string, input: object = {}) =>
    (await (await gate.view(caller)).call({ tool, input })).text

  it('are seen and callable by their callers only', async () => {
    const { mail, gate } = world()
    mail.set('vera', [mailTool('send'), mailTool('read')])
    mail.set('otto', [mailTool('send', 1)])
    assert.deepEqual((await gate.view(VERA)).ids, ['files:read', 'files:write', 'mail:read', 'mail:send'])
    assert.deepEqual((await gate.view(OTTO)).ids, ['files:read', 'files:write', 'mail:send'])
    assert.deepEqual((await gate.view(ZOE)).ids, ['files:read', 'files:write'])
    assert.equal(await callText(gate, VERA, 'mail:send', { field0: 'x' }), 'send 0')
    assert.equal(await callText(gate, OTTO, 'mail:send', { field1: 'x' }), 'send 1')
    assert.match(await callText(gate, OTTO, 'mail:send', { field0: 'x' }), /field0/)
    const unknown = (await callText(gate, ZOE, 'mail:nobody_has_it')).replace('nobody_has_it', 'send')
    assert.equal(await callText(gate, ZOE, 'mail:send'), unknown)
  })

  it('cost others nothing: their snapshot and their view stay the same objects', async () => {
    const { mail, gate } = world()
    mail.set('otto', [mailTool('send')])
    const [zoe, otto] = [await gate.view(ZOE), await gate.view(OTTO)]
    mail.set('vera', [mailTool('read')])
    mail.set('vera')
    assert.equal(await gate.view(ZOE), zoe)
    assert.equal(await gate.view(OTTO), otto)
    assert.equal(gate.catalog.of(ZOE).snapshot, gate.catalog.snapshot())
  })

  it('never replace what all callers share, and stay in the namespaces of their server', async () => {
    const shared = mailTool('status')
    const { mail, gate } = world([], [shared])
    const foreign = defineTool({ namespace: 'files', name: 'delete', execute: () => 'no' })
    mail.set('vera', [mailTool('send'), foreign, mailTool('status', 1)])
    assert.deepEqual((await gate.view(VERA)).ids, ['files:read', 'files:write', 'mail:send', 'mail:status'])
    assert.equal((await gate.view(VERA)).get('mail:status'), shared)
  })

  it('are announced without their ids', () => {
    const { mail, gate } = world()
    const seen: unknown[] = []
    gate.catalog.subscribe((change) => seen.push(change))
    mail.set('vera', [mailTool('send')])
    assert.deepEqual(seen, [{ revision: 1, added: [], changed: [], removed: [], own: { user: 'vera' } }])
  })

  it('refuse a call that began before the item was gone, or was another', async () => {
    const { mail, gate } = world()
    mail.set('vera', [mailTool('send'), mailTool('read')])
    const view = await gate.view(VERA)
    mail.set('vera', [mailTool('read', 1)])
    assert.equal((await view.call({ tool: 'mail:send', input: {} })).status, 'refused')
    assert.deepEqual(view.narrow({}).ids, ['files:read', 'files:write', 'mail:read'])
  })

  it('may be named in activeTools by anybody: an unknown name would tell what others have', async () => {
    const { mail, gate } = world()
    mail.set('vera', [mailTool('send')])
    for (const name of ['mail:send', 'mail:nobody_has_it'])
      assert.deepEqual((await gate.view(ZOE, { activeTools: [name] })).ids, [])
    await assert.rejects(gate.view(ZOE, { activeTools: ['files:nobody_has_it'] }), { code: 'tool_unknown' })
  })

  it('are held back by halts, preferences, limits and groups like all items', async () => {
    const mail = mailServer()
    const gate = createGate({
      tools: SHARED,
      sources: [mail],
      limits: ['mail:read:1/60'],
      groups: {
        post: { tools: ['mail:list_all'], visibility: 'conditional', unlock: 'search' },
      },
    })
    const text = (caller: Caller, tool: string, input: object = {}) => callText(gate, caller, tool, input)
    mail.set('vera', [mailTool('send'), mailTool('read'), mailTool('list_all')])
    mail.set('otto', [mailTool('send')])
    await gate.halt({ tool: 'mail:send', user: 'otto', reason: 'a leak' })
    assert.equal(await text(VERA, 'mail:send'), 'send 0')
    assert.match(await text(OTTO, 'mail:send'), /a leak/)
    await gate.release({ tool: 'mail:send', user: 'otto' })
    await gate.preferences.set(OTTO, { groups: [], tools: ['mail:send'] })
    assert.match(await text(OTTO, 'mail:send'), /switched it off/)
    assert.equal(await text(VERA, 'mail:send'), 'send 0')
    assert.equal(await text(VERA, 'mail:read'), 'read 0')
    assert.match(await text(VERA, 'mail:read'), /Try again/)
    const inSession = { ...VERA, session: 's1' }
    assert.match(await text(inSession, 'mail:list_all'), /locked|search/)
    assert.deepEqual(gate.locks.found(inSession, ['mail:list_all']), ['post'])
    assert.equal(await text(inSession, 'mail:list_all'), 'list_all 0')
    assert.deepEqual([gate.membersOf('post'), gate.membersOf('post', VERA)], [[], ['mail:list_all']])
    assert.deepEqual(gate.locks.found({ ...OTTO, session: 's2' }, ['mail:list_all']), [])
  })

  const variants = fc.option(fc.integer({ min: 0, max: 2 }), { nil: undefined })
  const list = fc
    .record({ send: variants, read: variants, list_all: variants, items: variants })
    .map(({ items, ...names }) => [
      ...NAMES.flatMap((name) => (names[name] === undefined ? [] : [mailTool(name, names[name])])),
      ...(items === undefined ? [] : mailItems('inbox', items)),
    ])
  const selector = fc.constantFrom(
    'mail:send',
    'mail:*',
    '*:read',
    'tag:odd',
    'files:*',
    '*',
    'resource:mail:*',
    'prompt:mail:*',
  )
  const clause = fc.oneof(selector, fc.record({ match: selector, unless: fc.constant("'admin' in caller.roles") }))
  const clauses = fc.array(clause, { maxLength: 3 })
  const policy = fc
    .record({ deny: clauses, ask: clauses })
    .map((rules) => [{ allow: ['*', 'resource:*:*', 'prompt:*:*'], ...rules }])
  const steps = fc.array(
    fc.record({ user: fc.constantFrom('vera', 'otto'), items: fc.option(list, { nil: undefined }) }),
    { minLength: 1, maxLength: 6 },
  )
  const PROBES = [
    ...NAMES.map((name) => `mail:${name}`),
    'resource:mail:mail:///inbox',
    'prompt:mail:inbox',
    'files:read',
    'mail:none',
  ]

  /** Everything that a caller can learn of a gate. */
  const known = async (gate: ReturnType<typeof world>['gate'], caller: Caller) => {
    const view = await gate.view(caller)
    const calls = await Promise.all(
      PROBES.map(async (tool) => {
        const { status, text } = await view.call({ tool, input: {} })
        return [tool, view.has(tool), view.explain(tool).outcome, status, text]
      }),
    )
    const items = (['resource', 'prompt'] as const).map((kind) =>
      view.items(kind).map(({ id, description }) => [id, description]),
    )
    const hits = view.search('read send').map(({ id }) => id)
    return { ids: view.ids, fingerprint: view.fingerprint, notices: view.notices, items, hits, calls }
  }

  it('give each caller what a gate with these items alone would', async () => {
    await fc.assert(
      fc.asyncProperty(policy, steps, async (rules, script) => {
        const { mail, gate } = world(rules)
        const lists = new Map<string, readonly Tool[]>()
        for (const { user, items } of script) {
          const before = await gate.view({ user })
          mail.set(user, items)
          lists.set(user, items ?? [])
          for (const caller of EVERYONE) {
            const tools = () => lists.get(caller.user ?? '') ?? []
            const source: Source = { name: 'mail', namespaces: ['mail'], tools, subscribe: () => () => {} }
            const alone = createGate({ tools: SHARED, sources: [source], policy: rules })
            assert.deepEqual(await known(gate, caller), await known(alone, caller))
          }
          const after = await gate.view({ user })
          for (const tool of PROBES)
            if ((await before.call({ tool, input: {} })).status === 'done')
              assert.ok(before.has(tool) && after.has(tool))
        }
      }),
      { numRuns: 30 },
    )
  })
})
