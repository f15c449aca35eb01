import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { after, beforeEach, describe, it } from 'node:test'
import { type Caller, createGate, defineTool, type Gate, memoryAudit } from '@toolgate/core'
import { systemClock } from '@toolgate/core/stores'
import { authenticateKeys } from '../auth/keyring.ts'
import { createOriginRules } from '../auth/origin.ts'
import type { CallerConfig } from '../config/config.ts'
import { type Api, createApi } from './api.ts'
import type { AgentCallBody, ErrorBody, WhyInputBody } from './wire.ts'

const opened: Gate[] = []
after(async () => {
  for (const gate of opened) await gate.close()
})

function key(name: string, kind: 'mcp' | 'console', caller: Caller, more: Partial<CallerConfig> = {}): CallerConfig {
  return { keyHash: createHash('sha256').update(name).digest(), for: kind, caller, ...more }
}

function open() {
  const callers = [
    key('owner', 'console', { user: 'vera', roles: ['approver'] }),
    key('reader', 'console', { user: 'rita' }),
    key('tenant', 'console', { user: 'vera', tenant: 'acme', roles: ['operator'] }),
    key('alone', 'console', { user: 'alma', roles: ['operator'] }),
    key('late', 'console', { user: 'lena', roles: ['operator'] }),
    key('vera-agent', 'mcp', { user: 'vera', roles: ['writer'] }, { apps: ['desk'] }),
    key('rita-agent', 'mcp', { user: 'rita', roles: ['writer'] }),
    key('lena-agent', 'mcp', { user: 'lena', roles: ['writer'] }, { expiresAtMs: 1 }),
  ]
  const ran: unknown[] = []
  const tools = ['read', 'write', 'hidden'].map((name) =>
    defineTool({
      namespace: 'files',
      name,
      inputSchema: { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] },
      execute: (input) => {
        ran.push([name, input])
        return 'ok'
      },
    }),
  )
  const audit = memoryAudit()
  const gate = createGate({
    tools,
    audit,
    apps: { desk: { tools: ['files:*'] } },
    policy: [
      {
        name: 'files',
        allow: ['*'],
        deny: [
          { match: 'files:write', input: "input.path == '/etc'" },
          { match: 'files:hidden', unless: "'admin' in caller.roles" },
        ],
        ask: [{ match: 'files:write', input: "input.path == '/home'" }],
      },
    ],
    limits: ['*:2/60'],
  })
  opened.push(gate)
  const api = createApi({
    authenticator: authenticateKeys(callers),
    origins: createOriginRules({ host: '127.0.0.1', port: 8787, origins: [] }),
    callers: () => callers,
    view: (caller, app) => gate.view(caller, { app }),
    tools: () => gate.catalog.snapshot().tools,
    wireName: (id) => id,
    groups: () => [],
    servers: () => [],
    audit,
    approvals: gate.approvals,
    agents: {
      view: async (caller, app) => gate.view(caller, { app }),
      approvalUrl: () => undefined,
      isStopping: () => false,
    },
    clock: systemClock,
    policyRevision: () => 1,
    catalogRevision: () => 1,
  })
  return { api, audit, ran, callers }
}

async function post<Body>(api: Api, path: string, body: object, as = 'owner'): Promise<Body & Partial<ErrorBody>> {
  const answer = await api.fetch(
    new Request(`http://127.0.0.1:8787${path}`, {
      method: 'POST',
      headers: { host: '127.0.0.1:8787', authorization: `Bearer ${as}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    }),
  )
  return (await answer.json()) as Body & Partial<ErrorBody>
}

let world: ReturnType<typeof open>
beforeEach(() => (world = open()))

describe('POST /api/why', () => {
  const why = (body: object, as?: string) => post<WhyInputBody>(world.api, '/api/why', { as: 'rita', ...body }, as)

  it('says which rule decides an input and how with another one, and runs and records nothing', async () => {
    for (const [path, outcome, clause] of [
      ['/tmp', 'allow', undefined],
      ['/home', 'ask', 'ask'],
      ['/etc', 'deny', 'deny'],
    ] as const) {
      const body = await why({ tool: 'files:write', input: { path } })
      assert.equal(body.outcome, outcome)
      assert.equal(body.reasons[0]?.clause?.kind, clause)
    }
    assert.match((await why({ tool: 'files:write', input: {} })).reasons[0]?.text ?? '', /path/)
    assert.equal((await why({ tool: 'files:hidden', input: { path: 'x' } })).reasons[0]?.code, 'policy_denied')
    assert.deepEqual([world.ran, world.audit.records], [[], []])
  })

  it('says what would have to change, for an input and for a caller', async () => {
    const texts = async (body: object) =>
      (await why(body)).wouldAllow?.map((way) => way.map(({ text }) => text).join(' + '))
    assert.equal(await texts({ tool: 'files:write', input: { path: '/tmp' } }), undefined)
    assert.deepEqual(await texts({ tool: 'files:write', input: { path: '/etc' } }), [
      '`files#deny[0]` removed, or narrowed',
    ])
    assert.deepEqual(await texts({ tool: 'files:hidden', input: { path: 'x' } }), [
      '`admin` in `roles`',
      '`files#deny[1]` removed, or narrowed',
    ])
  })

  it('takes no limit', async () => {
    for (let i = 0; i < 5; i++) assert.equal((await why({ tool: 'files:read', input: { path: 'x' } })).outcome, 'allow')
  })

  it('names what is wrong with a body, and shows no caller of another tenant', async () => {
    const code = async (body: object, as?: string) => {
      const { error } = await why(body, as)
      return [error?.code, error?.message]
    }
    assert.deepEqual(await code({ input: {} }), ['body_invalid', 'The field "tool" is missing.'])
    assert.deepEqual(await code({ tool: 'files:read', input: [] }), [
      'body_invalid',
      'The field "input" must be an object.',
    ])
    assert.equal((await code({ tool: 'files:raed', input: {} }))[0], 'tool_unknown')
    assert.equal((await code({ tool: 'files:read', input: {} }, 'tenant'))[0], 'caller_unknown')
  })
})

describe('POST /api/tool/call', () => {
  const call = (body: object, as?: string) =>
    post<AgentCallBody>(world.api, '/api/tool/call', { tool: 'files:write', input: { path: '/tmp' }, ...body }, as)
  const refused = async (body: object, as?: string) => {
    const { error } = await call(body, as)
    assert.deepEqual([world.ran, world.audit.records], [[], []])
    return error?.code
  }

  it("calls as an agent of the person's own user, through every check, and records it", async () => {
    const done = await call({ as: 'vera', app: 'desk' })
    assert.equal(done.status, 'done')
    assert.deepEqual(world.ran, [['write', { path: '/tmp' }]])
    const [record] = world.audit.records
    assert.equal(record?.user_id, 'vera')
    assert.match(record?.tool_call_id ?? '', /^console-/)
    assert.equal((await call({ as: 'vera', app: 'desk', input: { path: '/etc' } })).status, 'refused')
    assert.equal((await call({ as: 'vera', app: 'desk', input: { path: '/home' } })).status, 'waiting')
    assert.equal((await call({ as: 'vera', app: 'desk', tool: 'files:hidden' })).status, 'refused')
    assert.equal(world.ran.length, 1)
  })

  it('is as no other user, whatever the person sees of them', async () => {
    assert.equal(await refused({ as: 'rita' }), 'call_forbidden')
    assert.equal(await refused({ caller: JSON.stringify({ user: 'rita', roles: ['writer'] }) }), 'call_forbidden')
  })

  it('has no rights beyond those of a key of an agent of this user and tenant', async () => {
    assert.equal(
      await refused({ caller: JSON.stringify({ user: 'vera', roles: ['admin'] }), app: 'desk' }),
      'call_forbidden',
    )
    assert.equal(await refused({ as: 'alma' }, 'alone'), 'call_forbidden', 'a console key is no agent')
    assert.equal(
      await refused({ caller: JSON.stringify({ user: 'vera', tenant: 'acme', roles: ['writer'] }) }, 'tenant'),
      'call_forbidden',
      'another tenant',
    )
    assert.equal(await refused({ as: 'lena' }, 'late'), 'call_forbidden', 'an expired key')
    assert.equal(await refused({ as: 'vera' }), 'call_forbidden', 'the key opens one app only')
  })

  it('takes the role operator or approver, and a console key', async () => {
    assert.equal(await refused({ as: 'rita' }, 'reader'), 'call_forbidden')
    assert.equal(await refused({ as: 'vera', app: 'desk' }, 'vera-agent'), 'key_not_for_console')
  })
})
