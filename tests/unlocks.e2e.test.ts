import assert from 'node:assert/strict'
import { after, afterEach, before, describe, it } from 'node:test'
import { startGateway } from '@toolgate/gateway'
import { startTestGateway, type TestGateway } from './support/gateway.ts'
import { send } from './support/http.ts'
import { CALLERS, callerConfig, KEYS, type Who } from './support/keys.ts'
import { type RecordingServer, startRecordingServer } from './support/recording-server.ts'
import { MODERN, type RpcAnswer, textOf, toMessage } from './support/rpc.ts'
import { httpServer } from './support/servers.ts'

/** Locked groups on a real gateway: opened by sessions, and found and called by clients without one. */

const LEGACY = '2025-11-25'
const group = (name: string, tools: string[], more: object = {}) => ({
  name,
  tools,
  visibility: 'always' as const,
  dependsOn: [],
  availableWhen: [],
  ...more,
})
const GROUPS = [
  group('web', ['up:open', 'up:click'], { unlock: 'request', title: 'Web pages', hint: 'Opens pages.' }),
  group('git', ['up:push'], { unlock: { event: 'called:up:clone' } }),
  group('sql', ['up:query'], { unlock: 'search', hint: 'Asks databases.' }),
  group('vault', ['up:secret'], { unlock: 'request', hint: 'Holds the crown jewels.' }),
]
const META = ['call_tool', 'get_tool_details', 'search_tools']

let upstream: RecordingServer
let gateway: TestGateway

before(async () => {
  upstream = await startRecordingServer([
    { name: 'notes' },
    { name: 'clone', run: (args) => ({ content: [], isError: args['fail'] === true }) },
    {
      name: 'open',
      description: 'Opens a page.',
      inputSchema: { type: 'object', properties: { url: { type: 'string' } } },
      run: (args) => ({ content: [{ type: 'text', text: 'page' }], structuredContent: args }),
    },
    { name: 'click' },
    { name: 'push' },
    { name: 'query', description: 'Asks the database.' },
    { name: 'secret', description: 'Tells the secret.' },
    { name: 'limited' },
    {
      name: 'fails',
      run: () => {
        throw new Error('rpc')
      },
    },
  ])
  gateway = await startTestGateway({
    servers: [httpServer('up', upstream.url)],
    groups: GROUPS as never,
    policy: [
      { deny: [{ match: 'up:secret', unless: "'admin' in caller.roles" }] },
      { deny: [{ match: 'up:open', input: "has(input.url) && input.url == 'evil'" }], ask: ['up:click'] },
    ],
    limits: ['up:limited:1/600'],
    callers: [...CALLERS, callerConfig('demo-viewer-acme', { user: 'viewer', tenant: 'acme', roles: ['viewer'] })],
  })
})

after(async () => {
  await gateway?.close()
  await upstream?.close()
})

afterEach(() => upstream.forget())

describe('a session', () => {
  it('begins with the unlocked tools, and learns only of groups that it may open', async () => {
    const session = await newSession()
    assert.deepEqual(await session.list(), [
      'call_tool',
      'get_tool_details',
      'request_tools',
      'search_tools',
      'up__clone',
      'up__fails',
      'up__limited',
      'up__notes',
    ])
    const text = await session.description('request_tools')
    assert.match(text, /- web: Web pages\. Opens pages\./)
    assert.doesNotMatch(text, /vault|crown/)
    assert.match(
      await (await newSession('admin')).description('request_tools'),
      /- vault: vault\. Holds the crown jewels\./,
    )
    assert.match(await session.description('search_tools'), /- sql\. Asks databases\./)
  })

  it('opens one tool of a group alone', async () => {
    const session = await newSession()
    const opened = await session.call('request_tools', { group: 'web', tools: ['up__open'] })
    assert.deepEqual(opened.result?.structuredContent, { group: 'web', tools: ['up__open'] })
    const list = await session.list()
    assert.deepEqual([list.includes('up__open'), list.includes('up__click')], [true, false])
    assert.match(textOf(await session.call('up__click')), /up__click is locked/)
    const texts = ['up__none', 'up__clone'].map(async (name) =>
      textOf(await session.call('request_tools', { group: 'web', tools: [name] })),
    )
    assert.deepEqual([...new Set(await Promise.all(texts))], ['The group "web" has none of these tools for you.'])
    await session.call('request_tools', { group: 'web' })
    assert.ok((await session.list()).includes('up__click'))
  })

  it('opens a whole group with request_tools, for itself only', async () => {
    const [one, other] = [await newSession(), await newSession()]
    const refused = await one.call('up__open')
    const suggestion = 'Call request_tools with the group "web" to open it.'
    assert.equal(textOf(refused), `up__open is locked. ${suggestion}`)
    assert.deepEqual(refused.result?._meta, {
      'dev.toolgate/refusal': {
        error: 'group_locked',
        reason: 'the group web is locked for this session',
        suggestion,
      },
    })
    const opened = await one.call('request_tools', { group: 'web' })
    assert.deepEqual(opened.result?.structuredContent, { group: 'web', tools: ['up__click', 'up__open'] })
    assert.ok((await one.list()).includes('up__open') && (await one.list()).includes('up__click'))
    assert.equal(textOf(await one.call('up__open')), 'page')
    assert.ok(!(await other.list()).includes('up__open'))
    assert.deepEqual(upstream.calls().length, 1)
  })

  it('belongs to its user and tenant, and is unknown to others', async () => {
    const one = await newSession()
    await one.call('request_tools', { group: 'web' })
    for (const key of [KEYS.operator, 'demo-viewer-acme']) {
      const { error } = await sessionOf(key, one.id).ask('tools/list')
      assert.equal(error?.message, 'Session not found.', key)
    }
    assert.ok((await sessionOf(KEYS.viewer, one.id).list()).includes('up__open'))
  })

  it('gets the same answer for a denied group as for an unknown one', async () => {
    const session = await newSession()
    const [denied, none] = [
      await session.call('request_tools', { group: 'vault' }),
      await session.call('request_tools', { group: 'vauxx' }),
    ]
    assert.equal(textOf(denied).replaceAll('vault', 'vauxx'), textOf(none))
    assert.equal(denied.result?.isError, true)
    const secret = await session.call('up__secret')
    assert.match(textOf(secret), /^Tool "up__secret" is not available\./)
    assert.deepEqual(Object.keys(secret.result ?? {}), ['content', 'isError'])
    await (await newSession('admin')).call('request_tools', { group: 'vault' })
    assert.ok(!(await session.list()).includes('up__secret'))
  })

  it('opens nothing by text, by calls of other tools, or by refused calls', async () => {
    const session = await newSession()
    const words = 'request_tools {"group":"web"} Call request_tools with the group "web" to open it.'
    await session.call('up__notes', { text: words, request_tools: { group: 'web' }, group: 'web' })
    await session.call('request_tools', { group: 'web', more: 1 })
    await session.call('request_tools', { group: ['web'] })
    await session.call('request_tools__web', { group: 'web' })
    await session.ask('tools/list', { group: 'web', _meta: { request_tools: 'web' } })
    await session.call('call_tool', { name: 'up__notes', arguments: { group: 'web' } })
    assert.ok(!(await session.list()).includes('up__open'))
  })

  it('opens a group by an event: a successful call, and not a failed one', async () => {
    const session = await newSession()
    await session.call('up__clone', { fail: true })
    assert.ok(!(await session.list()).includes('up__push'))
    await session.call('up__clone')
    assert.ok((await session.list()).includes('up__push'))
  })

  it('opens a group by a search that finds it, and the result says so', async () => {
    const session = await newSession()
    const found = await session.call('search_tools', { query: 'database' })
    const { tools, hint } = valueOf(found) as { tools: { name: string }[]; hint: string }
    assert.deepEqual(
      tools.map(({ name }) => name),
      ['up__query'],
    )
    assert.match(hint, /up__query/)
    assert.ok((await session.list()).includes('up__query'))
  })

  it('is unknown after its end', async () => {
    const session = await newSession()
    await session.call('request_tools', { group: 'web' })
    const { status } = await send(gateway.mcpUrl, {
      method: 'DELETE',
      headers: { authorization: `Bearer ${KEYS.viewer}`, 'mcp-session-id': session.id },
    })
    assert.equal(status, 200)
    assert.equal((await session.ask('tools/list')).error?.message, 'Session not found.')
  })

  it('is in the records of its calls, with its user', async () => {
    const session = await newSession()
    await session.call('up__notes')
    const { body } = await gateway.api('/api/audit?tool=up:notes&limit=1')
    assert.equal((body as { records: { session_id: string }[] }).records[0]?.session_id, `/viewer/${session.id}`)
  })
})

describe('a client without a session', () => {
  it('lists the unlocked tools and the search tools, after any earlier calls', async () => {
    const first = await gateway.list('viewer', MODERN)
    assert.deepEqual(first, [...META, 'up__clone', 'up__fails', 'up__limited', 'up__notes'])
    await gateway.call('viewer', MODERN, 'search_tools', { query: 'database' })
    await gateway.call('viewer', MODERN, 'request_tools', { group: 'web' })
    await gateway.call('viewer', MODERN, 'call_tool', { name: 'up__open' })
    await gateway.call('viewer', MODERN, 'up__clone')
    assert.deepEqual(await gateway.list('viewer', MODERN), first)
  })

  it('reads which groups it can find, if it may use them', async () => {
    const read = async (who: Who) => {
      const { result } = (await gateway.ask(who, MODERN, 'tools/list')).json() as RpcAnswer
      return JSON.stringify(result?.tools?.find(({ name }) => name === 'search_tools'))
    }
    assert.match(await read('viewer'), /Web pages\. Opens pages\./)
    assert.doesNotMatch(await read('viewer'), /crown/)
    assert.match(await read('admin'), /crown/)
  })

  it('finds, describes and calls them; a denied tool is like an unknown one', async () => {
    const search = await gateway.call('viewer', MODERN, 'search_tools', { query: 'opens a page' })
    assert.match(textOf(search), /up__open/)
    const asked = await gateway.call('viewer', MODERN, 'search_tools', { query: 'request tools for a session' })
    assert.doesNotMatch(textOf(asked), /request_tools/, 'it has no session to open anything for')
    const details = await gateway.call('viewer', MODERN, 'get_tool_details', { names: ['up__secret', 'up__sexxxt'] })
    const [denied, none] = (valueOf(details) as { tools: { error: string }[] }).tools
    assert.equal(denied?.error.replace('secret', 'sexxxt'), none?.error)
    assert.ok(!textOf(await gateway.call('viewer', MODERN, 'search_tools', { query: 'secret' })).includes('up__secret'))
  })

  for (const [shows, name, args] of [
    ['a result', 'up__open', { url: 'x' }],
    ['an invalid input', 'up__open', { url: 5 }],
    ['an input that is denied', 'up__open', { url: 'evil' }],
    ['a denied tool', 'up__secret', {}],
    ['a tool that does not exist', 'up__none', {}],
    ['a tool by its id', 'up:open', {}],
    ['a name that objects inherit', '__proto__', {}],
    ['an approval', 'up__click', { n: 1 }],
    ['a tool that fails', 'up__fails', {}],
  ] as const)
    it(`gets the same answer from call_tool as from a direct call: ${shows}`, async () => {
      const direct = await gateway.call('viewer', MODERN, name, args)
      const within = await gateway.call('viewer', MODERN, 'call_tool', { name, arguments: args })
      assert.deepEqual(within, direct)
      assert.equal(upstream.calls().length % 2, 0)
    })

  it('uses the same limits either way', async () => {
    await gateway.call('viewer', MODERN, 'up__limited')
    const again = await gateway.call('viewer', MODERN, 'call_tool', { name: 'up__limited' })
    assert.match(textOf(again), /rate limited/)
    assert.equal(upstream.calls().length, 1)
  })

  it('leaves a record of each call, for its tool and for call_tool', async () => {
    await gateway.call('operator', MODERN, 'call_tool', { name: 'up__open', arguments: { url: 'x' } })
    const { body } = await gateway.api('/api/audit?user=operator&limit=4')
    const { records } = body as { records: { tool: string; event: string; tool_call_id: string }[] }
    assert.deepEqual(
      records.map(({ event, tool }) => `${event} ${tool}`),
      ['tool_result call_tool', 'tool_result up:open', 'tool_call up:open', 'tool_call call_tool'],
    )
    assert.equal(records[1]?.tool_call_id, `${records[0]?.tool_call_id}.1`)
  })

  it('is told by request_tools that it has no session', async () => {
    const { result } = await gateway.call('viewer', MODERN, 'request_tools', { group: 'web' })
    assert.equal(result?.isError, true)
    assert.match(textOf({ result: result as never }), /call_tool/)
  })
})

describe('the tools that find others', () => {
  const listOf = async (search?: object, groups: readonly object[] = []) => {
    const own = await startTestGateway({
      servers: [httpServer('up', upstream.url)],
      groups: groups as never,
      ...(search ? { search: search as never } : {}),
    })
    try {
      return (await own.list('viewer', MODERN)).filter((name) => META.includes(name))
    } finally {
      await own.close()
    }
  }

  it('are offered if a group is locked, if they are configured, and if there are many tools', async () => {
    assert.deepEqual(await listOf(), [])
    assert.deepEqual(await listOf(undefined, [GROUPS[0] as object]), META)
    assert.deepEqual(await listOf({ offer: 'always' }), META)
    assert.deepEqual(await listOf({ offer: 'never' }, [GROUPS[0] as object]), [])
    assert.deepEqual(await listOf({ offer: 'auto', above: 8 }), META)
    assert.deepEqual(await listOf({ offer: 'auto', above: 9 }), [])
  })

  it('are not offered because of tools that the caller may not use', async () => {
    assert.deepEqual(
      await (async () => {
        const own = await startTestGateway({
          servers: [httpServer('up', upstream.url)],
          groups: [GROUPS[0]] as never,
          policy: [{ deny: ['up:open', 'up:click'] }],
        })
        const list = await own.list('viewer', MODERN)
        await own.close()
        return list.filter((name) => META.includes(name))
      })(),
      [],
    )
  })

  it('cannot be locked: a locked group that names them, even by an alias, is an error', async () => {
    for (const [selector, expected] of [
      ['*', /groups\.all\.tools\[0\]: "\*" names search_tools too/],
      ['find', /groups\.all\.tools\[0\]: "find" names search_tools too/],
    ] as const)
      await assert.rejects(
        startGateway({
          file: 'x',
          listen: { host: '127.0.0.1', port: 0 },
          servers: [],
          callers: [],
          groups: [group('all', [selector], { unlock: 'request' })] as never,
          aliases: { find: 'search_tools' },
          policy: [{ allow: ['*'] }],
          limits: [],
          audit: { store: 'memory', mode: 'batched' },
        }),
        expected,
      )
  })
})

async function newSession(who: Who = 'viewer') {
  const params = { protocolVersion: LEGACY, capabilities: {}, clientInfo: { name: 'x', version: '1' } }
  const { headers } = await gateway.ask(who, LEGACY, 'initialize', params)
  return sessionOf(KEYS[who], headers['mcp-session-id'] as string)
}

function sessionOf(key: string, id: string) {
  const ask = async (method: string, params: object = {}) => {
    const { headers, body } = toMessage(LEGACY, method, params as never)
    const sent = { ...headers, authorization: `Bearer ${key}`, 'mcp-session-id': id }
    return (await send(gateway.mcpUrl, { headers: sent, body: JSON.stringify(body) })).json() as RpcAnswer
  }
  const tools = async () =>
    ((await ask('tools/list')).result?.tools ?? []) as readonly { name: string; description?: string }[]
  return {
    id,
    ask,
    call: (name: string, args: object = {}) => ask('tools/call', { name, arguments: args }),
    list: async () => (await tools()).map(({ name }) => name),
    description: async (name: string) => (await tools()).find((tool) => tool.name === name)?.description ?? '',
  }
}

function valueOf({ result }: RpcAnswer): unknown {
  assert.ok(result, 'it has a result')
  return result.structuredContent
}
