import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createGate, defineTool, type Tool } from '@toolgate/core'
import { definePrompt, defineResource, defineTemplate } from '@toolgate/core/toolset'
import { formatSnapshot, itemsOfSnapshot, takeSnapshot, toSnapshot } from './snapshot.ts'

const TOOLS: readonly Tool[] = [
  defineTool({
    namespace: 'mail',
    name: 'send',
    title: 'Send',
    description: 'Sends a message',
    inputSchema: { type: 'object', properties: { to: { type: 'string' } }, required: ['to'] },
    outputSchema: { type: 'object' },
    tags: ['egress'],
    category: 'mail',
    requiredScopes: ['mail:send'],
    groups: ['web'],
    labels: ['private'],
    addressees: ['to', 'cc'],
    annotations: { openWorldHint: true },
    hintsTrusted: false,
    original: { title: 'SEND', description: 'own', annotations: {} },
    fields: { execution: { taskSupport: 'optional' } },
    strict: true,
  }),
  defineTool({ name: 'plain', trusted: true }),
  defineTool({ namespace: 'files', name: 'read' }),
]

const ITEMS: readonly Tool[] = [
  defineResource({ namespace: 'files', uri: 'file:///a.md', mimeType: 'text/markdown', size: 3, tags: ['doc'] }),
  defineTemplate({ namespace: 'files', uriTemplate: 'file:///{+path}', name: 'any', labels: ['private'] }),
  definePrompt({ namespace: 'git', name: 'review', arguments: [{ name: 'branch', required: true }] }),
]

/** Without what a snapshot does not keep. */
function comparable({ execute: _e, icons: _i, _meta: _m, ...rest }: Tool): unknown {
  return { ...rest, inputSchema: { ...rest.inputSchema } }
}

describe('takeSnapshot', () => {
  const gate = createGate({
    sources: [{ name: 'all', tools: () => [...TOOLS, ...ITEMS], subscribe: () => () => {} }],
    groups: { web: { tools: ['mail:*'], unlock: 'request', hint: 'mail' } },
    onWarning: () => {},
  })

  it('has every item in the order of ids, and none of Toolgate’s own tools', () => {
    assert.ok(gate.catalog.snapshot().has('request_tools'))
    assert.deepEqual(
      takeSnapshot(gate.catalog).items.map(({ id }) => id),
      [
        'files:read',
        'mail:send',
        'plain',
        'prompt:git:review',
        'resource:files:file:///a.md',
        'resource:files:file:///{+path}',
      ],
    )
  })

  it('is made into the same items again', () => {
    const again = itemsOfSnapshot(JSON.parse(formatSnapshot(takeSnapshot(gate.catalog))))
    const byId = new Map([...TOOLS, ...ITEMS].map((tool) => [tool.id, tool]))
    assert.equal(again.length, byId.size)
    for (const tool of again) assert.deepEqual(comparable(tool), comparable(byId.get(tool.id) as Tool), tool.id)
  })

  it('has the same bytes, whatever the order of tools and of the keys in a schema', () => {
    const schema = (properties: object) => ({ type: 'object', properties })
    const a = defineTool({ name: 'a', inputSchema: schema({ x: { type: 'string', title: 'X' }, y: {} }) })
    const same = defineTool({ name: 'a', inputSchema: schema({ y: {}, x: { title: 'X', type: 'string' } }) })
    const b = defineTool({ name: 'b' })
    assert.equal(formatSnapshot(toSnapshot([a, b])), formatSnapshot(toSnapshot([b, same])))
  })

  it('leaves defaults out', () => {
    assert.deepEqual(toSnapshot([TOOLS[2] as Tool]).items, [{ id: 'files:read', namespace: 'files', name: 'read' }])
  })
})

describe('itemsOfSnapshot', () => {
  it('runs what it is given in the place of each tool', async () => {
    const ran: unknown[] = []
    const items = itemsOfSnapshot(toSnapshot([...TOOLS, ...ITEMS]), (tool, input) => ran.push([tool, input]))
    const view = await createGate({ tools: items, groups: { web: { tools: [] } }, policy: {} }).view({ user: 'vera' })
    await view.call({ tool: 'files:read', input: { path: '/a' } })
    assert.deepEqual(ran, [['files:read', { path: '/a' }]])
  })

  const wrong: readonly (readonly [string, unknown, RegExp])[] = [
    ['a list', [], /snapshot: must be an object/],
    ['another version', { version: 2, items: [] }, /snapshot.version: found 2, expected 1/],
    ['no list of items', { version: 1, items: {} }, /snapshot.items: must be a list/],
    ['an unknown field', { version: 1, tools: [] }, /snapshot.tools: unknown field/],
    [
      'a misspelt field of an item',
      { version: 1, items: [{ id: 'a', name: 'a', tag: ['x'] }] },
      /items\[0\].tag: unknown field; did you mean "tags"/,
    ],
    ['tags that are no list', { version: 1, items: [{ id: 'a', name: 'a', tags: 'x' }] }, /items\[0\]: .*tags must be/],
    [
      'an id that is another’s',
      { version: 1, items: [{ id: 'b', name: 'a' }] },
      /items\[0\].id: must be "a", as its name is/,
    ],
    ['an unknown kind', { version: 1, items: [{ id: 'a', name: 'a', kind: 'app' }] }, /found "app", expected one of/],
    ['nothing', null, /snapshot: must be an object/],
  ]
  for (const [what, value, message] of wrong)
    it(`refuses ${what}`, () => assert.throws(() => itemsOfSnapshot(value), { message }))
})
