import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, afterEach, before, beforeEach, describe, it } from 'node:test'
import type { AuditRecord } from '@toolgate/core/audit'
import type { ApprovalsBody, AuditBody, GatewayConfig, LimitsBody, RunsBody, StartedRunBody } from '@toolgate/gateway'
import { startTestGateway, tempFolder, type TestGateway } from './support/gateway.ts'
import { send } from './support/http.ts'
import { callerConfig, CALLERS } from './support/keys.ts'
import { type RecordingServer, startRecordingServer } from './support/recording-server.ts'
import { type Era, MODERN, type Params, type RpcAnswer, toMessage } from './support/rpc.ts'
import { type CaseOutcome, LABELS, LIMITS, POLICY, RUN_CASES, TOOLS, USER_WORDS } from './support/run-cases.ts'
import { httpServer } from './support/servers.ts'

const HOST = 'host-key-of-the-runner'
const OTHER_HOST = 'host-key-of-another'
const HOST_OF_TENANT = 'host-key-of-acme'
const VERA = 'first-key-of-vera'
const VERA_TOO = 'second-key-of-vera'
const NORA_OF_ACME = 'key-of-nora-at-acme'
const READER = 'console-key-of-a-reader'
const OF_ACME = 'console-key-of-acme'
const LEGACY = '2025-11-25'

const KEYS = [
  ...CALLERS,
  callerConfig(HOST, { user: 'runner' }, 'host'),
  callerConfig(OTHER_HOST, { user: 'other' }, 'host'),
  callerConfig(HOST_OF_TENANT, { user: 'runner', tenant: 'acme' }, 'host'),
  callerConfig(VERA, { user: 'vera' }),
  callerConfig(VERA_TOO, { user: 'vera' }),
  callerConfig(NORA_OF_ACME, { user: 'nora', tenant: 'acme' }),
  callerConfig(READER, { user: 'reader' }, 'console'),
  callerConfig(OF_ACME, { user: 'ops', tenant: 'acme', roles: ['operator'] }, 'console'),
]

let servers: ReadonlyMap<string, RecordingServer>
before(async () => {
  const names = [...new Set(Object.keys(TOOLS).map((id) => id.split(':')[0] ?? ''))]
  const started = names.map(async (server) => {
    const tools = Object.entries(TOOLS).filter(([id]) => id.startsWith(`${server}:`))
    const recorded = tools.map(([id, { output = { ok: true }, text, description }]) => ({
      name: id.slice(server.length + 1),
      ...(description !== undefined && { description }),
      inputSchema: { type: 'object' },
      run: () => ({
        content: [{ type: 'text', text: text ?? JSON.stringify(output) }],
        ...(text === undefined && { structuredContent: output }),
      }),
    }))
    return [server, await startRecordingServer(recorded)] as const
  })
  servers = new Map(await Promise.all(started))
})
after(async () => {
  await Promise.all([...servers.values()].map((server) => server.close()))
})

let gateway: TestGateway
let callers: GatewayConfig['callers'] = KEYS
const start = (given: Partial<GatewayConfig> = {}) => {
  const configs = [...servers].map(([name, { url }]) => {
    const tools = Object.entries(TOOLS).flatMap(([id, { addressees }]) =>
      addressees && id.startsWith(`${name}:`) ? [[id.slice(name.length + 1), { addressees }] as const] : [],
    )
    return httpServer(name, url, { tools: new Map(tools) })
  })
  const config = { servers: configs, callers, policy: POLICY, limits: LIMITS, labels: LABELS, ...given }
  return startTestGateway(config, () => ({ ...config, callers }))
}
beforeEach(async () => {
  callers = KEYS
  gateway = await start()
})
afterEach(() => gateway.close())

const post = (body: object, key = HOST) => gateway.api('/api/runs', { key, method: 'POST', body })
const startRun = async (body: object, key = HOST) => {
  const { status, body: started } = await post(body, key)
  assert.equal(status, 200, JSON.stringify(started))
  return started as StartedRunBody
}
const end = (id: string, key = HOST) => gateway.api(`/api/runs/${id}`, { key, method: 'DELETE' })
const ask = (token: string, era: Era, method: string, params: Params = {}, headers = {}) => {
  const message = toMessage(era, method, params)
  return send(gateway.mcpUrl, {
    headers: { ...message.headers, authorization: `Bearer ${token}`, ...headers },
    body: JSON.stringify(message.body),
  })
}
const ran = () => [...servers.values()].reduce((sum, server) => sum + server.calls().length, 0)
const asked = async () =>
  ((await gateway.api('/api/approvals')).body as { approvals: readonly object[] }).approvals.length

/** Makes a call over MCP. It runs only if a server has got it, and asks only if there is an approval more. */
async function outcomeOf(token: string, era: Era, tool: string, input: object, meta?: object, headers = {}) {
  const [calls, approvals] = [ran(), await asked()]
  const params = { name: tool.replace(':', '__'), arguments: input, ...(meta && { _meta: meta }) }
  const { result } = (await ask(token, era, 'tools/call', params, headers)).json() as RpcAnswer
  assert.equal(ran() > calls, result?.isError !== true && (await asked()) === approvals)
  const outcome: CaseOutcome = ran() > calls ? 'runs' : (await asked()) > approvals ? 'asks' : 'refused'
  return outcome
}

const codeOf = ({ status, body }: { status: number; body: unknown }) => [
  status,
  (body as { error?: { code?: string } }).error?.code,
]

for (const era of [LEGACY, MODERN] as const)
  describe(`runs through the gateway, ${era}`, () => {
    for (const [name, steps] of Object.entries(RUN_CASES))
      it(name, async () => {
        const root = await startRun({ user: 'vera', userWords: USER_WORDS })
        const child = await startRun({ parent: root.id })
        const tokens = { root: root.token, child: child.token }
        for (const [which, tool, input, expected] of steps)
          assert.equal(await outcomeOf(tokens[which], era, tool, input), expected, `${which} ${tool}`)
        const { records } = (await gateway.api('/api/audit')).body as { records: readonly AuditRecord[] }
        const runs = new Set(records.flatMap(({ tool, run_id: run }) => (tool === undefined ? [] : [run])))
        assert.ok(
          [...runs].every((run) => run === root.id || run === child.id),
          JSON.stringify([...runs]),
        )
      })

    it('leave a client nothing to gain by another session, run or label of its own', async () => {
      const { token } = await startRun({ user: 'vera' })
      const other = await startRun({ user: 'vera' })
      const meta = {
        run: other.id,
        labels: ['trusted'],
        runId: other.id,
        'toolgate/run': other.id,
        userWords: ['eve@evil.example'],
      }
      const begun = await ask(token, LEGACY, 'initialize', {
        protocolVersion: LEGACY,
        capabilities: {},
        clientInfo: { name: 'x', version: '1' },
      })
      const session = String(begun.headers['mcp-session-id'])
      assert.equal(await outcomeOf(token, era, 'web:fetch', {}), 'runs')
      const headers = era === LEGACY ? { 'mcp-session-id': session } : { 'toolgate-run': other.id }
      assert.equal(await outcomeOf(token, era, 'mail:send', { to: 'eve@evil.example' }, meta, headers), 'asks')
      assert.equal(await outcomeOf(other.token, era, 'mail:send', { to: 'eve@evil.example' }), 'runs')
    })

    it('are for calls without a token those of user and client: another key or session cleans nothing', async () => {
      assert.equal(await outcomeOf(VERA, era, 'web:fetch', {}), 'runs')
      assert.equal(await outcomeOf(VERA_TOO, era, 'mail:send', { to: 'ann@acme.example' }), 'asks')
      const { token } = await startRun({ user: 'vera' })
      assert.equal(await outcomeOf(token, era, 'mail:send', { to: 'ann@acme.example' }), 'runs')
    })

    it('are narrowed by tools and policies, which grant nothing, and again for a child', async () => {
      const names = async (token: string) => {
        const { result } = (await ask(token, era, 'tools/list')).json() as RpcAnswer
        return (result?.tools ?? []).map(({ name }) => name).toSorted()
      }
      const root = await startRun({
        user: 'vera',
        tools: ['web:*', 'mail:*', 'nothing:*'],
        policy: [{ deny: ['mail:send'] }],
      })
      assert.deepEqual(await names(root.token), ['web__fetch'])
      assert.equal(await outcomeOf(root.token, era, 'mail:send', { to: 'ann@acme.example' }), 'refused')
      const child = await startRun({ parent: root.id, tools: ['contacts:*', 'mail:*'] })
      assert.deepEqual(await names(child.token), [])
      assert.equal(await outcomeOf(child.token, era, 'mail:send', {}), 'refused')
    })

    it('end: a token that was revoked, has expired or was made up opens nothing, nor do those below it', async () => {
      const statusOf = async (token: string) => (await ask(token, era, 'tools/list')).status
      const root = await startRun({ user: 'vera' })
      const child = await startRun({ parent: root.id })
      const grandchild = await startRun({ parent: child.id })
      const sibling = await startRun({ parent: root.id })
      const all = [root, child, grandchild, sibling].map(({ token }) => token)
      assert.deepEqual(await Promise.all(all.map(statusOf)), [200, 200, 200, 200])
      assert.deepEqual(codeOf(await end(child.id, OTHER_HOST)), [404, 'run_unknown'])
      assert.equal((await end(child.id)).status, 200)
      assert.deepEqual(await Promise.all(all.map(statusOf)), [200, 401, 401, 200])
      await end(root.id)
      assert.deepEqual(await Promise.all(all.map(statusOf)), [401, 401, 401, 401])
      const short = await startRun({ user: 'vera', ttlMs: 1 })
      assert.deepEqual(
        await Promise.all([short.token, `tgr_${'A'.repeat(43)}`, `${sibling.token}x`, root.id].map(statusOf)),
        [401, 401, 401, 401],
      )
    })

    it('end with the key of their host, and with their caller', async () => {
      const status = async (token: string) => (await ask(token, era, 'tools/list')).status
      const ofHost = await startRun({ user: 'vera' })
      const ofOther = await startRun({ user: 'vera' }, OTHER_HOST)
      assert.deepEqual([await status(ofHost.token), await status(ofOther.token)], [200, 200])
      callers = KEYS.filter(({ caller, for: use }) => use !== 'host' || caller.user !== 'runner')
      await gateway.reload()
      assert.deepEqual([await status(ofHost.token), await status(ofOther.token)], [401, 200])
      callers = KEYS.filter(({ caller }) => caller.user !== 'vera')
      await gateway.reload()
      assert.equal(await status(ofOther.token), 401)
    })
  })

describe('a restart', () => {
  it('leaves tokens usable, and what their runs, their children and callers without a run have done known', async (t) => {
    const folder = tempFolder()
    t.after(() => folder.remove())
    const state = { store: 'sqlite', path: join(folder.path, 'state.db') } as const
    await gateway.close()
    gateway = await start({ state })
    const [clean, tainted] = [
      await startRun({ user: 'vera', userWords: USER_WORDS }),
      await startRun({ user: 'vera', userWords: USER_WORDS }),
    ]
    for (const key of [tainted.token, VERA]) assert.equal(await outcomeOf(key, MODERN, 'web:fetch', {}), 'runs')
    await gateway.close()
    gateway = await start({ state })
    const mail = (key: string) => outcomeOf(key, MODERN, 'mail:send', { to: 'nobody@evil.example' })
    for (const { token } of [clean, await startRun({ parent: clean.id })]) assert.equal(await mail(token), 'runs')
    for (const { token } of [tainted, await startRun({ parent: tainted.id })]) assert.equal(await mail(token), 'asks')
    assert.equal(await mail(VERA), 'asks')
  })
})

describe('POST /api/runs', () => {
  it('is for keys of hosts alone: no agent, person or run starts a run', async () => {
    const { token } = await startRun({ user: 'vera' })
    for (const key of [VERA, token, 'demo-console'])
      assert.deepEqual(codeOf(await post({ user: 'vera' }, key)), [403, 'key_not_for_hosts'])
    assert.deepEqual(codeOf(await post({ user: 'vera' }, 'no-such-key-at-all')), [401, 'unauthenticated'])
    assert.deepEqual(codeOf(await end('r-1', VERA)), [403, 'key_not_for_console'])
    assert.equal((await ask(HOST, MODERN, 'tools/list')).status, 403)
  })

  it('refuses what would widen, with the name of the field', async () => {
    const root = await startRun({ user: 'vera', ttlMs: 60_000 })
    const messageOf = async (body: object, key = HOST) => {
      const answer = await post(body, key)
      assert.equal(answer.status, 400)
      return (answer.body as { error: { message: string } }).error.message
    }
    assert.match(await messageOf({ user: 'nobody' }), /^user: no caller for "mcp" is "nobody"/)
    assert.match(await messageOf({}), /^user: is missing/)
    assert.match(await messageOf({ user: 'vera', tenant: 'other' }, HOST_OF_TENANT), /^tenant: is another one/)
    assert.match(await messageOf({ user: 'vera' }, HOST_OF_TENANT), /no caller for "mcp" is "vera"/)
    assert.match(await messageOf({ parent: root.id }, OTHER_HOST), /^parent: no run with the id ".+" goes on\.$/)
    assert.match(await messageOf({ parent: root.id, userWords: ['x'] }), /"userWords" is that of the parent/)
    assert.match(await messageOf({ parent: root.id, user: 'viewer' }), /"user" is that of the parent/)
    assert.match(await messageOf({ user: 'vera', ttlMs: 86_400_001 }), /^ttlMs: must be/)
    assert.match(await messageOf({ user: 'vera', policy: [{ deny: ['group:none'] }] }), /group/)
    assert.match(
      await messageOf({ user: 'vera', policy: [{ allow: [{ match: '*', when: "'untrusted' in run.labels" }] }] }),
      /may only tighten/,
    )
    assert.match(await messageOf({ user: 'vera', tools: 'web:*' }), /"tools" must be a list/)
    assert.match(await messageOf({ user: 'vera', caller: { user: 'admin' } }), /"caller" is unknown/)
    const child = await startRun({ parent: root.id, ttlMs: 80_000_000 })
    assert.equal(child.expiresAt, root.expiresAt)
  })

  it('opens the same for agents without MCP', async () => {
    const { token } = await startRun({ user: 'vera', tools: ['web:*'] })
    const { body } = await gateway.api('/api/list', { key: token })
    assert.deepEqual(
      (body as { items: readonly { id: string }[] }).items.map(({ id }) => id),
      ['web:fetch'],
    )
  })
})

it('shows people what a run has read, and where its call sends', async () => {
  const { token } = await startRun({ user: 'vera', userWords: USER_WORDS })
  assert.equal(await outcomeOf(token, MODERN, 'web:fetch', {}), 'runs')
  assert.equal(await outcomeOf(token, MODERN, 'mail:send', { to: 'eve@evil.example' }), 'asks')
  const { approvals } = (await gateway.api('/api/approvals')).body as ApprovalsBody
  const trail = approvals[0]?.trail
  assert.deepEqual(
    trail?.read.map(({ label, calls }) => [label, calls[0]?.tool]),
    [['untrusted', 'web:fetch']],
  )
  assert.deepEqual(
    trail?.sends.map(({ field, value }) => [field, value]),
    [['to', 'eve@evil.example']],
  )
})

it('takes the text of a tool’s description for nobody’s words', async () => {
  const { token } = await startRun({ user: 'vera', userWords: USER_WORDS })
  assert.match(JSON.stringify((await ask(token, MODERN, 'tools/list')).json()), /help@mail\.example/)
  assert.equal(await outcomeOf(token, MODERN, 'web:fetch', {}), 'runs')
  assert.equal(await outcomeOf(token, MODERN, 'mail:send', { to: 'help@mail.example' }), 'asks')
  const { approvals } = (await gateway.api('/api/approvals')).body as ApprovalsBody
  assert.deepEqual(
    approvals[0]?.trail?.sends.map(({ origin }) => origin),
    ['unknown'],
  )
})

it('names what a run has read only to a run that sees it', async () => {
  const root = await startRun({ user: 'vera' })
  const child = await startRun({ parent: root.id, tools: ['mail:*', 'refunds:*'] })
  assert.equal(await outcomeOf(root.token, MODERN, 'web:fetch', {}), 'runs')
  const told = async (token: string) => {
    const mail = { name: 'mail__send', arguments: { to: 'eve@evil.example' } }
    const calls = [mail, { name: 'refunds__close', arguments: {} }]
    const overMcp = await Promise.all(calls.map(async (call) => (await ask(token, MODERN, 'tools/call', call)).json()))
    const bodies = ['/api/decide', '/api/call'].flatMap((path) =>
      [{ tool: 'mail:send', input: mail.arguments }, { tool: 'refunds:close' }].map(
        async (body) => (await gateway.api(path, { key: token, method: 'POST', body })).body,
      ),
    )
    return JSON.stringify([overMcp, await Promise.all(bodies)])
  }
  const seen = await told(root.token)
  assert.match(seen, /read web__fetch, whose output is untrusted/)
  assert.match(seen, /no successful call of fraud__report/)
  const hidden = await told(child.token)
  assert.match(hidden, /read something whose output is untrusted/)
  assert.match(hidden, /no successful call of another tool/)
  assert.doesNotMatch(hidden, /web|fetch|fraud|report/)
})

it('tells people what is left of a budget, and finds the records of a run', async () => {
  const { id, token } = await startRun({ user: 'vera' })
  const steps = [
    ['fraud:check', { order: '7' }, 'runs'],
    ['refunds:pay', { order: '7', amount: '400.00' }, 'runs'],
    ['refunds:pay', { order: '7', amount: '100.01' }, 'refused'],
  ] as const
  for (const [tool, input, expected] of steps) assert.equal(await outcomeOf(token, MODERN, tool, input), expected)
  const { limits } = (await gateway.api('/api/limits')).body as LimitsBody
  assert.deepEqual(
    limits.map(({ rule, holder, used, remaining, max }) => [rule, holder, used, remaining, max]),
    [['refunds:pay', { user: 'vera' }, 40_000, 10_000, 50_000]],
  )
  assert.ok((limits[0]?.until ?? 0) > Date.now())
  assert.deepEqual((await gateway.api('/api/limits', { key: OF_ACME })).body, { limits: [] })
  const { records } = (await gateway.api(`/api/audit?run=${id}`)).body as AuditBody
  assert.deepEqual(
    records.toReversed().map(({ event, tool }) => [event, tool]),
    [
      ['run_started', undefined],
      ['tool_call', 'fraud:check'],
      ['tool_result', 'fraud:check'],
      ['tool_call', 'refunds:pay'],
      ['tool_result', 'refunds:pay'],
      ['tool_rate_limited', 'refunds:pay'],
    ],
  )
  const headers = { authorization: 'Bearer demo-console' }
  const metrics = await send(`${gateway.url}/metrics`, { method: 'GET', headers })
  assert.match(metrics.text, /toolgate_budget_used_ratio\{rule="refunds:pay",limit="50000\/86400"\} 0\.8/)
})

describe('the runs that go on', () => {
  const listed = async (key?: string, query = '') => {
    const { status, body } = await gateway.api(`/api/runs${query}`, key === undefined ? {} : { key })
    assert.equal(status, 200, JSON.stringify(body))
    return body as RunsBody
  }
  const idsOf = ({ runs }: RunsBody) => runs.map(({ id }) => id).toSorted()
  const events = async (event: string) =>
    ((await gateway.api(`/api/audit?event=${event}`)).body as { records: readonly AuditRecord[] }).records.toReversed()

  it('are listed for their host, and for people of their tenant, without tokens and words', async () => {
    const root = await startRun({ user: 'vera', userWords: ['secret words'], tools: ['web:*'] })
    const child = await startRun({ parent: root.id })
    const acme = await startRun({ user: 'nora' }, HOST_OF_TENANT)
    assert.deepEqual(idsOf(await listed(HOST)), [root.id, child.id].toSorted())
    assert.deepEqual(idsOf(await listed(OTHER_HOST)), [])
    assert.deepEqual(idsOf(await listed(OF_ACME)), [acme.id])
    const all = await listed()
    assert.deepEqual(idsOf(all), [root.id, child.id, acme.id].toSorted())
    assert.doesNotMatch(JSON.stringify(all), /tgr_|secret words|hash/)
    const row = all.runs.find(({ id }) => id === child.id)
    assert.deepEqual([row?.user, row?.host, row?.parent], ['vera', 'runner', root.id])
    assert.match(row?.narrows ?? '', /web:\*/)
    const one = await listed(undefined, '?limit=1&user=vera')
    assert.deepEqual([one.runs.length, one.total], [1, 2])
    assert.deepEqual(codeOf(await gateway.api('/api/runs?limit=0')), [400, 'query_invalid'])
    assert.deepEqual(codeOf(await gateway.api('/api/runs', { key: VERA })), [403, 'key_not_for_console'])
  })

  it('are listed with their calls and labels, also once they have ended, and those of others to nobody of a tenant', async () => {
    const run = await startRun({ user: 'vera' })
    const other = await startRun({ user: 'nora', tenant: 'acme' })
    for (const { token } of [run, other]) {
      await ask(token, MODERN, 'tools/call', { name: 'web__fetch', arguments: { url: 'https://example.com' } })
      await ask(token, MODERN, 'tools/call', { name: 'no__tool', arguments: {} })
    }
    await end(run.id)
    const found = await listed()
    const rowOf = (id: string) => found.runs.find((row) => row.id === id)
    const row = rowOf(run.id)
    assert.deepEqual([row?.state, row?.end, row?.user, row?.calls, row?.refused], ['ended', 'ended', 'vera', 2, 1])
    assert.deepEqual(row?.labels, rowOf(other.id)?.labels)
    assert.ok(row?.labels.includes('untrusted'), row?.labels.join())
    assert.ok(found.labels.includes('untrusted'))
    assert.equal(rowOf(other.id)?.state, 'open')
    assert.deepEqual(idsOf(await listed(OF_ACME)), [other.id])
    assert.deepEqual(idsOf(await listed(OF_ACME, '?tenant=acme&label=untrusted')), [other.id])
    assert.deepEqual(idsOf(await listed(OF_ACME, `?text=${run.id}`)), [])
    assert.deepEqual(idsOf(await listed(undefined, '?state=ended')), [run.id])
    assert.deepEqual(idsOf(await listed(HOST)), [other.id], 'a host sees its own that go on')
    assert.deepEqual(idsOf(await listed(OTHER_HOST)), [])
    const first = await listed(undefined, '?limit=1')
    const second = await listed(undefined, `?limit=1&before=${first.next}`)
    assert.deepEqual(new Set([...idsOf(first), ...idsOf(second)]), new Set([run.id, other.id]))
    assert.equal(second.next, undefined)
  })

  it('are listed from an audit in JSON lines, after a restart too', async (t) => {
    const folder = tempFolder()
    t.after(() => folder.remove())
    const audit = { store: 'jsonl', path: join(folder.path, 'audit.jsonl'), mode: 'batched' } as const
    await gateway.close()
    gateway = await start({ audit })
    const run = await startRun({ user: 'vera' })
    const other = await startRun({ user: 'nora', tenant: 'acme' })
    for (const { token } of [run, other])
      await ask(token, MODERN, 'tools/call', { name: 'web__fetch', arguments: { url: 'https://example.com' } })
    await end(run.id)
    const seen = async () => {
      const { runs, isComplete } = await listed()
      assert.equal(isComplete, true)
      return [run, other].map(({ id }) => runs.find((row) => row.id === id))
    }
    const shown = await seen()
    assert.deepEqual(
      shown.map((row) => [row?.user, row?.state, row?.calls, row?.labels.includes('untrusted')]),
      [
        ['vera', 'ended', 1, true],
        ['nora', 'open', 1, true],
      ],
    )
    await gateway.close()
    gateway = await start({ audit })
    const [ended, open] = await seen()
    assert.deepEqual(ended, shown[0])
    assert.deepEqual([open?.user, open?.calls, open?.labels], ['nora', 1, shown[1]?.labels])
    assert.deepEqual(idsOf(await listed(OF_ACME)), [other.id])
  })

  it('are revoked by people with a role, within their tenant', async () => {
    const root = await startRun({ user: 'vera' })
    const child = await startRun({ parent: root.id })
    assert.deepEqual(codeOf(await end(root.id, READER)), [403, 'run_forbidden'])
    assert.deepEqual(codeOf(await end(root.id, OF_ACME)), [404, 'run_unknown'])
    assert.deepEqual(codeOf(await end('r-none', 'demo-console')), [404, 'run_unknown'])
    assert.equal((await ask(child.token, MODERN, 'tools/list')).status, 200)
    assert.equal((await end(root.id, 'demo-console')).status, 200)
    for (const { token } of [root, child]) assert.equal((await ask(token, MODERN, 'tools/list')).status, 401)
    assert.deepEqual(idsOf(await listed(undefined, '?state=open')), [])
  })

  it('leave a record when they start and when they end, each once', async () => {
    const root = await startRun({ user: 'vera', tools: ['web:*'] })
    const child = await startRun({ parent: root.id })
    const other = await startRun({ user: 'vera' })
    await end(root.id, 'demo-console')
    await end(other.id)
    const started = await events('run_started')
    assert.deepEqual(
      started.map(({ run_id: run, user_id: user, actor, reason }) => [run, user, actor, reason]),
      [
        [root.id, 'vera', 'runner', 'root'],
        [child.id, 'vera', 'runner', 'child'],
        [other.id, 'vera', 'runner', 'root'],
      ],
    )
    assert.match(started[0]?.detail ?? '', /^until .*, narrowed by policy .*web:\*/)
    assert.match(started[1]?.detail ?? '', new RegExp(`^of ${root.id}, until`))
    const ended = (await events('run_ended')).map(({ run_id: run, actor, reason }) => [run, actor, reason])
    assert.deepEqual(new Set(ended.map((row) => JSON.stringify(row))).size, 3)
    assert.deepEqual(
      new Map(ended.map(([run, ...rest]) => [run, rest])),
      new Map([
        [root.id, ['owner', 'revoked']],
        [child.id, ['owner', 'parent_ended']],
        [other.id, ['runner', 'ended']],
      ]),
    )
  })
})
