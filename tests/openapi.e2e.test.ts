import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import type {
  AgentCallBody,
  ErrorBody,
  GatewayConfig,
  HaltRow,
  NewKeyBody,
  PinsBody,
  ReloadBody,
  StartedRunBody,
} from '@toolgate/gateway'
import { startTestGateway, type TestGateway } from './support/gateway.ts'
import { callerConfig, CALLERS, KEYS } from './support/keys.ts'
import { openapi } from './support/openapi.ts'
import { httpServer, nodeServer } from './support/servers.ts'

const HOST = 'host-key-of-a-runner'
const OWN_AGENT = JSON.stringify({ user: 'owner', roles: ['admin'] })
const SLOW = join(import.meta.dirname, 'support/slow-server.js')

describe('openapi.json', () => {
  it('is valid OpenAPI 3.1, and what scripts/generate-openapi.js writes', () => {
    const script = join(import.meta.dirname, '../scripts/generate-openapi.js')
    execFileSync(process.execPath, ['--conditions=toolgate-source', script, '--check'], { stdio: 'pipe' })
  })

  describe('describes a running gateway', () => {
    let gateway: TestGateway
    let given: Partial<GatewayConfig>
    before(async () => {
      given = {
        servers: [
          nodeServer('slow', [SLOW]),
          httpServer('mail', 'http://127.0.0.1:1/mcp', { per: 'user', listing: 'user', oauth: {} }),
        ],
        callers: [
          ...CALLERS,
          callerConfig(HOST, { user: 'runner' }, 'host'),
          callerConfig('own-agent', { user: 'owner', roles: ['admin'] }),
          callerConfig('guest-agent', { user: 'guest' }),
        ],
        apps: [{ name: 'small', import: [], tools: ['slow:echo'], policy: [] }],
        policy: [
          {
            allow: ['*'],
            deny: [{ match: 'slow:long', unless: "'admin' in caller.roles" }],
            ask: [{ match: 'slow:until', when: "'viewer' in caller.roles" }],
          },
        ],
        limits: ['slow:echo:2/60'],
        grants: { maxMs: 3_600_000, maxUses: 5 },
        state: { store: 'memory' },
        pins: 'suspend',
        approvals: { notify: [{ name: 'down', url: 'http://127.0.0.1:1/', format: 'json' }] },
      }
      gateway = await startTestGateway(given, () => given)
    })
    after(() => gateway.close())

    const send = async (route: string, body?: object, key: string = KEYS.console) => {
      const [method = '', path = ''] = route.split(' ')
      return (await gateway.api(path, { key, method, ...(body ? { body } : {}) })).body
    }
    const asAgent = (route: string, body?: object) => send(route, body, KEYS.viewer)

    it('to agents: what they see, and every outcome of a call', async () => {
      await asAgent('GET /api/list')
      await asAgent('GET /api/list?app=small&kind=prompt')
      for (const tool of ['slow:echo', 'slow:long', 'slow:until']) await asAgent('POST /api/decide', { tool })
      const outcomes = []
      for (const tool of ['slow:echo', 'slow:echo', 'slow:echo', 'slow:long', 'slow:until'])
        outcomes.push(((await asAgent('POST /api/call', { tool, input: {} })) as AgentCallBody).status)
      assert.deepEqual(outcomes, ['done', 'done', 'refused', 'refused', 'waiting'])
    })

    it('to agents: the faults of their requests', async () => {
      await asAgent('POST /api/call', {})
      await asAgent('GET /api/list?app=none')
      await send('GET /api/list')
      await send('GET /api/list', undefined, 'wrong')
    })

    it('to hosts: the runs that they start and end', async () => {
      const { id } = (await send('POST /api/runs', { user: 'viewer' }, HOST)) as StartedRunBody
      await send('POST /api/runs', { parent: id, userWords: [] }, HOST)
      await send('POST /api/runs', { user: 'viewer' })
      await send('GET /api/runs?limit=10', undefined, HOST)
      await send('GET /api/runs?user=viewer')
      await send(`DELETE /api/runs/${id}`, undefined, HOST)
      await send(`DELETE /api/runs/${id}`, undefined, HOST)
    })

    it('to people: approvals', async () => {
      const waiting = (await asAgent('POST /api/call', { tool: 'slow:until', input: { file: SLOW } })) as AgentCallBody
      assert.ok(waiting.status === 'waiting')
      const approval = `POST /api/approvals/${waiting.approval.id}`
      await send('GET /api/approvals')
      await send('GET /api/approvals/waiting')
      await send(`${approval}/compare`)
      await send('POST /api/approvals/none/compare')
      await send(approval, { decision: 'maybe' })
      await send(approval, { decision: 'approve', grant: { covers: 'tool' } })
      await send(approval, { decision: 'approve', grant: { covers: 'input', forMs: 1000 } })
      await send(approval, { decision: 'approve' })
      await send('GET /api/grants')
      await send(`DELETE /api/grants/${waiting.approval.id}`)
      await send(`DELETE /api/grants/${waiting.approval.id}?reason=again`)
      await send('DELETE /api/grants/none')
      await send('POST /api/approvals/none', { decision: 'approve' })
      await send('GET /api/approvals?status=approved')
    })

    it('to people: what changes', async () => {
      const halt = (await send('POST /api/halts', { tool: 'slow:echo', reason: 'a test' })) as HaltRow
      await send('POST /api/halts', { tool: 'slow:ehco', reason: 'a test' })
      await send('GET /api/halts')
      await send(`DELETE /api/halts/${halt.id}`)
      await send(`DELETE /api/halts/${halt.id}`)
      const key = (await send('POST /api/keys', { user: 'viewer' })) as NewKeyBody
      await send('GET /api/keys')
      await send(`DELETE /api/keys/${key.id}`)
      await send('GET /api/connections')
      await send('DELETE /api/connections/mail')
      await send('DELETE /api/connections/mail?user=viewer')
      await send('PUT /api/preferences?as=viewer', { groups: [], tools: ['slow:echo'] })
      await send('GET /api/preferences?as=viewer')
      const { pins } = (await send('GET /api/pins')) as PinsBody
      const [pin] = pins
      await send('POST /api/pins/accept', { tool: pin?.tool ?? 'slow:echo', hash: pin?.hash ?? '0'.repeat(64) })
      await send('POST /api/audit/rotate', {})
      const { preview } = (await send('POST /api/reload', { dryRun: true })) as ReloadBody
      await send('POST /api/reload', { dryRun: true, preview })
      await send('POST /api/reload', { preview: 'another' })
      await send('GET /api/policy/revisions')
      await send('GET /api/policy/revisions/1')
      await send('POST /api/policy/revisions/1', { dryRun: true })
      await send('POST /api/policy/revisions/none', {})
      await send('DELETE /api/policy/restored')
      await send('GET /api/list', undefined, 'guest-agent')
      await send('DELETE /api/people?user=guest')
      given = { ...given, callers: given.callers?.filter(({ caller }) => caller.user !== 'guest') ?? [] }
      await send('POST /api/reload', {})
      await send('DELETE /api/people?user=guest')
    })

    it('to people: what they try', async () => {
      const trial = { tool: 'slow:long', input: { file: SLOW } }
      await send('POST /api/why', { ...trial, as: 'viewer', history: 'labels: [untrusted]' })
      await send('POST /api/why', { ...trial, as: 'viewer', history: { calls: [{ tool: 'slow:echo' }] } })
      await send('POST /api/why', { ...trial, tool: 'slow:none', as: 'viewer' })
      await send('POST /api/tool/call', { tool: 'slow:echo', caller: OWN_AGENT })
      await send('POST /api/tool/call', { tool: 'slow:echo', as: 'viewer' })
      for (const what of ['what-if', 'compare']) await send(`POST /api/${what}`, { config: 'servers: {}' })
      await send('POST /api/test', { tests: 'tests: []' })
      await send('POST /api/suggest', {})
    })

    it('to people: what they look at', async () => {
      await send('POST /api/login', { key: KEYS.console })
      await send('POST /api/login', { key: 'wrong' })
      await send('POST /api/logout')
      for (const path of [
        'login',
        'openapi.json',
        'session',
        'tools?as=viewer&app=small',
        'tools/columns?as=viewer',
        'tools/columns?as=none',
        'tools?as=none',
        'tool?tool=slow:echo&as=viewer',
        'why?tool=slow:long&as=viewer',
        'why?tool=slow:none&as=viewer',
        'callers',
        'catalog',
        'matrix?limit=2&open=server%20slow',
        'people',
        'people?tenant=none&limit=1',
        'runs?label=none&state=open&limit=1',
        'keys?user=viewer',
        'connections?user=viewer',
        'groups',
        'apps',
        'needs',
        'warnings',
        'audit?limit=50',
        `audit/counts?since=0&until=${Date.now() + 1}&bucket=${Date.now()}`,
        'audit/counts',
        'calls?limit=20',
        'calls?outcome=none',
        'overview?period=1h',
        'overview?period=none',
        'audit/evidence',
        'logs?server=slow',
        'replicas',
        'limits',
        'notifications',
        'policy',
        'halts/reach?tool=slow:echo',
        'servers',
        'logs?server=none',
      ])
        await send(`GET /api/${path}`)
      await send('POST /api/notifications/test', { receiver: 'down' })
      await send('POST /api/servers/slow/restart')
    })

    it('by the parameters that each route knows, and no others', async () => {
      for (const { method, path, operation } of openapi.operations()) {
        const { tags, parameters = [], requestBody } = operation
        if (tags.includes('everyone')) continue
        const names = parameters.filter((one) => one.in === 'query').map(({ name }) => name)
        const known = names.length === 0 ? 'there are none' : `known are ${names.toSorted().join(', ')}`
        const key = keyOf(tags)
        const at = path.replace('{id}', 'none')
        const body = await send(`${method} ${at}?nope=1`, requestBody && { nope: 1 }, key)
        assert.equal(sorted(messageOf(body)), `The query parameter "nope" is unknown; ${known}.`, `${method} ${path}`)
      }
    })

    it('by the fields that each body may have, and no others', async () => {
      for (const { method, path, operation } of openapi.operations()) {
        const name = operation.requestBody?.content?.['application/json']?.schema.$ref.split('/').at(-1)
        if (name === undefined) continue
        const fields = Object.keys(openapi.document.components.schemas[name]?.properties ?? {})
        const key = keyOf(operation.tags)
        const body = await send(`${method} ${path.replace('{id}', 'none')}`, { nope: 1 }, key)
        const known = fields.length === 0 ? 'there are none' : `known are ${fields.toSorted().join(', ')}`
        const expected = `The field "nope" is unknown; ${known}.`
        assert.equal(sorted(messageOf(body)), expected, `${method} ${path}`)
      }
    })

    it('of every operation that answers JSON, an answer was checked', () => {
      const missing = openapi
        .operations()
        .filter(({ operation }) => operation.responses['200']?.content?.['application/json'])
        .map(({ method, path }) => `${method} ${path} 200`)
        .filter((operation) => !openapi.checked.has(operation) && !CHECKED_ELSEWHERE.has(operation))
      assert.deepEqual(missing, [])
    })
  })
})

/**
 * This gateway is alone, and has no file: `replicas`, `what-if`, `changes-api` and `policy-revisions` check these.
 */
const CHECKED_ELSEWHERE: ReadonlySet<string> = new Set([
  ...['replicas/accept', 'what-if', 'compare', 'test', 'suggest'].map((what) => `POST /api/${what} 200`),
  ...['GET /api/policy/revisions', 'GET /api/policy/revisions/{id}', 'POST /api/policy/revisions/{id}'].map(
    (operation) => `${operation} 200`,
  ),
  'DELETE /api/policy/restored 200',
])

function messageOf(body: unknown): string {
  return (body as ErrorBody).error.message
}

/** Sorts the names of `known are b, a.` */
function sorted(message: string): string {
  return message.replace(/(?<=known are ).*(?=\.)/, (names) => names.split(', ').toSorted().join(', '))
}

function keyOf(tags: readonly string[]): string {
  return tags.includes('agent') ? KEYS.viewer : tags.includes('host') ? HOST : KEYS.console
}
