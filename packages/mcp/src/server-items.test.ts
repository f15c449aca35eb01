import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type CallContext, createGate } from '@toolgate/core'
import { toListedItem } from './listed-item.ts'
import { type ItemClaims, ServerItems } from './server-items.ts'

const RESOURCE = {
  uri: 'file:///a',
  name: 'a',
  title: 'A',
  description: 'The first.',
  mimeType: 'text/plain',
  size: 3,
  annotations: { audience: ['user'], priority: 0.5, lastModified: '2026-01-01T00:00:00Z' },
  icons: [{ src: 'https://example.com/a.png' }],
  _meta: { 'example.com/x': 1 },
  more: { kept: true },
}
const TEMPLATE = { uriTemplate: 'file:///{path}', name: 'any', mimeType: 'text/plain', more: 1 }
const PROMPT = {
  name: 'greet',
  title: 'Greet',
  arguments: [{ name: 'who', description: 'Whom.', required: true }],
  _meta: { 'example.com/y': 2 },
}
const LISTS = { resources: [RESOURCE], templates: [TEMPLATE], prompts: [PROMPT] }

function serverItems(claims: Partial<ItemClaims> = {}) {
  const calls: unknown[] = []
  const items = new ServerItems({
    ...claims,
    namespace: 'files',
    read: (uri) => calls.push({ uri }),
    getPrompt: (name, input) => calls.push({ name, input }),
  })
  return { items, calls }
}

describe('ServerItems', () => {
  it('has what the operator says about them, also about a resource that is not listed', () => {
    const { items } = serverItems({
      resources: [
        ['file:///*', { tags: ['disk'], requiredScopes: ['files'] }],
        ['file:///a', { category: 'first', requiredScopes: ['a'] }],
        ['http://h/Secret_%28x%29*', { requiredScopes: ['secret'] }],
      ],
      prompts: [['gre*', { tags: ['talk'] }]],
    })
    items.read(LISTS)
    const said = items.items.map(({ kind, tags, requiredScopes, category }) => [kind, tags, requiredScopes, category])
    assert.deepEqual(said, [
      ['resource', ['disk'], ['a', 'files'], 'first'],
      ['template', ['disk'], ['files'], undefined],
      ['prompt', ['talk'], [], undefined],
    ])
    assert.deepEqual(items.unlisted('file:///other').requiredScopes, ['files'])
    assert.deepEqual(items.unlisted('http://other/').requiredScopes, [])
    for (const uri of ['http://h/Secret_(x)', 'http://h/Secret_%28x)', 'http://h/Secret_(x)?a'])
      assert.deepEqual(items.unlisted(uri).requiredScopes, ['secret'], uri)
  })

  it('has what the server lists, and lists every field again', () => {
    const { items } = serverItems()
    items.read(LISTS)
    assert.deepEqual(
      items.items.map(({ id }) => id),
      ['resource:files:file:///a', 'resource:files:file:///{path}', 'prompt:files:greet'],
    )
    assert.deepEqual(
      items.items.map((item) => toListedItem(item)),
      [RESOURCE, TEMPLATE, PROMPT],
    )
  })

  it('runs them on the server: the URI as it is, the prompt by its own name', async () => {
    const { items, calls } = serverItems()
    items.read(LISTS)
    const [resource, , prompt] = items.items
    await resource?.execute?.({ uri: 'file:///b' } as never, {} as CallContext)
    await prompt?.execute?.({ who: 'you' } as never, {} as CallContext)
    assert.deepEqual(calls, [{ uri: 'file:///a' }, { name: 'greet', input: { who: 'you' } }])
  })

  it('keeps an item that is listed again unchanged', () => {
    const { items } = serverItems()
    items.read(LISTS)
    const [before] = items.items
    items.read(structuredClone(LISTS))
    assert.equal(items.items[0], before)
    items.read({ ...LISTS, resources: [{ ...RESOURCE, size: 4 }] })
    assert.notEqual(items.items[0], before)
  })

  it('leaves out what is invalid or listed twice, with the reason, and keeps the rest', () => {
    const { items } = serverItems()
    items.read({
      resources: [RESOURCE, RESOURCE, { uri: 'no uri', name: 'b' }, { name: 'c' }, 7],
      templates: [
        { uriTemplate: 'file:///none', name: 'd' },
        { uriTemplate: 'file:///{path}', name: 'e', more: 'x'.repeat(70_000) },
      ],
      prompts: [{ name: '', arguments: 3 }, PROMPT],
    })
    assert.deepEqual(
      items.items.map(({ id }) => id),
      ['resource:files:file:///a', 'prompt:files:greet'],
    )
    assert.deepEqual(
      items.leftOut.map(({ kind, name }) => `${kind} ${name}`),
      [
        'resource file:///a',
        'resource no uri',
        'resource resources[3]',
        'resource resources[4]',
        'template file:///none',
        'template file:///{path}',
        'prompt ',
      ],
    )
    assert.match(items.leftOut[0]?.error.message ?? '', /listed twice/)
  })

  it('makes the resource of a URI that is not listed', async () => {
    const { items, calls } = serverItems()
    const item = items.unlisted('file:///other')
    assert.equal(item.id, 'resource:files:file:///other')
    await item.execute?.({} as never, {} as CallContext)
    assert.deepEqual(calls, [{ uri: 'file:///other' }])
  })

  it('offers its items through a gate only where a policy names them', async () => {
    const { items } = serverItems()
    items.read(LISTS)
    const gate = createGate({ tools: [], sources: [{ name: 'files', tools: () => items.items }], policy: [] })
    assert.equal(gate.catalog.items().size, 3)
    assert.deepEqual((await gate.view({ user: 'vera' })).ids, [])
    await gate.close()
  })
})
