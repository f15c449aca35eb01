import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { defineTool } from '@toolgate/core'
import fc from 'fast-check'
import { createListedNames, type NameRules, type PrefixMode } from './names.ts'

type FindRules = Parameters<typeof createListedNames>[1]
const PREFIX_MODES: readonly PrefixMode[] = ['always', 'when-needed', 'never']
const rules = (given: Partial<NameRules> = {}): NameRules => ({
  prefix: 'when-needed',
  max: 64,
  renamed: new Map(),
  ...given,
})
const by =
  (servers: Readonly<Record<string, Partial<NameRules>>>): FindRules =>
  (server) =>
    rules(servers[server])
const toolOf = (id: string) => {
  const [name = '', namespace] = id.split(':').toReversed()
  return defineTool({ name, namespace })
}
const seeing = (...ids: string[]) => ({ has: (id: string) => ids.includes(id) })
const named = (ids: readonly string[], find: FindRules, visible: readonly string[] = ids) => {
  const names = createListedNames(ids.map(toolOf), find).of(seeing(...visible))
  return ids.map((id) => names.toName(id))
}

describe('createListedNames', () => {
  it('puts the server before each name, unless its rules say otherwise', () => {
    const find = by({ a: { prefix: 'always' }, b: { prefix: 'when-needed' }, c: { prefix: 'never' } })
    assert.deepEqual(named(['a:read', 'b:write', 'c:drop', 'own'], find), ['a__read', 'write', 'drop', 'own'])
  })

  it('gives all a prefix that want one name when needed, but leaves the name to the one that never has a prefix', () => {
    assert.deepEqual(named(['a:find', 'b:find', 'b:get'], by({})), ['a__find', 'b__find', 'get'])
    assert.deepEqual(named(['a:find', 'b:find'], by({ b: { prefix: 'never' } })), ['a__find', 'find'])
    assert.deepEqual(named(['a:find', 'b:find'], by({ b: { prefix: 'always' } })), ['find', 'b__find'])
  })

  it('gives a prefix to those that never have one where two of them clash, and reports both', () => {
    const find = by({ a: { prefix: 'never' }, b: { prefix: 'never' } })
    const tools = ['b:find', 'a:find', 'a:get'].map(toolOf)
    assert.deepEqual(createListedNames(tools, find).clashes, [
      { name: 'find', ids: ['a:find', 'b:find'], isPrefixed: true },
    ])
    assert.deepEqual(named(['a:find', 'b:find', 'a:get'], find), ['a__find', 'b__find', 'get'])
  })

  it('never gives a name of Toolgate’s own tools to another', () => {
    const ids = ['search_tools', 'a:search_tools']
    for (const prefix of PREFIX_MODES)
      assert.deepEqual(named(ids, by({ a: { prefix } })), ['search_tools', 'a__search_tools'])
    const { clashes } = createListedNames(ids.map(toolOf), by({ a: { prefix: 'never' } }))
    assert.deepEqual(clashes, [{ name: 'search_tools', ids: ['a:search_tools'], isPrefixed: true }])
  })

  it('leaves out items that have one long name, and reports both', () => {
    const find = by({ a: { prefix: 'always', renamed: new Map([['look', 'find']]) } })
    assert.deepEqual(named(['a:find', 'a:look', 'a:get'], find), [undefined, undefined, 'a__get'])
    const { clashes } = createListedNames(['a:find', 'a:look'].map(toolOf), find)
    assert.deepEqual(clashes, [{ name: 'a__find', ids: ['a:find', 'a:look'], isPrefixed: false }])
  })

  it('shows the operator’s names, and knows the server’s own no longer', () => {
    const renamed = new Map([['read_file', 'open']])
    const names = createListedNames(['a:read_file'].map(toolOf), by({ a: { renamed } })).of(seeing('a:read_file'))
    assert.deepEqual(
      [names.toName('a:read_file'), names.toId('open'), names.toId('read_file')],
      ['open', 'a:read_file', undefined],
    )
    assert.deepEqual(named(['a:read_file'], by({ a: { prefix: 'always', renamed } })), ['a__open'])
  })

  it('cuts names that are longer than max, with a hash that stays the same', () => {
    const long = 'l'.repeat(30)
    for (const prefix of PREFIX_MODES) {
      const [name, again] = [0, 1].map(() => named([`a:${long}`, 'a:b'], by({ a: { prefix, max: 24 } }))[0])
      assert.match(name ?? '', /^[al_]{11}__[0-9a-f]{10}_$/)
      assert.equal(again, name)
    }
    assert.deepEqual(named([`a:${'l'.repeat(24)}`], by({ a: { prefix: 'never', max: 24 } })), ['l'.repeat(24)])
  })

  it('lets a name follow the items that are visible', () => {
    const ids = ['a:find', 'b:find']
    assert.deepEqual(named(ids, by({}), ['a:find']), ['find', 'b__find'])
    assert.deepEqual(named(ids, by({}), ['b:find']), ['a__find', 'find'])
    assert.deepEqual(named(ids, by({}), []), ['a__find', 'b__find'])
    const names = createListedNames(ids.map(toolOf), by({}))
    assert.equal(names.of(seeing('a:find')).toId('find'), 'a:find')
    assert.equal(names.of(seeing('a:find')).toId('a__find'), undefined)
    assert.equal(names.of(seeing('a:find')).toId('b__find'), 'b:find')
    assert.equal(names.of(seeing(...ids)).toId('find'), undefined)
    assert.equal(names.of().toId('find'), undefined)
  })

  const part = fc.oneof(
    fc.constantFrom('a', 'b', 'a__b', '_a', 'a_', 'search_tools', '__proto__', 'constructor', 'é', 'a.b'),
    fc.string({ unit: fc.constantFrom('a', '_', 'b', '.'), minLength: 1, maxLength: 40 }),
  )
  const world = fc.record({
    servers: fc.dictionary(
      fc.constantFrom('a', 'b', 'c', 'a_b', '__proto__'),
      fc.record({
        prefix: fc.constantFrom(...PREFIX_MODES),
        max: fc.constantFrom(24, 30, 64, 128),
        tools: fc.array(fc.record({ name: part, isVisible: fc.boolean() }), { maxLength: 5 }),
      }),
      { noNullPrototype: true },
    ),
  })

  it('maps names to ids and back, one to one, and does not let a hidden item change a visible one’s name', () => {
    fc.assert(
      fc.property(world, ({ servers }) => {
        const rulesOfServer = new Map(
          Object.entries(servers).map(([name, { prefix, max }]) => [name, rules({ prefix, max })]),
        )
        const find: FindRules = (name) => rulesOfServer.get(name) ?? rules()
        const all = new Map(
          Object.entries(servers).flatMap(([namespace, { tools }]) =>
            tools.map(({ name, isVisible }) => {
              const tool = defineTool({ namespace, name })
              return [tool.id, { tool, isVisible }] as const
            }),
          ),
        )
        const own = defineTool({ name: 'search_tools' })
        const tools = [own, ...[...all.values()].map(({ tool }) => tool)]
        const visible = tools.filter(({ id }) => all.get(id)?.isVisible ?? true)
        const view = seeing(...visible.map(({ id }) => id))
        const names = createListedNames(tools, find)
        assert.deepEqual(
          names.clashes.filter(({ isPrefixed }) => !isPrefixed),
          [],
        )
        for (const one of [names.of(view), names.of()]) {
          const taken = new Set<string>()
          for (const { id, namespace } of tools) {
            const name = one.toName(id) as string
            assert.match(name, /^[A-Za-z0-9_-]+$/)
            assert.ok(name.length <= find(namespace ?? '').max)
            assert.equal(one.toId(name), id)
            assert.ok(!taken.has(name))
            taken.add(name)
          }
        }
        const alone = createListedNames(visible, find).of(view)
        for (const { id } of visible) assert.equal(names.of(view).toName(id), alone.toName(id))
      }),
      { numRuns: 500 },
    )
  })
})
