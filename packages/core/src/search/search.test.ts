import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createGate } from '../gate/gate.ts'
import { memoryAvailability } from '../memory/availability.ts'
import type { Source } from '../tools/catalog.ts'
import { defineTool, type Tool, type ToolDefinition } from '../tools/tool.ts'
import { type ToolIndex, toolIndexOf } from './index-tools.ts'
import type { SearchOptions } from './search.ts'

const object = (...names: readonly string[]) => ({
  type: 'object',
  properties: Object.fromEntries(names.map((name) => [name, { type: 'string' }])),
})

const DEFINITIONS: readonly ToolDefinition[] = [
  { namespace: 'files', name: 'read_file', description: 'Gives the text of a document.', inputSchema: object('path') },
  { namespace: 'files', name: 'deleteFile', description: 'Removes a document.', tags: ['danger'] },
  {
    namespace: 'mail',
    name: 'send',
    title: 'Send a message',
    description: 'Sends mail.',
    inputSchema: object('recipient', 'bodyText'),
    outputSchema: object('messageId'),
  },
  { name: 'zeitgeist', description: 'Größe und Gewicht.' },
]

const make = (definitions: readonly ToolDefinition[] = DEFINITIONS): readonly Tool[] =>
  definitions.map((definition) => defineTool(definition))

async function search(query: string, options?: SearchOptions, tools: readonly Tool[] = make()): Promise<string[]> {
  return (await createGate({ tools }).view({})).search(query, options).map(({ id }) => id)
}

describe('view.search', () => {
  it('finds by id, title, description, parameter names and tags, in any case and spelling', async () => {
    assert.deepEqual(await search('READ file '), ['files:read_file', 'files:deleteFile'])
    assert.deepEqual(await search('message '), ['mail:send'])
    assert.deepEqual(await search('documents '), ['files:deleteFile', 'files:read_file'])
    assert.deepEqual(await search('body text recipient'), ['mail:send', 'files:read_file'])
    assert.deepEqual(await search('danger'), ['files:deleteFile'])
    assert.deepEqual(await search('grosse'), ['zeitgeist'])
    assert.deepEqual(await search('mail:send'), ['mail:send'])
  })

  it('counts a name for more than a description', async () => {
    const tools = make([
      { name: 'a', description: 'About a parcel.' },
      { name: 'parcel' },
      { name: 'z', title: 'Parcel' },
    ])
    assert.deepEqual(await search('parcel', {}, tools), ['parcel', 'z', 'a'])
  })

  it('takes the last word for a beginning, until something follows it', async () => {
    assert.deepEqual(await search('zeit'), ['zeitgeist'])
    assert.deepEqual(await search('zeit '), [])
    assert.deepEqual(await search('zeit send'), ['mail:send'])
    assert.deepEqual(await search('z'), [], 'one letter begins too many words')
  })

  it('returns nothing for a query without a word, and for one without a match', async () => {
    for (const query of ['', '   ', '?!', '🙂', '\u0301', 'xyzzy', '__proto__', '\uffff'])
      assert.deepEqual(await search(query), [], JSON.stringify(query))
  })

  it('reads words such as "the" where there are no others', async () => {
    const tools = make([{ name: 'for_each' }, { name: 'read', description: 'For you.' }])
    assert.deepEqual(await search('for', {}, tools), ['for_each'])
    assert.deepEqual(await search('for reading', {}, tools), ['read'])
  })

  it('puts equal tools in the order of their ids, by code point', async () => {
    const names = ['\u{1f600}b', '\uffeeb', 'bb', 'ab', 'cb']
    const tools = make(names.map((name) => ({ name, description: 'Alike.' })))
    const expected = ['ab', 'bb', 'cb', '\uffeeb', '\u{1f600}b']
    assert.deepEqual(await search('alike', {}, tools), expected)
    assert.deepEqual(await search('alike', {}, tools.toReversed()), expected)
    assert.deepEqual(await search('alike', { limit: 2 }, tools), ['ab', 'bb'])
  })

  it('shows as much of a tool as requested', async () => {
    const view = await createGate({ tools: make() }).view({})
    const [names] = view.search('send', { detail: 'names' })
    assert.deepEqual(Object.keys(names ?? {}), ['id', 'kind', 'score', 'title', 'tags'])
    assert.ok((names?.score ?? 0) > 0)
    const [described] = view.search('send')
    assert.deepEqual(described, { ...names, description: 'Sends mail.' })
    const [full] = view.search('send', { detail: 'schemas' })
    const { inputSchema, outputSchema } = view.get('mail:send') as Tool
    assert.deepEqual(full, { ...described, inputSchema, outputSchema })
    assert.deepEqual(Object.keys(view.search('deleteFile', { detail: 'schemas' })[0] ?? {}), [
      'id',
      'kind',
      'score',
      'tags',
      'description',
      'inputSchema',
    ])
  })

  it('carries the tags of each hit, and cuts long descriptions', async () => {
    const tools = make([{ name: 'parcel', tags: ['danger', 'post'], description: `${'x'.repeat(398)}\u{1f4e6}yz` }])
    const view = await createGate({ tools }).view({})
    const [hit] = view.search('parcel')
    assert.deepEqual([hit?.tags, hit?.description], [['danger', 'post'], `${'x'.repeat(398)}…`])
    assert.equal(view.search('parcel', { maxDescription: 3 })[0]?.description, 'xx…')
    assert.equal(view.search('parcel', { maxDescription: 1000 })[0]?.description?.length, 402)
    for (const maxDescription of [0, 1.5, Number.NaN])
      assert.throws(() => view.search('parcel', { maxDescription }), { code: 'query_invalid' })
  })

  it('returns ten hits, or 1 to 100', async () => {
    const tools = make(Array.from({ length: 120 }, (_, i) => ({ name: `tool_${i}` })))
    assert.equal((await search('tool', {}, tools)).length, 10)
    assert.equal((await search('tool', { limit: 1 }, tools)).length, 1)
    assert.equal((await search('tool', { limit: 100 }, tools)).length, 100)
  })

  it('refuses invalid values and names them', async () => {
    const view = await createGate({ tools: make() }).view({})
    for (const limit of [0, -1, 101, 1.5, Number.NaN, '5' as unknown as number])
      assert.throws(() => view.search('read', { limit }), { code: 'query_invalid', message: /limit .* 1 to 100/ })
    assert.throws(() => view.search('read', { detail: 'all' as 'names' }), { code: 'query_invalid', message: /detail/ })
    assert.throws(() => view.search(7 as unknown as string), { code: 'query_invalid', message: /query/ })
  })

  it('reads the first 512 characters of a query and 24 of its terms', async () => {
    assert.deepEqual(await search(`${' '.repeat(500)}zeitgeist`), ['zeitgeist'])
    assert.deepEqual(await search(`${' '.repeat(512)}zeitgeist`), [])
    const others = Array.from({ length: 24 }, (_, i) => `q${'abcdefghijklmnopqrstuvwxyz'[i]}x`).join(' ')
    assert.deepEqual(await search(`${others} danger `), [])
    assert.deepEqual(await search(`danger ${others} `), ['files:deleteFile'])
  })

  it('can be taken apart from its view, and its answers cannot change what others get', async () => {
    const view = await createGate({ tools: make() }).view({})
    const { search: find } = view
    const [hit] = find('send', { detail: 'schemas' })
    assert.throws(() => Object.assign(hit?.inputSchema ?? {}, { type: 'null' }), TypeError)
    assert.deepEqual(find('send'), view.search('send'))
  })

  it('is of the view: of its caller, its visibility, its step and its narrower policy', async () => {
    const gate = createGate({
      tools: make(),
      policy: { deny: [{ match: 'tag:danger', unless: "'ops' in caller.roles" }] },
    })
    const ids = (view: Awaited<ReturnType<typeof gate.view>>) => view.search('file', {}).map(({ id }) => id)
    const ops = await gate.view({ roles: ['ops'] })
    assert.deepEqual(ids(await gate.view({ roles: [] })), ['files:read_file'])
    assert.deepEqual(ids(ops), ['files:deleteFile', 'files:read_file'])
    assert.deepEqual(ids(await gate.view({ roles: ['ops'] }, { visibility: ['files:deleteFile'] })), [
      'files:deleteFile',
    ])
    assert.deepEqual(ids(ops.narrow({ activeTools: ['files:read_file'] })), ['files:read_file'])
    assert.deepEqual(ids(ops.narrow({ policy: { deny: ['files:*'] } })), [])
    assert.deepEqual(
      ids(await gate.view({ roles: ['ops'] }, { visibility: () => Promise.reject(new Error('down')) })),
      [],
    )
  })

  it('no longer finds tools that policy, catalog or availability now refuse, also in open views', async () => {
    let offered = make()
    const listeners = new Set<() => void>()
    const source: Source = {
      name: 'live',
      tools: () => offered,
      subscribe(listener) {
        listeners.add(listener)
        return () => listeners.delete(listener)
      },
    }
    const availability = memoryAvailability({ mail: { available: true } })
    const gate = createGate({
      sources: [source],
      groups: { mail: { tools: ['mail:*'], visibility: 'conditional' } },
      availability,
    })
    const view = await gate.view({})
    const found = () =>
      view
        .search('file send', { limit: 100 })
        .map(({ id }) => id)
        .toSorted()
    assert.deepEqual(found(), ['files:deleteFile', 'files:read_file', 'mail:send'])
    gate.setPolicy({ deny: ['tag:danger'] })
    assert.deepEqual(found(), ['files:read_file', 'mail:send'])
    availability.set('mail', { available: false, reason: 'down' })
    assert.deepEqual(found(), ['files:read_file'])
    offered = offered.filter(({ id }) => id !== 'files:read_file')
    for (const listener of listeners) listener()
    assert.deepEqual(found(), [])
    gate.setPolicy([])
    availability.set('mail', { available: true })
    assert.deepEqual(found(), ['files:deleteFile', 'mail:send'], 'what is allowed again is found again')
  })
})

describe('toolIndexOf', () => {
  it('is made once for a snapshot, however many views and callers search it', async () => {
    const gate = createGate({ tools: make() })
    const snapshot = gate.catalog.snapshot()
    const index: ToolIndex = toolIndexOf(snapshot)
    for (const user of ['vera', 'adam']) (await gate.view({ user })).search('file')
    assert.equal(toolIndexOf(snapshot), index)
    assert.equal(index.starts.length, index.terms.length + 1)
    assert.equal(index.starts.at(-1), index.tools.length)
    assert.deepEqual(index.terms, index.terms.toSorted())
  })
})
