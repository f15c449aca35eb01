import { Revision, ToolgateError } from '@toolgate/values'
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { z } from 'zod'
import { type CatalogChange, createCatalog, type Source } from './catalog.ts'
import { definePrompt, defineResource, defineTemplate } from './items.ts'
import { defineTool, isTool, type Tool, type ToolDefinition } from './tool.ts'

const tool = (name: string, description = '') => defineTool({ name, description })

function liveSource(name: string, offered: readonly Tool[]) {
  const listeners = new Set<() => void>()
  let tools: Source['tools'] = () => offered
  const source: Source = {
    name,
    tools: () => tools(),
    subscribe(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
  return {
    source,
    listeners,
    change(next: Source['tools']) {
      tools = next
      for (const listener of listeners) listener()
    },
  }
}

describe('createCatalog', () => {
  it('has the tools of all sources, and is fixed where none can change', () => {
    const catalog = createCatalog({
      changes: new Revision(),
      tools: [tool('a')],
      sources: [{ name: 's', tools: () => [tool('b')] }],
    })
    assert.deepEqual(catalog.snapshot().ids, ['a', 'b'])
    assert.deepEqual([catalog.revision, catalog.dynamic], [1, false])
    assert.equal(catalog.get('b')?.id, 'b')
  })

  it('grows its revision with every change, and tells who listens', () => {
    const live = liveSource('s', [tool('a')])
    const catalog = createCatalog({ changes: new Revision(), sources: [live.source] })
    const before = catalog.snapshot()
    let heard = 0
    const unsubscribe = catalog.subscribe(() => heard++)
    live.change(() => [tool('b')])
    assert.deepEqual([catalog.revision, heard, catalog.dynamic], [2, 1, true])
    assert.deepEqual([before.ids, catalog.snapshot().ids], [['a'], ['b']])
    unsubscribe()
    live.change(() => [])
    assert.deepEqual([catalog.revision, heard], [3, 1])
  })

  it('remembers every id that it has had', () => {
    const live = liveSource('s', [tool('a')])
    const catalog = createCatalog({ changes: new Revision(), sources: [live.source] })
    live.change(() => [])
    assert.deepEqual([catalog.hasSeen('a'), catalog.get('a'), catalog.hasSeen('b')], [true, undefined, false])
  })

  it('forgets the oldest of very many ids that are gone, and none that is there', () => {
    const listed = (list: number) => Array.from({ length: 50_100 }, (_, i) => tool(`${list}-${i}`))
    const live = liveSource('s', listed(0))
    const catalog = createCatalog({ changes: new Revision(), tools: [tool('a')], sources: [live.source] })
    live.change(() => listed(1))
    const known = ['a', '0-0', '0-50099', '1-0', '1-50099'].map(catalog.hasSeen)
    assert.deepEqual(known, [true, false, true, true, true])
  })

  it('keeps the first of two tools of one id, and names both sources', () => {
    const catalog = createCatalog({
      changes: new Revision(),
      tools: [tool('a', 'fixed')],
      sources: [
        { name: 'one', tools: () => [tool('a', 'one'), tool('b', 'one')] },
        { name: 'two', tools: () => [tool('b', 'two'), tool('b', 'again')] },
      ],
    })
    assert.deepEqual([catalog.get('a')?.description, catalog.get('b')?.description], ['fixed', 'one'])
    assert.deepEqual(catalog.conflicts, [
      { id: 'a', kept: 'tools', dropped: 'one' },
      { id: 'b', kept: 'one', dropped: 'two' },
    ])
  })

  it('keeps the tools of a source that fails, and the other sources as they are', () => {
    const live = liveSource('flaky', [tool('a')])
    const catalog = createCatalog({
      changes: new Revision(),
      sources: [live.source, { name: 'steady', tools: () => [tool('b')] }],
    })
    const error = new Error('gone')
    live.change(() => {
      throw error
    })
    assert.deepEqual(catalog.snapshot().ids, ['a', 'b'])
    assert.deepEqual(catalog.failures, [{ source: 'flaky', error }])
    live.change(() => [tool('c')])
    assert.deepEqual([catalog.snapshot().ids, catalog.failures], [['b', 'c'], []])
  })

  it('takes a source that fails halfway for one that fails', () => {
    const live = liveSource('flaky', [tool('a')])
    const catalog = createCatalog({ changes: new Revision(), sources: [live.source] })
    live.change(function* () {
      yield tool('b')
      throw new Error('gone')
    })
    assert.deepEqual(catalog.snapshot().ids, ['a'])
  })

  it('takes only what defineTool made, and makes a tool of its own of each definition', () => {
    const fake = { ...tool('a') }
    assert.throws(() => createCatalog({ changes: new Revision(), tools: [fake] }), { code: 'tool_invalid' })
    const definition = { name: 'b', tags: ['read'] }
    const catalog = createCatalog({
      changes: new Revision(),
      sources: [{ name: 's', tools: () => [fake, definition] }],
    })
    definition.tags.push('danger')
    assert.deepEqual(catalog.snapshot().ids, ['a', 'b'])
    assert.notEqual(catalog.get('a'), fake)
    assert.deepEqual([isTool(catalog.get('a')), catalog.get('b')?.tags], [true, ['read']])
  })

  it('refuses two fixed tools of one id', () => {
    assert.throws(() => createCatalog({ changes: new Revision(), tools: [tool('a'), tool('a')] }), {
      code: 'tool_duplicate',
    })
  })

  it('hears nothing more once it is closed', () => {
    const live = liveSource('s', [tool('a')])
    const catalog = createCatalog({ changes: new Revision(), sources: [live.source] })
    catalog.close()
    assert.equal(live.listeners.size, 0)
  })
})

describe('Catalog.subscribe', () => {
  const changes = (offered: readonly Tool[], onFault?: (error: unknown) => void) => {
    const live = liveSource('s', offered)
    const catalog = createCatalog({ changes: new Revision(), sources: [live.source], ...(onFault && { onFault }) })
    const heard: CatalogChange[] = []
    catalog.subscribe((change) => heard.push(change))
    return { ...live, catalog, heard }
  }

  it('tells what was added, changed and removed, once for each batch', () => {
    const { change, heard } = changes([tool('a'), tool('b'), tool('c')])
    change(() => [tool('e'), tool('d'), tool('c'), tool('b', 'new')])
    assert.deepEqual(heard, [{ revision: 2, added: ['d', 'e'], changed: ['b'], removed: ['a'] }])
  })

  it('is silent when a source offers the same again, and the tools stay the same objects', () => {
    const inputSchema = z.object({ q: z.string() })
    const execute = () => 'done'
    const make = (): readonly (Tool | ToolDefinition)[] => [tool('a'), { name: 'b', inputSchema, execute }]
    const live = liveSource('s', [])
    live.change(make)
    const catalog = createCatalog({ changes: new Revision(), sources: [live.source] })
    const [a, b] = [catalog.get('a'), catalog.get('b')]
    let heard = 0
    catalog.subscribe(() => heard++)
    live.change(() => make().toReversed())
    assert.deepEqual([heard, catalog.revision], [0, 1])
    assert.ok(catalog.get('a') === a && catalog.get('b') === b)
  })

  const other = () => 'other'
  const differing: readonly (readonly [what: string, definition: Partial<ToolDefinition>])[] = [
    ['its tags', { tags: ['danger'] }],
    ['its scopes', { requiredScopes: ['admin'] }],
    ['its hints', { annotations: { readOnlyHint: true } }],
    ['whose word its hints are', { hintsTrusted: false }],
    ['its schema', { inputSchema: { type: 'object', properties: {} } }],
    ['what it executes', { execute: other }],
  ]
  for (const [what, definition] of differing) {
    it(`calls a tool changed when ${what} differs`, () => {
      const { change, heard, catalog } = changes([tool('a')])
      change(() => [{ name: 'a', ...definition }])
      assert.deepEqual(heard[0]?.changed, ['a'])
      assert.equal(catalog.revision, 2)
    })
  }

  it('tells nothing of a batch that fails halfway', () => {
    const { change, heard, catalog } = changes([tool('a')])
    change(function* () {
      yield tool('b')
      throw new Error('gone')
    })
    assert.deepEqual([heard, catalog.revision, catalog.snapshot().ids], [[], 1, ['a']])
  })

  it('tells what another source’s tool gives way to', () => {
    const first = liveSource('first', [tool('a', 'first')])
    const catalog = createCatalog({
      changes: new Revision(),
      sources: [first.source, { name: 'second', tools: () => [tool('a', 'second')] }],
    })
    const heard: CatalogChange[] = []
    catalog.subscribe((change) => heard.push(change))
    first.change(() => [])
    assert.deepEqual(heard, [{ revision: 2, added: [], changed: ['a'], removed: [] }])
    assert.deepEqual([catalog.get('a')?.description, catalog.conflicts], ['second', []])
  })

  it('tells everybody, also when a listener throws', () => {
    const faults: unknown[] = []
    const { change, catalog } = changes([], (error) => faults.push(error))
    let heard = 0
    catalog.subscribe(() => {
      throw new Error('deaf')
    })
    catalog.subscribe(() => heard++)
    change(() => [tool('a')])
    assert.deepEqual([heard, faults.map((fault) => (fault as Error).message)], [1, ['deaf']])
  })

  it('tells changes in their order, also one that a listener causes', () => {
    const { change, catalog } = changes([])
    const heard: number[] = []
    catalog.subscribe(({ revision }) => {
      if (revision === 2) change(() => [tool('a'), tool('b')])
    })
    catalog.subscribe(({ revision }) => heard.push(revision))
    change(() => [tool('a')])
    assert.deepEqual(
      [heard, catalog.snapshot().ids],
      [
        [2, 3],
        ['a', 'b'],
      ],
    )
  })

  it('survives a source that says it changed whenever it is read', () => {
    const live = liveSource('s', [])
    const catalog = createCatalog({ changes: new Revision(), sources: [live.source] })
    let reads = 0
    live.change(function* () {
      for (const listener of live.listeners) listener()
      yield tool(`t${++reads}`)
    })
    assert.ok(reads < 20)
    assert.deepEqual(catalog.snapshot().ids, [`t${reads}`])
  })
})

describe('Catalog.rejected', () => {
  it('is what throws when it is read, and what is nested too deep; all others of its source stay', () => {
    const nested = (depth: number): object => (depth === 0 ? {} : { properties: { a: nested(depth - 1) } })
    const throwing = {
      get name(): string {
        throw new TypeError('no name today')
      },
    }
    const tools = () =>
      [{ name: 'first' }, throwing, { name: 'deep', inputSchema: nested(5000) }, { name: 'last' }] as Tool[]
    const { rejected, failures, snapshot } = createCatalog({ changes: new Revision(), sources: [{ name: 's', tools }] })
    assert.deepEqual([snapshot().ids, failures], [['first', 'last'], []])
    assert.deepEqual(
      rejected.map((one) => one.tool),
      ['tools[1]', 'deep'],
    )
    assert.equal(rejected[0]?.reason, 'no name today')
  })

  const deep = Array.from({ length: 40 }).reduce<object>((inner) => ({ items: inner }), {})
  const refused: readonly (readonly [what: string, offered: unknown, tool: string, code: string, reason: RegExp])[] = [
    ['a bad name', { name: 'a b' }, 'a b', 'tool_invalid', /must not hold spaces/],
    ['a reserved namespace', { name: 'a', namespace: 'tag' }, 'a', 'tool_invalid', /reserved/],
    ['a schema that is too deep', { name: 'a', inputSchema: deep }, 'a', 'schema_invalid', /more than 32 levels/],
    [
      'a schema that is too large',
      { name: 'a', inputSchema: { description: 'x'.repeat(70_000) } },
      'a',
      'schema_invalid',
      /at most 65536/,
    ],
    ['what is no schema', { name: 'a', inputSchema: { type: 'text' } }, 'a', 'schema_invalid', /\/type must be one of/],
    ['a remote reference', { name: 'a', inputSchema: { $ref: 'http://x/y' } }, 'a', 'schema_invalid', /outside/],
    ['a second tool of one id', { name: 'ok' }, 'ok', 'tool_duplicate', /"ok" twice/],
    ['what is no tool', null, 'tools[1]', 'tool_invalid', /must be an object/],
    ['a name that is no text', { name: 7 }, 'tools[1]', 'tool_invalid', /must be a string/],
  ]
  for (const [what, offered, name, code, reason] of refused) {
    it(`lists ${what} with the reason, and the other tools stay`, () => {
      const tools = () => [tool('ok'), offered, tool('other')] as Tool[]
      const { rejected, failures, snapshot } = createCatalog({
        changes: new Revision(),
        sources: [{ name: 's', tools }],
      })
      assert.deepEqual([snapshot().ids, failures], [['ok', 'other'], []])
      assert.deepEqual(
        rejected.map((one) => [one.source, one.tool, one.code]),
        [['s', name, code]],
      )
      assert.match(rejected[0]?.reason ?? '', reason)
    })
  }

  it('is empty again once the source offers what can be used', () => {
    const live = liveSource('s', [])
    const catalog = createCatalog({ changes: new Revision(), sources: [live.source] })
    live.change(() => [{ name: 'a b' }])
    assert.deepEqual([catalog.rejected.length, catalog.revision], [1, 1])
    live.change(() => [])
    assert.deepEqual(catalog.rejected, [])
  })
})

describe('Catalog.failures', () => {
  const broken: readonly (readonly [what: string, tools: unknown])[] = [
    ['a promise', () => Promise.resolve([tool('a')])],
    ['nothing', () => undefined],
    ['an object', () => ({ a: tool('a') })],
    ['no function', [tool('a')]],
  ]
  for (const [what, tools] of broken) {
    it(`names a source whose tools are ${what}`, () => {
      const { failures, snapshot } = createCatalog({
        changes: new Revision(),
        sources: [{ name: 's', tools: tools as Source['tools'] }],
      })
      assert.equal(failures[0]?.source, 's')
      assert.ok(failures[0]?.error instanceof ToolgateError && failures[0].error.code === 'source_invalid')
      assert.equal(snapshot().size, 0)
    })
  }
})

describe('a catalog of several kinds', () => {
  const prompt = (name: string) => definePrompt({ name, namespace: 's' })

  it('keeps resources, templates and prompts out of its snapshot of tools', () => {
    const offered = [
      tool('a'),
      defineResource({ uri: 'db:a', namespace: 's' }),
      defineTemplate({ uriTemplate: 'db:{a}', namespace: 's' }),
      prompt('p'),
    ]
    const catalog = createCatalog({ changes: new Revision(), sources: [liveSource('s', offered).source] })
    assert.deepEqual(catalog.snapshot().ids, ['a'])
    assert.deepEqual(catalog.items().ids, ['prompt:s:p', 'resource:s:db:a', 'resource:s:db:{a}'])
    assert.equal(catalog.get('prompt:s:p')?.kind, 'prompt')
    assert.deepEqual([catalog.hasSeen('prompt:s:p'), catalog.hasSeen('prompt:s:q')], [true, false])
  })

  it('counts the changes of tools and of other kinds apart', () => {
    const live = liveSource('s', [tool('a'), prompt('p')])
    const catalog = createCatalog({ changes: new Revision(), sources: [live.source] })
    const added: string[] = []
    catalog.subscribe((change) => added.push(...change.added))
    const snapshot = catalog.snapshot()
    live.change(() => [tool('a'), prompt('p'), prompt('q')])
    assert.deepEqual([catalog.revision, catalog.itemsRevision, added], [1, 2, ['prompt:s:q']])
    assert.equal(catalog.snapshot(), snapshot)
    live.change(() => [tool('a'), prompt('p'), prompt('q'), tool('b')])
    assert.deepEqual([catalog.revision, catalog.itemsRevision, added], [2, 2, ['prompt:s:q', 'b']])
  })
})
