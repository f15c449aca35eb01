import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createGate, defineTool } from '@toolgate/core'
import { createToolset } from '@toolgate/core/toolset'
import { ToolLists } from './tool-lists.ts'

const run = () => 'ran'
const TOOLS = [
  defineTool({ namespace: 'files', name: 'write', execute: run }),
  defineTool({
    namespace: 'files',
    name: 'read',
    title: 'Read a file',
    description: 'Gives the text of a file.',
    inputSchema: { type: 'object', properties: { path: { type: 'string' } }, 'x-own': [1] },
    outputSchema: { type: 'object' },
    annotations: { readOnlyHint: true },
    icons: [{ src: 'https://example.com/i.png', theme: 'dark' }],
    _meta: { 'example.com/own': 1 },
    tags: ['secret-tag'],
    requiredScopes: ['files'],
    category: 'storage',
    execute: run,
  }),
]

async function listOf(caller: object, tools = TOOLS) {
  const gate = createGate({ tools })
  return new ToolLists(gate).listed(await gate.view(caller))
}

describe('ToolLists.listed', () => {
  it('lists the tools of the view, by wire name, in the order of the ids', async () => {
    const names = (await listOf({ scopes: ['files'] })).map(({ name }) => name)
    assert.deepEqual(names, ['files__read', 'files__write'])
    assert.deepEqual(
      (await listOf({})).map(({ name }) => name),
      ['files__write'],
    )
  })

  it("shows a tool's own texts, its schema unchanged, and nothing that the operator wrote about it", async () => {
    const [read, write] = await listOf({ scopes: ['files'] })
    assert.deepEqual(read, {
      name: 'files__read',
      title: 'Read a file',
      description: 'Gives the text of a file.',
      inputSchema: { type: 'object', properties: { path: { type: 'string' } }, 'x-own': [1] },
      outputSchema: { type: 'object' },
      annotations: { readOnlyHint: true },
      icons: [{ src: 'https://example.com/i.png', theme: 'dark' }],
      _meta: { 'example.com/own': 1 },
    })
    assert.deepEqual(write, { name: 'files__write', inputSchema: { type: 'object' } })
  })

  it('shows no schema for which the SDKs’ clients reject the whole list', async () => {
    const odd = [
      ['any', {}, { type: 'object' }],
      ['union', { anyOf: [{ required: ['a'] }, { required: ['b'] }] }, { type: 'object' }],
      ['either', { type: ['object', 'null'] }, { type: 'object' }],
      ['flags', { type: 'object', properties: { a: true, b: false } }, { properties: { a: {}, b: { not: {} } } }],
    ] as const
    const tools = odd.map(([name, inputSchema]) => defineTool({ name, inputSchema, execute: run }))
    const listed = new Map((await listOf({}, tools)).map(({ name, inputSchema }) => [name, inputSchema]))
    for (const [name, inputSchema, shown] of odd) assert.deepEqual(listed.get(name), { ...inputSchema, ...shown })
  })

  it('leaves out a tool whose input is not an object, since MCP cannot call it', async () => {
    const text = defineTool({ name: 'text', inputSchema: { type: 'string' }, execute: run })
    assert.deepEqual(await listOf({}, [text]), [])
  })

  it('returns equal bytes for equal views, in any order of the tools', async () => {
    const one = JSON.stringify(await listOf({ scopes: ['files'] }))
    const other = JSON.stringify(await listOf({ scopes: ['files'] }, TOOLS.toReversed()))
    assert.equal(one, other)
  })

  it('shows no name twice, even for ids that are hard to distinguish', async () => {
    const ids: readonly (readonly [string, string])[] = [
      ['a', 'b__c'],
      ['a__b', 'c'],
      ['a_', 'b'],
      ['a', '_b'],
      ['a', 'b.c'],
      ['a', 'b/c'],
    ]
    const alike = ids.map(([namespace, name]) => defineTool({ namespace, name, execute: run }))
    const names = (await listOf({}, alike)).map(({ name }) => name)
    assert.equal(new Set(names).size, alike.length)
    for (const name of names) assert.match(name, /^[A-Za-z0-9_-]{1,64}$/)
  })
})

describe('ToolLists.names', () => {
  it('makes the names of a snapshot once', () => {
    const gate = createGate({})
    let snapshot = createToolset(TOOLS)
    const lists = new ToolLists({ ...gate, catalog: { ...gate.catalog, snapshot: () => snapshot } })
    const before = lists.names()
    assert.equal(lists.names(), before)
    snapshot = createToolset(TOOLS)
    assert.notEqual(lists.names(), before)
  })

  it('finds a tool by its wire name only', () => {
    const names = new ToolLists(createGate({ tools: TOOLS })).names()
    assert.equal(names.toId('files__read'), 'files:read')
    for (const other of ['files:read', 'files_read', 'files__read ', 'Files__read', '__proto__', 'constructor', ''])
      assert.equal(names.toId(other), undefined, other)
  })
})
