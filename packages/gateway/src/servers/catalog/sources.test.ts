import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createGate, type Tool } from '@toolgate/core'
import type { ServerConfig } from '../../config/config.ts'
import type { UpstreamTool, Upstream, UpstreamCall, UpstreamItems } from '../../model/upstream.ts'
import { HeldCalls } from '../asks/held-calls.ts'
import { ServerAsks } from '../asks/server-asks.ts'
import { RunningCalls } from '../asks/relayed-call.ts'
import { UpstreamSource } from './sources.ts'

const SERVER = {
  name: 'files',
  trustHints: false,
  tools: new Map(),
  offers: ['tools', 'resources', 'prompts'],
} as unknown as ServerConfig
const listed = (name: string, more: Partial<UpstreamTool> = {}): UpstreamTool => ({
  name,
  inputSchema: { type: 'object' },
  ...more,
})

const NOTHING: UpstreamItems = { tools: [], resources: [], templates: [], prompts: [] }

/** An upstream whose list a test sets, and which writes down its calls. */
function fakeUpstream(...tools: UpstreamTool[]) {
  const listeners = new Set<() => void>()
  const calls: UpstreamCall[] = []
  const upstream = {
    name: 'files',
    state: { status: 'ready', rejected: [] },
    items: { ...NOTHING, tools } as UpstreamItems,
    subscribe(listener: () => void) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    call: async (call: UpstreamCall) => {
      calls.push(call)
      return { content: [] }
    },
  }
  const tell = () => {
    for (const listener of listeners) listener()
  }
  return {
    upstream: upstream as unknown as Upstream,
    calls,
    listeners,
    tell,
    set(...next: UpstreamTool[]) {
      upstream.items = { ...upstream.items, tools: next }
      tell()
    },
    list(lists: Partial<UpstreamItems>) {
      upstream.items = { ...upstream.items, ...lists }
      tell()
    },
  }
}

const sourceOf = (upstream: Upstream, server = SERVER) =>
  new UpstreamSource(server, upstream, {
    asks: new ServerAsks({ server, isOwn: () => false, record: () => {}, held: new HeldCalls() }),
    running: new RunningCalls(),
  })
const byId = (tools: Iterable<Tool>) => new Map([...tools].map((tool) => [tool.id, tool]))

describe('UpstreamSource', () => {
  it('returns the tools that the upstream lists', () => {
    const { upstream } = fakeUpstream(listed('read'), listed('write'))
    assert.deepEqual([...byId(sourceOf(upstream).tools()).keys()], ['files:read', 'files:write'])
  })

  it('calls the upstream with its own tool name, the input and the abort signal', async () => {
    const { upstream, calls } = fakeUpstream(listed('read.file'))
    const [tool] = sourceOf(upstream).tools()
    const onProgress = () => {}
    const context = { callId: '1', tool, caller: {}, aborted: false, onProgress }
    await tool?.execute?.({ path: 'a' } as never, context as never)
    const [{ method, params, caller, signal, onProgress: given } = assert.fail()] = calls
    assert.deepEqual(
      { method, params, caller, signal, given },
      {
        method: 'tools/call',
        params: { name: 'read.file', arguments: { path: 'a' } },
        caller: {},
        signal: context,
        given: onProgress,
      },
    )
  })

  it('returns the same object for an unchanged tool when another changes', () => {
    const { upstream, set } = fakeUpstream(listed('read'), listed('write'))
    const source = sourceOf(upstream)
    const before = byId(source.tools())
    set(listed('write', { description: 'new' }), listed('read'), listed('move'))
    const after = byId(source.tools())
    assert.equal(after.get('files:read'), before.get('files:read'))
    assert.notEqual(after.get('files:write'), before.get('files:write'))
    assert.deepEqual([...after.keys()].toSorted(), ['files:move', 'files:read', 'files:write'])
  })

  it('returns another object for a tool that changed in any field, known or not', () => {
    for (const change of [
      { title: 'x' },
      { inputSchema: { type: 'object', required: ['path'] } },
      { outputSchema: { type: 'object' } },
      { annotations: { readOnlyHint: true } },
      { 'x-unknown': 1 },
    ] as Partial<UpstreamTool>[]) {
      const { upstream, set } = fakeUpstream(listed('read'))
      const source = sourceOf(upstream)
      const [before] = source.tools()
      set(listed('read', change))
      assert.notEqual([...source.tools()][0], before, JSON.stringify(change))
    }
  })

  it('returns a new object for a tool that was removed and came back', () => {
    const { upstream, set } = fakeUpstream(listed('read'))
    const source = sourceOf(upstream)
    const [before] = source.tools()
    set()
    assert.deepEqual([...source.tools()], [])
    set(listed('read'))
    assert.notEqual([...source.tools()][0], before)
  })

  it('leaves out an invalid tool with a reason, and returns the others', () => {
    const { upstream, set } = fakeUpstream(listed('a\nb'), listed('read'))
    const source = sourceOf(upstream)
    assert.deepEqual([...byId(source.tools()).keys()], ['files:read'])
    assert.equal(source.rejected.length, 1)
    assert.equal(source.rejected[0]?.name, 'a\nb')
    assert.match(source.rejected[0]?.reason ?? '', /must not hold spaces, control characters/)
    set(listed('read'))
    void source.tools()
    assert.deepEqual(source.rejected, [])
  })

  it('takes names that objects inherit for names like any other', () => {
    const { upstream } = fakeUpstream(...['__proto__', 'constructor', 'toString'].map((name) => listed(name)))
    const ids = [...byId(sourceOf(upstream).tools()).keys()]
    assert.deepEqual(ids, ['files:__proto__', 'files:constructor', 'files:toString'])
  })

  it('notifies the catalog of changes of the list, and not of the state alone', () => {
    const { upstream, set, tell } = fakeUpstream(listed('read'))
    const { catalog } = createGate({ sources: [sourceOf(upstream)] })
    const { revision } = catalog
    tell()
    assert.equal(catalog.revision, revision)
    set(listed('read'), listed('write'))
    assert.equal(catalog.revision, revision + 1)
    assert.deepEqual(catalog.snapshot().ids, ['files:read', 'files:write'])
    catalog.close()
  })

  it('unsubscribes', () => {
    const { upstream, listeners } = fakeUpstream()
    sourceOf(upstream).subscribe?.(() => {})()
    assert.equal(listeners.size, 0)
  })

  it('returns the other kinds beside the tools, and calls the server for them', async () => {
    const { upstream, list, calls } = fakeUpstream(listed('read'))
    const source = sourceOf(upstream)
    list({ resources: [{ uri: 'file:///a', name: 'a' }], prompts: [{ name: 'greet' }] })
    const items = byId(source.tools())
    assert.deepEqual([...items.keys()], ['files:read', 'resource:files:file:///a', 'prompt:files:greet'])
    const context = { caller: { user: 'vera' } } as never
    await items.get('resource:files:file:///a')?.execute?.({ uri: 'file:///a' } as never, context)
    await items.get('prompt:files:greet')?.execute?.({ who: 'you' } as never, context)
    await source.unlisted('file:///b')?.execute?.({ uri: 'file:///b' } as never, context)
    assert.deepEqual(
      calls.map(({ method, params, caller }) => ({ method, params, caller })),
      [
        { method: 'resources/read', params: { uri: 'file:///a' }, caller: { user: 'vera' } },
        { method: 'prompts/get', params: { name: 'greet', arguments: { who: 'you' } }, caller: { user: 'vera' } },
        { method: 'resources/read', params: { uri: 'file:///b' }, caller: { user: 'vera' } },
      ],
    )
  })

  it('has no unlisted resources where the entry offers none', () => {
    const { upstream } = fakeUpstream()
    assert.equal(sourceOf(upstream, { ...SERVER, offers: ['tools'] }).unlisted('file:///b'), undefined)
  })

  it('announces a change of any list, and only then', () => {
    const { upstream, list, tell } = fakeUpstream()
    const source = sourceOf(upstream)
    let changes = 0
    source.subscribe(() => {
      changes++
      source.tools()
    })
    tell()
    assert.equal(changes, 1)
    tell()
    assert.equal(changes, 1)
    list({ prompts: [{ name: 'greet' }] })
    assert.equal(changes, 2)
    list({ templates: [{ uriTemplate: 'file:///{a}', name: 'a' }] })
    assert.equal(changes, 3)
  })

  it('names what the catalog rejects, of every kind', () => {
    const { upstream, list } = fakeUpstream()
    const source = sourceOf(upstream)
    list({ resources: [{ uri: 'nowhere', name: 'a' }] })
    source.tools()
    assert.deepEqual(
      source.rejected.map(({ kind, name }) => `${kind} ${name}`),
      ['resource nowhere'],
    )
  })
})
