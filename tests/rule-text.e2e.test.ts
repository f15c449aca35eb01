import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { type ApprovalsBody, type AuditBody, type CallsBody, loadConfig, type WhyBody } from '@toolgate/gateway'
import { startTestGateway, type TestGateway, until } from './support/gateway.ts'
import { send } from './support/http.ts'
import { callerConfig, CALLERS, KEYS } from './support/keys.ts'
import { openLive, type LivePage } from './support/live.ts'
import { openapi } from './support/openapi.ts'
import { httpServer } from './support/servers.ts'
import { type RecordingServer, startRecordingServer } from './support/recording-server.ts'

/** A word that only conditions have, about another tenant. */
const SECRET = /quince/i
const TOOLS = ['look', 'pay', 'mend', 'send', 'sell', 'resell', 'keep', 'tint', 'order'].map((name) => ({
  name,
  inputSchema: { type: 'object', properties: { who: { type: 'string' } } },
}))
const TEXT = `servers: {}
policy:
  - name: baseline
    allow:
      - { match: "up:*", unless: "caller.user == 'quince-guest'" }
    ask:
      - { match: "up:send", unless: "caller.tenant == 'quince'", message: "A person looks at it." }
      - { match: "up:resell", input: "run.began('quince:*') || run.began('up:look')", message: "A person sells again." }
      - { match: "up:sell", input: "!run.called('quince:check', { 'output.ok': 'quince' == 'quince' })", message: "A person sells." }
      - { match: "up:order", input: "input.who != 'quince'", message: "A person orders." }
    deny:
      - { match: "up:pay", unless: "caller.tenant == 'quince'", message: "Not for you." }
      - { match: "up:mend", input: "!has(input.quince)" }
      - { match: "up:order", input: "input.who == 'quince'" }
      - { match: "up:keep", when: "caller.attributes.quince.level > 1" }
      - { match: "up:look", unless: "caller.tenant == 'quince'", mode: shadow }
  - name: narrow
    allow:
      - { match: "up:tint", when: "caller.tenant == 'quince'" }
      - { match: "up:*", unless: "tool.id == 'up:tint'" }
`
const BETA = 'key-of-beta-person'
const AGENT = 'key-of-beta-agent'

describe('a person of a tenant', () => {
  const { policy, places, policySource } = loadConfig('toolgate.yaml', { text: TEXT, env: {} })
  let gateway: TestGateway
  let upstream: RecordingServer
  const pages: LivePage[] = []

  before(async () => {
    upstream = await startRecordingServer(TOOLS)
    gateway = await startTestGateway({
      servers: [httpServer('up', upstream.url)],
      audit: { store: 'memory', mode: 'batched', inputs: 'facts' },
      callers: [
        ...CALLERS,
        callerConfig(BETA, { user: 'ann', tenant: 'beta', roles: ['approver', 'operator'] }, 'console'),
        callerConfig(AGENT, { user: 'bob', tenant: 'beta', attributes: {} }),
      ],
      policy,
      ...(places && { places }),
      policySource,
    })
    for (const key of [BETA, KEYS.console]) pages.push(await openLive(gateway.url, { authorization: `Bearer ${key}` }))
    for (const { name } of TOOLS)
      await raw('/api/call', AGENT, { tool: `up:${name}`, input: name === 'order' ? { who: 'bob' } : {} })
    await until(() => pages.every((page) => page.of('approval').length >= 4))
  })
  after(async () => {
    for (const { socket } of pages) socket.terminate()
    await gateway?.close()
    await upstream?.close()
  })

  async function raw(path: string, key: string, body?: object): Promise<string> {
    const headers = { authorization: `Bearer ${key}`, ...(body && { 'content-type': 'application/json' }) }
    const sent = body ? { method: 'POST', body: JSON.stringify(body) } : { method: 'GET' }
    return (await send(`${gateway.url}${path}`, { headers, ...sent })).text
  }

  const QUERY: Readonly<Record<string, string>> = { since: '0', bucket: '9999999999', as: 'bob' }

  /** Everything that is answered to a key, by operation and tool. */
  async function answersTo(key: string): Promise<ReadonlyMap<string, string>> {
    const answers = new Map<string, string>()
    for (const { method, path, operation } of openapi.operations()) {
      const named = new Set(operation.parameters?.map(({ name }) => name))
      if (method !== 'GET' || path.includes('{')) continue
      const tools = named.has('tool') && named.has('as') ? TOOLS.map(({ name }) => `up:${name}`) : [undefined]
      for (const tool of tools) {
        const query = new URLSearchParams(tool === undefined ? {} : { tool })
        for (const [name, value] of Object.entries(QUERY)) if (named.has(name)) query.set(name, value)
        if (path === '/api/audit/counts') query.set('until', String(Date.now()))
        if (path === '/api/matrix') query.set('open', 'server up')
        const asked = `${path}?${query.toString()}`
        answers.set(`GET ${asked}`, await raw(asked, key))
      }
    }
    for (const { name } of TOOLS)
      for (const path of ['/api/why', '/api/tool/call', '/api/decide'])
        answers.set(`POST ${path} ${name}`, await raw(path, key, { tool: `up:${name}`, as: 'bob', input: {} }))
    answers.set('/metrics', await raw('/metrics', key))
    const { approvals } = JSON.parse(await raw('/api/approvals', key)) as ApprovalsBody
    for (const { id } of approvals) {
      answers.set(`page of ${id}`, await raw(`/approvals/${id}`, key))
      answers.set(`POST compare ${id}`, await raw(`/api/approvals/${id}/compare`, key, {}))
    }
    return answers
  }

  it('reads the text of a rule in no answer', async () => {
    const [whole, withheld] = [await answersTo(KEYS.console), await answersTo(BETA)]
    const found = (answers: ReadonlyMap<string, string>) =>
      [...answers].flatMap(([what, text]) =>
        SECRET.test(text) ? [`${what}: ${/.{0,80}quince.{0,40}/i.exec(text)?.[0]}`] : [],
      )
    assert.deepEqual(found(withheld), [])
    const shown = found(whole).join('\n')
    for (const path of [
      'tools?',
      'tools/columns',
      'matrix',
      'tool?',
      'why?',
      'audit?',
      'audit/export',
      'calls?',
      'calls/export',
      'approvals?',
      'policy',
    ])
      assert.ok(shown.includes(`GET /api/${path}`), `${path} is to show people without a tenant the rules:\n${shown}`)
    assert.match(shown, /POST \/api\/why/)
  })

  it('reads none on the live feed and in the answer to a verdict, and people without a tenant still do', async () => {
    const [beta, whole] = pages.map(({ messages }) => JSON.stringify(messages))
    assert.doesNotMatch(beta ?? '', SECRET)
    assert.match(whole ?? '', SECRET)
    const { approvals } = (await gateway.api('/api/approvals', { key: BETA })).body as ApprovalsBody
    assert.deepEqual(approvals.map(({ why }) => why).toSorted(), [
      'A person looks at it. (rule baseline#ask[0])',
      'A person orders. who is "bob". (rule baseline#ask[3])',
      'A person sells again. (rule baseline#ask[1])',
      'A person sells. (rule baseline#ask[2])',
    ])
    const [first] = approvals
    assert.doesNotMatch(await raw(`/api/approvals/${first?.id}`, BETA, { decision: 'reject' }), SECRET)
  })

  it('does not find a call by the text of a rule', async () => {
    const search = async (key: string) =>
      ((await gateway.api('/api/calls?text=quince', { key })).body as CallsBody).calls.length
    assert.deepEqual([await search(BETA), (await search(KEYS.console)) > 0], [0, true])
  })

  it('learns that a rule decided, which one, and its message', async () => {
    const why = (await gateway.api('/api/why?tool=up:pay&as=bob', { key: BETA })).body as WhyBody
    const [reason] = why.reasons
    assert.deepEqual(
      [reason?.code, reason?.text, reason?.message, reason?.clause?.index, reason?.place?.line],
      ['policy_denied', 'a rule denies it', 'Not for you.', 0, 12],
    )
    assert.deepEqual(
      why.wouldAllow?.map((way) => way.map(({ on, text }) => [on, text])),
      [[['policy', '`baseline#deny[0]` removed, or narrowed']]],
    )
    const { records } = (await gateway.api('/api/audit?tool=up:pay', { key: BETA })).body as AuditBody
    assert.deepEqual([records[0]?.detail, records[0]?.clause], ['a rule denies it', 'baseline#deny[0]'])
  })
})
