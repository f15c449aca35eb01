import assert from 'node:assert/strict'
import { execFile, spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { promisify } from 'node:util'
import type { AuditRecord } from '@toolgate/core/audit'
import type { AgentCallBody, AgentDecisionBody, AgentItemsBody, ApprovalsBody, ErrorBody } from '@toolgate/gateway'
import { startTestGateway, type TestGateway, until } from './support/gateway.ts'
import { send } from './support/http.ts'
import { KEYS, type Who } from './support/keys.ts'
import { nodeServer } from './support/servers.ts'

const SLOW = join(import.meta.dirname, 'support/slow-server.js')
const PYTHON = join(import.meta.dirname, '../examples/python/agent.py')
const HAS_PYTHON = spawnSync('python3', ['--version']).status === 0

describe('an agent without MCP', () => {
  let gateway: TestGateway
  beforeEach(async () => {
    gateway = await startTestGateway({
      servers: [nodeServer('slow', [SLOW])],
      groups: [],
      apps: [{ name: 'small', import: [], tools: ['slow:echo'], policy: [] }],
      policy: [
        {
          allow: ['*'],
          deny: [
            { match: 'slow:long', unless: "'admin' in caller.roles" },
            { match: 'slow:echo', input: "has(input.word) && input.word == 'bad'", message: 'Not this word.' },
          ],
          ask: [{ match: 'slow:until', when: "'viewer' in caller.roles" }],
        },
      ],
      limits: ['slow:echo:3/60'],
    })
  })
  afterEach(() => gateway.close())

  const as = (who: Who) => ({ key: KEYS[who] })
  const post = async (path: string, body: object, who: Who = 'viewer') =>
    gateway.api(path, { ...as(who), method: 'POST', body })
  const decide = async (tool: string, input: unknown = {}, who: Who = 'viewer') =>
    (await post('/api/decide', { tool, input }, who)).body as AgentDecisionBody
  const call = async (tool: string, input: unknown = {}, who: Who = 'viewer') =>
    (await post('/api/call', { tool, input }, who)).body as AgentCallBody
  const records = async () => {
    const { body } = await gateway.api('/api/audit?limit=50')
    return (body as { records: readonly AuditRecord[] }).records.filter(({ event }) => event.startsWith('tool_'))
  }

  it('lists what its caller sees, in the gateway and in an app', async () => {
    const idsOf = async (path: string, who: Who) =>
      ((await gateway.api(path, as(who))).body as AgentItemsBody).items.map(({ id }) => id)
    assert.deepEqual(await idsOf('/api/list', 'viewer'), ['slow:echo', 'slow:until', 'slow:wait'])
    assert.deepEqual(await idsOf('/api/list', 'admin'), ['slow:echo', 'slow:long', 'slow:until', 'slow:wait'])
    assert.deepEqual(await idsOf('/api/list?app=small', 'admin'), ['slow:echo'])
    assert.deepEqual(await idsOf('/api/list?kind=prompt', 'admin'), [])
  })

  it('makes a call, which has the records of every call', async () => {
    const body = await call('slow:echo')
    assert.ok(body.status === 'done' && !body.isError)
    assert.deepEqual([body.text, body.result], ['echo', { content: [{ type: 'text', text: 'echo' }] }])
    assert.deepEqual(
      (await records()).map(({ event, user_id: user, tool_call_id: id }) => [event, user, id]),
      [
        ['tool_result', 'viewer', body.callId],
        ['tool_call', 'viewer', body.callId],
      ],
    )
  })

  it('is told by decide what the call would say, and no more', async () => {
    for (const [tool, input] of [
      ['slow:long', {}],
      ['slow:nothing', {}],
      ['slow:echo', { word: 'bad' }],
    ] as const) {
      const decided = await decide(tool, input)
      const called = await call(tool, input)
      assert.ok(called.status === 'refused', tool)
      const { status: _, callId: __, ...refusal } = called
      assert.deepEqual(decided, { tool, ...refusal })
    }
    assert.deepEqual(await decide('slow:until'), { tool: 'slow:until', outcome: 'ask' })
    assert.deepEqual(await decide('slow:echo'), { tool: 'slow:echo', outcome: 'allow' })
    assert.equal((await records()).length, 3, 'of the three calls')
  })

  it('runs into limits, and learns when to try again', async () => {
    for (let i = 0; i < 3; i++) assert.equal((await call('slow:echo')).status, 'done')
    const refused = await call('slow:echo')
    assert.ok(refused.status === 'refused' && refused.outcome === 'wait' && (refused.retryAfterSeconds ?? 0) > 0)
    assert.equal((await decide('slow:echo')).outcome, 'wait')
  })

  it('waits for a person, calls again, and spends the approval', async () => {
    const input = { file: SLOW }
    const waiting = await call('slow:until', input)
    assert.ok(waiting.status === 'waiting')
    assert.equal(waiting.approval.url, `${gateway.url}/approvals/${waiting.approval.id}`)
    const { approvals } = (await gateway.api('/api/approvals')).body as ApprovalsBody
    assert.deepEqual(
      approvals.map(({ id }) => id),
      [waiting.approval.id],
    )
    await gateway.api(`/api/approvals/${waiting.approval.id}`, { method: 'POST', body: { decision: 'approve' } })
    assert.equal((await call('slow:until', input)).text, 'done after all')
    assert.equal((await call('slow:until', input)).status, 'waiting')
  })

  it('stops its call when it goes away', async () => {
    const leaving = new AbortController()
    const calling = send(`${gateway.url}/api/call`, {
      headers: { authorization: `Bearer ${KEYS.viewer}`, 'content-type': 'application/json' },
      body: JSON.stringify({ tool: 'slow:wait' }),
      signal: leaving.signal,
    })
    await until(async () => (await records()).length === 1)
    leaving.abort()
    await assert.rejects(calling)
    await until(async () => (await records())[0]?.event === 'tool_abandoned')
  })

  describe('is refused', () => {
    const codeOf = ({ body }: { body: unknown }) => (body as ErrorBody).error.code
    const headers = { authorization: `Bearer ${KEYS.viewer}`, 'content-type': 'application/json' }

    for (const path of ['/api/list', '/api/decide', '/api/call'] as const) {
      const method = path === '/api/list' ? 'GET' : 'POST'
      const body = method === 'GET' ? {} : { body: { tool: 'slow:echo' } }
      it(`${path} for a console key, a wrong key, and a login`, async () => {
        const byConsole = await gateway.api(path, { method, ...body })
        assert.deepEqual([byConsole.status, codeOf(byConsole)], [403, 'key_not_for_agents'])
        const wrong = await gateway.api(path, { method, key: 'wrong', ...body })
        assert.deepEqual([wrong.status, codeOf(wrong)], [401, 'unauthenticated'])
        const origin = gateway.url
        const login = await send(`${gateway.url}/api/login`, {
          headers: { 'content-type': 'application/json', origin },
          body: JSON.stringify({ key: KEYS.console }),
        })
        const cookie = String(login.headers['set-cookie']).split(';')[0] ?? ''
        const byCookie = await send(`${gateway.url}${path}`, {
          method,
          headers: { cookie, origin, 'content-type': 'application/json' },
          ...(method === 'POST' ? { body: JSON.stringify({ tool: 'slow:echo' }) } : {}),
        })
        assert.deepEqual([byCookie.status, byCookie.headers['www-authenticate']], [401, 'Bearer realm="toolgate"'])
        assert.deepEqual(await records(), [])
      })
    }

    it('with another origin', async () => {
      const foreign = await send(`${gateway.url}/api/call`, {
        headers: { ...headers, origin: 'http://evil.example' },
        body: JSON.stringify({ tool: 'slow:echo' }),
      })
      assert.deepEqual([foreign.status, await records()], [403, []])
    })

    it('with a caller or anything else in the body that is not the call', async () => {
      for (const [body, message] of [
        [{ tool: 'slow:echo', caller: { user: 'admin' } }, /"caller" is unknown/],
        [{ tool: 'slow:echo', as: 'admin' }, /"as" is unknown/],
        [{ input: {} }, /"tool" must be the id/],
        [{ tool: '' }, /"tool" must be the id/],
      ] as const) {
        const answer = await post('/api/call', body)
        assert.equal(answer.status, 400)
        assert.match((answer.body as ErrorBody).error.message, message)
      }
      const byQuery = await post('/api/call?as=admin', { tool: 'slow:echo' })
      assert.deepEqual([byQuery.status, codeOf(byQuery)], [400, 'query_invalid'])
      const app = await post('/api/call?app=none', { tool: 'slow:echo' })
      assert.deepEqual([app.status, codeOf(app)], [404, 'app_unknown'])
    })

    it('with an input that is no object, on record', async () => {
      const refused = await call('slow:echo', 'text')
      assert.ok(refused.status === 'refused')
      assert.match(refused.text, /input must be an object/)
      assert.deepEqual(
        (await records()).map(({ event, reason }) => [event, reason]),
        [['tool_blocked', 'input_invalid']],
      )
    })
  })

  it('is twenty lines of Python', { skip: HAS_PYTHON ? false : 'python3 is not installed' }, async () => {
    const run = promisify(execFile)
    const env = { ...process.env, TOOLGATE_URL: gateway.url, TOOLGATE_KEY: KEYS.viewer }
    const { stdout } = await run('python3', [PYTHON, 'slow:echo'], { env })
    assert.equal(stdout, 'sees: slow:echo slow:until slow:wait\ndecision: allow\ndone: echo\n')
    const refused = await run('python3', [PYTHON, 'slow:echo', '{"word": "bad"}'], { env })
    assert.match(refused.stdout, /decision: deny\nrefused: TOOL_CALL_BLOCKED: Not this word\.\n$/)
  })
})
