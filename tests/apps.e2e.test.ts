import assert from 'node:assert/strict'
import { request } from 'node:http'
import { after, afterEach, before, describe, it } from 'node:test'
import type { AppsBody, AuditBody, PreferencesBody } from '@toolgate/gateway'
import { startTestGateway, type TestGateway, until } from './support/gateway.ts'
import { type Answer, send } from './support/http.ts'
import { KEYS, type Who } from './support/keys.ts'
import { type RecordingServer, startRecordingServer } from './support/recording-server.ts'
import { type Era, ERAS, MODERN, type RpcAnswer, textOf, toMessage } from './support/rpc.ts'
import { httpServer } from './support/servers.ts'

/** Apps on a real gateway: each at its own address, for clients of every revision. */

const group = (name: string, tools: string[], more: object = {}) => ({
  name,
  tools,
  visibility: 'always' as const,
  dependsOn: [],
  availableWhen: [],
  ...more,
})
const app = (name: string, more: object) => ({ name, import: [], tools: [], policy: [], ...more })

let upstream: RecordingServer
let gateway: TestGateway

before(async () => {
  upstream = await startRecordingServer(
    ['open', 'submit', 'query', 'push', 'secret', 'notes'].map((name) => ({ name, description: `Does ${name}.` })),
  )
  gateway = await startTestGateway({
    servers: [httpServer('up', upstream.url)],
    groups: [
      group('web', ['up:open', 'up:submit']),
      group('sql', ['up:query'], { unlock: 'search', hint: 'Asks databases.' }),
      group('git', ['up:push'], { unlock: 'request', hint: 'Pushes.' }),
      group('vault', ['up:secret']),
    ] as never,
    apps: [
      app('research', {
        title: 'Research',
        import: [{ group: 'web' }, { group: 'sql' }],
        policy: [{ deny: [{ match: 'up:submit', unless: "'admin' in caller.roles" }] }],
        instructions: 'Cite what you found.',
      }),
      app('desk', { import: [{ group: 'git' }], tools: ['up:notes'] }),
      app('vault-only', { import: [{ group: 'vault' }] }),
    ],
    policy: [{ deny: [{ match: 'up:secret', unless: "'admin' in caller.roles" }] }],
  })
})

after(async () => {
  await gateway?.close()
  await upstream?.close()
})

afterEach(() => upstream.forget())

const RESEARCH = ['call_tool', 'get_tool_details', 'search_tools', 'up__open']

describe('/mcp/<app>', () => {
  for (const era of ERAS) {
    it(`lists and calls only the app’s tools (${era})`, async () => {
      assert.deepEqual(await list('viewer', era, 'research'), RESEARCH)
      assert.deepEqual(await list('admin', era, 'research'), [...RESEARCH, 'up__submit'])
      assert.deepEqual(await list('viewer', era, 'vault-only'), [])
      assert.equal((await call('viewer', era, 'research', 'up__open')).result?.isError ?? false, false)
      assert.deepEqual(ran(), ['open'])
      for (const name of ['up__notes', 'up__secret', 'up__submit']) {
        const [told, ...known] = textOf(await call('viewer', era, 'research', name)).split(' Available tools: ')
        assert.equal(told, `Tool "${name}" is not available.`)
        assert.doesNotMatch(known.join(), /notes|secret|submit|push/)
      }
      assert.equal(ran().length, 1)
    })
  }

  it('does not affect /mcp', async () => {
    const names = await gateway.list('viewer', MODERN)
    assert.ok(['up__open', 'up__submit', 'up__notes'].every((name) => names.includes(name)))
  })

  it('sends its instructions at the start, in both eras', async () => {
    const discovered = (await post('viewer', MODERN, '/mcp/research', 'server/discover')).json() as RpcAnswer
    assert.equal(discovered.result?.['instructions'], 'Cite what you found.')
    const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 't', version: '1' } }
    const initialized = (await post('viewer', '2025-11-25', '/mcp/research', 'initialize', params)).json() as RpcAnswer
    assert.equal(initialized.result?.['instructions'], 'Cite what you found.')
    for (const path of ['/mcp', '/mcp/desk']) {
      const none = (await post('viewer', MODERN, path, 'server/discover')).json() as RpcAnswer
      assert.equal(none.result && 'instructions' in none.result, false)
    }
  })

  it('answers 404 for an unknown app, to callers with a key only', async () => {
    const wrong = ['reserch', 'constructor', '__proto__', 'research//', 'Research', 'research/x', '/', '%72esearch']
    for (const name of wrong) {
      const answer = await post('viewer', MODERN, `/mcp/${name}`, 'tools/list')
      assert.deepEqual(
        [answer.status, answer.json()],
        [404, { jsonrpc: '2.0', id: null, error: { code: -32000, message: 'Nothing is served here.' } }],
      )
      const { headers, body } = toMessage(MODERN, 'tools/list')
      const [there, not] = await Promise.all(
        ['research', name].map((path) => send(`${gateway.mcpUrl}/${path}`, { headers, body: JSON.stringify(body) })),
      )
      assert.deepEqual([not?.status, not?.text], [401, there?.text.replace('"id":1', '"id":null')])
    }
  })

  it('has the same checks as /mcp', async () => {
    const { headers, body } = toMessage(MODERN, 'tools/list')
    const without = await send(`${gateway.mcpUrl}/research`, { headers, body: JSON.stringify(body) })
    assert.equal(without.status, 401)
    const console = await post(
      'viewer',
      MODERN,
      '/mcp/research',
      'tools/list',
      {},
      { authorization: 'Bearer demo-console' },
    )
    assert.equal(console.status, 403)
    const foreign = await post('viewer', MODERN, '/mcp/research', 'tools/list', {}, { origin: 'http://evil.example' })
    assert.equal(foreign.status, 403)
  })

  it('finds and calls the app’s tools through the meta-tools, even those of locked groups', async () => {
    const search = async (name: string, query: string) =>
      (await call('viewer', MODERN, name, 'search_tools', { query })).result?.structuredContent as {
        tools: { name: string }[]
      }
    assert.deepEqual(
      (await search('research', 'query')).tools.map(({ name }) => name),
      ['up__query'],
    )
    assert.deepEqual((await search('research', 'notes')).tools, [])
    const through = (name: string) => call('viewer', MODERN, 'research', 'call_tool', { name, arguments: {} })
    await through('up__query')
    assert.deepEqual(ran(), ['query'])
    assert.match(textOf(await through('up__notes')), /is not available/)
    assert.equal(ran().length, 1)
  })

  it('opens only the app’s groups by request', async () => {
    const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'x', version: '1' } }
    const { headers } = await gateway.ask('viewer', '2025-11-25', 'initialize', params)
    const session = { 'mcp-session-id': headers['mcp-session-id'] as string }
    const ask = async (name: string, wanted: string) =>
      (
        await post(
          'viewer',
          '2025-11-25',
          `/mcp/${name}`,
          'tools/call',
          { name: 'request_tools', arguments: { group: wanted } },
          session,
        )
      ).json() as RpcAnswer
    assert.match(textOf(await ask('research', 'git')), /There is no group "git" to open\. The groups are: \(none\)\./)
    assert.deepEqual((await ask('desk', 'git')).result?.structuredContent, { group: 'git', tools: ['up__push'] })
  })

  it('has its name in the audit, even for invalid messages', async () => {
    await call('viewer', MODERN, 'desk', 'up__notes')
    await call('viewer', MODERN, 'desk', 'up__open')
    await post('viewer', MODERN, '/mcp/desk', 'tools/call', { name: 'up__notes', arguments: 7 })
    await gateway.call('viewer', MODERN, 'up__notes')
    const { body } = await gateway.api('/api/audit?limit=6')
    assert.deepEqual((body as AuditBody).records.map((record) => [record.event, record.app]).toReversed(), [
      ['tool_call', 'desk'],
      ['tool_result', 'desk'],
      ['tool_blocked', 'desk'],
      ['tool_blocked', 'desk'],
      ['tool_call', undefined],
      ['tool_result', undefined],
    ])
  })

  it('notifies only of changes to the app’s own list', async () => {
    const [research, desk] = await Promise.all([listen('research'), listen('desk')])
    await gateway.gate.preferences.set({ user: 'viewer' }, { groups: ['web'], tools: [] })
    await until(() => research.events().length > 1)
    assert.deepEqual(await list('viewer', MODERN, 'research'), ['call_tool', 'get_tool_details', 'search_tools'])
    assert.equal(desk.events().length, 1)
    for (const stream of [research, desk]) stream.close()
    await gateway.gate.preferences.set({ user: 'viewer' }, { groups: [], tools: [] })
  })
})

describe('the API of apps and preferences', () => {
  it('returns the gateway’s own', async () => {
    const { apps } = (await gateway.api('/api/apps')).body as AppsBody
    assert.deepEqual(
      apps.map(({ name, path, groups, tools, available }) => [name, path, groups, tools, available]),
      [
        ['research', '/mcp/research', ['web', 'sql'], ['up:open', 'up:query', 'up:submit'], 3],
        ['desk', '/mcp/desk', ['git'], ['up:notes', 'up:push'], 2],
        ['vault-only', '/mcp/vault-only', ['vault'], ['up:secret'], 1],
      ],
    )
  })

  it('switches tools off at once for the agents of a user', async () => {
    const put = (body: PreferencesBody) => gateway.api('/api/preferences?as=viewer', { method: 'PUT', body })
    assert.equal((await put({ groups: [], tools: ['up:open'] })).status, 200)
    assert.equal((await list('viewer', MODERN, 'research')).includes('up__open'), false)
    assert.match(textOf(await gateway.call('viewer', MODERN, 'up__open')), /the user has switched it off/)
    assert.equal((await gateway.list('admin', MODERN)).includes('up__open'), true)
    assert.deepEqual((await put({ groups: [], tools: [] })).body, { groups: [], tools: [] })
    assert.deepEqual(await list('viewer', MODERN, 'research'), RESEARCH)
  })
})

const ran = () => upstream.calls().map(({ params }) => params['name'])

function post(
  who: Who,
  era: Era,
  path: string,
  method: string,
  params: object = {},
  more: Readonly<Record<string, string>> = {},
): Promise<Answer> {
  const { headers, body } = toMessage(era, method, params as never)
  const sent = { ...headers, authorization: `Bearer ${KEYS[who]}`, ...more }
  return send(`${gateway.url}${path}`, { headers: sent, body: JSON.stringify(body) })
}

async function list(who: Who, era: Era, name: string): Promise<string[]> {
  const { result } = (await post(who, era, `/mcp/${name}`, 'tools/list')).json() as RpcAnswer
  return (result?.tools ?? []).map((tool) => tool.name)
}

async function call(who: Who, era: Era, name: string, tool: string, args: object = {}): Promise<RpcAnswer> {
  return (await post(who, era, `/mcp/${name}`, 'tools/call', { name: tool, arguments: args })).json() as RpcAnswer
}

/** Listens for changes of the list of an app, until it is closed. */
function listen(name: string): Promise<{ events(): readonly unknown[]; close(): void }> {
  const { headers, body } = toMessage(MODERN, 'subscriptions/listen', { notifications: { toolsListChanged: true } })
  return new Promise((resolve, reject) => {
    const sent = request(
      `${gateway.mcpUrl}/${name}`,
      { method: 'POST', agent: false, headers: { ...headers, authorization: `Bearer ${KEYS.viewer}` } },
      (response) => {
        let text = ''
        const events = () =>
          [...text.matchAll(/^data: (.+)$/gm)].map(([, data]) => JSON.parse(data as string) as unknown)
        response.on('data', (chunk: Buffer) => {
          text += chunk.toString()
          if (events().length > 0) resolve({ events, close: () => sent.destroy() })
        })
        response.on('error', () => {})
      },
    )
    sent.on('error', reject)
    sent.end(JSON.stringify(body))
  })
}
