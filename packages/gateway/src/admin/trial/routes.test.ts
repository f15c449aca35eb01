import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { after, beforeEach, describe, it } from 'node:test'
import { type Caller, createGate, defineTool, type Gate, memoryAudit } from '@toolgate/core'
import { memoryHistories } from '@toolgate/core/stores'
import type { CallerConfig } from '../../config/config.ts'
import type { HttpApi } from '../http/api.ts'
import { apiOf, heartOf, nameFor } from '../../testing/heart.ts'
import type {
  AgentCallBody,
  ErrorBody,
  MatrixBody,
  ToolBody,
  ToolsBody,
  WhyBody,
  WhyInputBody,
} from '../../model/rows.ts'

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
  const histories = memoryHistories()
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
      {
        name: 'runs',
        deny: [
          { match: 'files:write', input: "input.path == '/out' && 'untrusted' in run.labels" },
          { match: 'files:write', input: "input.path == '/sum' && !run.called('files:read', { 'output.ok': true })" },
        ],
      },
    ],
    history: { store: histories },
    limits: ['*:2/60'],
  })
  opened.push(gate)
  const api = apiOf(heartOf({ gate, callers, audit, catalog: { lists: nameFor((id) => id) } }))
  return { api, gate, audit, histories, ran, callers }
}

async function post<Body>(
  api: Pick<HttpApi, 'fetch'>,
  path: string,
  body: object,
  as = 'owner',
  headers: Readonly<Record<string, string>> = { authorization: `Bearer ${as}` },
): Promise<Body & Partial<ErrorBody>> {
  const answer = await api.fetch(
    new Request(`http://127.0.0.1:8787${path}`, {
      method: 'POST',
      headers: { host: '127.0.0.1:8787', 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    }),
  )
  return (await answer.json()) as Body & Partial<ErrorBody>
}

let world: ReturnType<typeof open>
beforeEach(() => (world = open()))

describe('a caller that is tried', () => {
  for (const path of ['/api/why', '/api/tool/call'])
    for (const caller of [
      'no JSON',
      '"text"',
      '[]',
      '{"user":1}',
      '{"nope":1}',
      7,
      [],
      { roles: 'x' },
      'x'.repeat(5000),
    ])
      it(`is refused by ${path} as an invalid body: ${JSON.stringify(caller).slice(0, 40)}`, async () => {
        const { error } = await post(world.api, path, { tool: 'files:read', caller })
        assert.equal(error?.code, 'body_invalid')
        assert.match(error.message, /"caller"/)
      })
})

describe('what a decision depends on', () => {
  const get = async <Body>(path: string, as = 'owner'): Promise<Body> => {
    const headers = { host: '127.0.0.1:8787', authorization: `Bearer ${as}` }
    return (await world.api.fetch(new Request(`http://127.0.0.1:8787${path}`, { headers }))).json() as Promise<Body>
  }
  const why = (tool: string, as?: string) => get<WhyBody>(`/api/why?tool=${tool}&as=rita`, as)

  it('is in why: each rule that may still ask or deny, with an input that shows it', async () => {
    const { outcome, mayStill = [] } = await why('files:write')
    assert.equal(outcome, 'allow')
    assert.deepEqual(
      mayStill.map(({ outcome: word, on, path, example }) => [word, on, path, example]),
      [
        ['deny', 'input', 'policy[0].deny[0]', { path: '/etc' }],
        ['deny', 'run', 'policy[1].deny[0]', undefined],
        ['deny', 'run', 'policy[1].deny[1]', undefined],
        ['ask', 'input', 'policy[0].ask[0]', { path: '/home' }],
      ],
    )
    assert.equal((await why('files:read')).mayStill, undefined)
    assert.equal((await why('files:hidden')).mayStill, undefined)
  })

  it('is in the lists and on the page of a tool, in short', async () => {
    const short = [
      { outcome: 'deny', on: 'input' },
      { outcome: 'deny', on: 'run' },
      { outcome: 'ask', on: 'input' },
    ]
    const { tools } = await get<ToolsBody>('/api/tools?as=rita')
    assert.deepEqual(Object.fromEntries(tools.map(({ id, mayStill }) => [id, mayStill])), {
      'files:hidden': undefined,
      'files:read': undefined,
      'files:write': short,
    })
    const page = await get<ToolBody>('/api/tool?tool=files:write&as=rita')
    assert.deepEqual([page.tool.mayStill, page.mayStill?.length], [short, 4])
    const { columns } = await get<MatrixBody>('/api/matrix?open=server%20files')
    const rita = columns.find(({ names, for: kind }) => names.includes('rita') && kind === 'mcp')
    assert.equal(rita?.cells[0]?.depends, 1)
    assert.deepEqual(
      rita?.tools?.map(({ mayStill }) => mayStill),
      [undefined, undefined, short],
    )
  })

  it('leaves a turn to others after each caller of the matrix, also where all is known', async () => {
    const { columns } = await get<MatrixBody>('/api/matrix')
    let turns = 0
    let next = setImmediate(function count() {
      turns++
      next = setImmediate(count)
    })
    await get<MatrixBody>('/api/matrix')
    clearImmediate(next)
    assert.ok(turns >= columns.length, `${turns} turns, ${columns.length} columns`)
  })

  it('names a limit while it is used up, in lists that are kept, too', async () => {
    const caller = { user: 'rita', roles: ['writer'] }
    const view = await world.gate.view(caller)
    const rowOf = async () => {
      const { tools } = await get<ToolsBody>('/api/tools?as=rita')
      return tools.find(({ id }) => id === 'files:read')?.mayStill
    }
    assert.equal(await rowOf(), undefined)
    for (let i = 0; i < 2; i++) await view.call({ tool: 'files:read', input: { path: 'x' } })
    assert.deepEqual(await rowOf(), [{ outcome: 'wait', on: 'now' }])
    const [limit] = (await why('files:read')).mayStill ?? []
    assert.deepEqual([limit?.on, limit?.code, limit?.limit], ['now', 'rate_limited', '2/60'])
    assert.ok((limit?.resetMs ?? 0) > 0)
  })

  it('names no text of a rule and no example to a person of a tenant', async () => {
    const { mayStill = [] } = await get<WhyBody>('/api/why?tool=files:write&as=vera', 'tenant')
    assert.ok(mayStill.length > 0)
    assert.doesNotMatch(JSON.stringify(mayStill), /input\.path|\/etc|\/home|example/)
  })

  it('has no reasons that depend on the input in the answer to one input', async () => {
    const body = { as: 'rita', tool: 'files:write', input: { path: '/tmp' } }
    const { outcome, mayStill = [] } = await post<WhyInputBody>(world.api, '/api/why', body)
    assert.equal(outcome, 'allow')
    assert.deepEqual(
      mayStill.map(({ on }) => on),
      ['run', 'run'],
    )
  })
})

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

describe('POST /api/why with a history', () => {
  const TO_OUT = { tool: 'files:write', input: { path: '/out' } }
  const TO_SUM = { tool: 'files:write', input: { path: '/sum' } }
  const why = (body: object, as?: string) => post<WhyInputBody>(world.api, '/api/why', { as: 'rita', ...body }, as)

  it('judges the call after what is stated, as an object or as YAML', async () => {
    const read = { tool: 'files:read', input: { path: 'a' }, output: { ok: true }, ago: '5m' }
    for (const [call, history, outcome] of [
      [TO_OUT, undefined, 'allow'],
      [TO_OUT, {}, 'allow'],
      [TO_OUT, { labels: ['untrusted'] }, 'deny'],
      [TO_OUT, 'labels: [untrusted]', 'deny'],
      [TO_OUT, { calls: [read] }, 'deny'],
      [TO_OUT, { lost: true }, 'deny'],
      [TO_SUM, undefined, 'deny'],
      [TO_SUM, { calls: [read] }, 'allow'],
      [TO_SUM, { calls: [{ ...read, output: { ok: false } }] }, 'deny'],
      [TO_SUM, 'calls:\n  - { tool: files:read, input: { path: a }, output: { ok: true } }', 'allow'],
    ] as const) {
      const body = await why({ ...call, ...(history !== undefined && { history }) })
      assert.equal(body.outcome, outcome, JSON.stringify([call, history, body]))
    }
  })

  it('says which clause decides, what each layer says, and what would have to change', async () => {
    const { reasons, answers, wouldAllow = [] } = await why({ ...TO_OUT, history: { labels: ['untrusted'] } })
    assert.equal(reasons[0]?.path, 'policy[1].deny[0]')
    assert.deepEqual(answers[0], { layer: 'input', outcome: 'deny' })
    assert.ok(answers.some(({ layer, outcome }) => layer === 'scopes' && outcome === 'allow'))
    assert.ok(wouldAllow.some(([change]) => change?.path === 'policy[1].deny[0]'))
  })

  it('names what is wrong with a history, in YAML with line and column', async () => {
    for (const [history, message] of [
      [{ lables: [] }, 'history.lables: unknown key; did you mean "labels"?'],
      ['labels: [private]', 'history:1:10: labels[0]: unknown label "private"; known are untrusted'],
      [
        'calls:\n  - tool: files:raed\n    inptu: {}',
        'history:2:11: calls[0].tool: unknown tool "files:raed"; did you mean "files:read"?',
      ],
      ['calls:\n  - { tool: files:read }', 'history:2:5: calls[0]: cannot have been called so: the input'],
      ['labels: [', 'history:1:10: not YAML'],
      ['labels: &a [*a]', 'refers to a value that holds it'],
      ['x'.repeat(20), 'history:1:1: must be a mapping'],
      [7, 'history: must be a mapping'],
      [{ labels: Array.from({ length: 201 }, () => 'x') }, 'history.labels: has more than 200 labels'],
      [{ calls: Array.from({ length: 201 }, () => ({ tool: 'x' })) }, 'history.calls: has more than 200 calls'],
      [`calls: [${'[],'.repeat(6000)}]`, 'history:1:1: the text has more than 10000 YAML tokens'],
    ] as const) {
      const { error } = await why({ ...TO_OUT, history })
      assert.equal(error?.code, 'body_invalid')
      assert.ok(error.message.includes(message), `${error.message} has no ${message}`)
    }
    const { error } = await why({ ...TO_OUT, history: 'calls:\n  - tool: files:raed\n    inptu: {}' })
    assert.match(error?.message ?? '', /\nhistory:3:5: calls\[0\]\.inptu: unknown key/)
  })

  it('suggests names for the first that are misspelt', async () => {
    const calls = Array.from({ length: 8 }, () => ({ tool: 'files:raed' }))
    const { error } = await why({ ...TO_OUT, history: { calls } })
    const suggestions = error?.message.split('\n').map((line) => line.endsWith('did you mean "files:read"?'))
    assert.deepEqual(suggestions, [true, true, true, true, true, false, false, false])
  })

  it('keeps no history, takes no limit and counts for no clause, also of many at once', async () => {
    const asked = Array.from({ length: 16 }, (_, i) => why({ ...TO_OUT, caller: { user: `u${i}` }, as: undefined }))
    for (const body of await Promise.all(asked)) assert.equal(body.outcome, 'allow')
    for (const history of [{ labels: ['untrusted'] }, { calls: [{ tool: 'files:read', input: { path: 'a' } }] }])
      assert.equal((await why({ ...TO_OUT, history })).outcome, 'deny')
    assert.deepEqual([world.histories.size, world.ran, world.audit.records], [0, [], []])
    assert.ok(world.gate.coverage().every(({ hits }) => hits === 0))
  })

  it('answers a bounded number at once', async () => {
    const asked = Array.from({ length: 40 }, () => why(TO_OUT))
    const answers = (await Promise.all(asked)).map(({ error, outcome }) => error?.code ?? outcome)
    assert.deepEqual(
      [answers.filter((one) => one === 'allow').length, answers.filter((one) => one === 'dry_run_busy').length],
      [16, 24],
    )
    assert.equal((await why(TO_OUT)).outcome, 'allow')
  })

  it('is refused to pages of other origins, to agents, and for callers of another tenant', async () => {
    const code = async (headers: Readonly<Record<string, string>>) =>
      (await post<WhyInputBody>(world.api, '/api/why', { as: 'rita', ...TO_OUT }, '', headers)).error?.code
    const owner = { authorization: 'Bearer owner' }
    assert.equal(await code({ ...owner, origin: 'http://evil.example' }), 'origin_forbidden')
    assert.equal(await code({ ...owner, 'content-type': 'text/plain' }), 'media_type_unsupported')
    assert.equal(await code({}), 'unauthenticated')
    assert.equal(await code({ authorization: 'Bearer rita-agent' }), 'key_not_for_console')
    const login = await world.api.fetch(
      new Request('http://127.0.0.1:8787/api/login', {
        method: 'POST',
        headers: { host: '127.0.0.1:8787', 'content-type': 'application/json', origin: 'http://127.0.0.1:8787' },
        body: JSON.stringify({ key: 'owner' }),
      }),
    )
    const cookie = (login.headers.get('set-cookie') ?? '').split(';')[0] ?? ''
    assert.equal(await code({ cookie }), 'origin_forbidden', 'a cookie without an origin')
    assert.equal(await code({ cookie, origin: 'http://127.0.0.1:8787' }), undefined)
    assert.equal((await why({ ...TO_OUT, history: {} }, 'tenant')).error?.code, 'caller_unknown')
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
