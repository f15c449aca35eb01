import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type CallContext, defineTool } from '@toolgate/core'
import type { JsonObject } from '@toolgate/values/json'
import { RpcError } from '@toolgate/mcp'
import type { ServerMay } from '../../config/may.ts'
import { type ClientLink, clientLink } from './client-link.ts'
import { HeldCalls } from './held-calls.ts'
import { type AskEntry, MAX_ASKS, ServerAsks } from './server-asks.ts'

const ORIGIN = 'https://login.example.com'
const ALL: ServerMay = { elicit: true, sample: true, roots: true, log: true, open: [ORIGIN] }
const FORM = { message: 'Who are you?', requestedSchema: { type: 'object', properties: { name: { type: 'string' } } } }
const URL_ASK = { mode: 'url', message: 'Sign in.', url: `${ORIGIN}/start?x=1` }
const SAMPLE = { messages: [], maxTokens: 5 }
const TOOLS = { tools: [{ name: 'weather', inputSchema: { type: 'object' } }], toolChoice: { mode: 'auto' } }
const CAN = { elicitation: { form: {}, url: {} }, sampling: { tools: {} }, roots: {} }
const ASKED: readonly (readonly [keyof ServerMay, string, JsonObject])[] = [
  ['elicit', 'elicitation/create', FORM],
  ['open', 'elicitation/create', URL_ASK],
  ['sample', 'sampling/createMessage', SAMPLE],
  ['roots', 'roots/list', {}],
]
const tool = defineTool({ name: 'sign_in', namespace: 'files' })

interface SetUp {
  readonly may?: Partial<ServerMay>
  readonly per?: 'shared'
  readonly link?: Partial<ClientLink> | null
  readonly own?: string
}

function setUp({ may = ALL, per, link = {}, own }: SetUp = {}) {
  const records: AskEntry[] = []
  const logs: JsonObject[] = []
  const server = { name: 'files', may: { ...ALL, ...may }, per: per ?? ('user' as const) }
  const asks = new ServerAsks({
    server,
    isOwn: (origin) => origin === own,
    record: (entry) => void records.push(entry),
    held: new HeldCalls(),
  })
  const ask = async () => ({})
  const log = (params: JsonObject) => void logs.push(params)
  const context = link ? clientLink({ era: 'legacy', capabilities: CAN, ask, log, ...link }) : undefined
  const caller = { user: 'vera', tenant: 'acme' }
  const call = asks.ofCall({ callId: 'c1', tool, caller, context } as CallContext)
  return { call, records, logs }
}

const refuses = (ask: () => unknown, code: number, message: RegExp) =>
  assert.throws(ask, (error) => error instanceof RpcError && error.code === code && message.test(error.message))

describe('a request of a server', () => {
  it('is passed on with the name of the server first, and recorded', () => {
    const { call, records } = setUp()
    assert.deepEqual(call.admit('elicitation/create', { ...FORM, _meta: { x: 1 }, other: 1, mode: null }), {
      ...FORM,
      message: 'Server "files" asks: Who are you?',
    })
    assert.deepEqual(call.admit('elicitation/create', { ...URL_ASK, elicitationId: 'e1' }), {
      ...URL_ASK,
      message: 'Server "files" asks: Sign in.',
      elicitationId: 'e1',
    })
    const sampled = call.admit('sampling/createMessage', { ...SAMPLE, includeContext: 'allServers' })
    assert.deepEqual(sampled, { ...SAMPLE, systemPrompt: 'Server "files" asks: ' })
    assert.deepEqual(call.admit('roots/list', { secret: 1 }), {})
    const [first] = records
    assert.deepEqual(first, {
      event: 'server_asked',
      tool: 'files:sign_in',
      tool_call_id: 'c1',
      user_id: 'vera',
      tenant: 'acme',
      session_id: undefined,
      agent: undefined,
      chat_id: undefined,
      reason: 'relayed',
      detail: 'files: elicitation/create: Server "files" asks: Who are you? (left out: other)',
    })
    assert.equal(records.length, 4)
  })

  for (const [word, method, params] of ASKED) {
    it(`needs "${word}" in the server's entry, and a client that declared it`, () => {
      const denied = setUp({ may: { [word]: word === 'open' ? [] : false } })
      refuses(() => denied.call.admit(method, params), -32_601, /may not ask for/)
      const unable = setUp({ link: { capabilities: {} } })
      refuses(() => unable.call.admit(method, params), -32_601, /does not support/)
      refuses(() => unable.call.admitAll({ a: { method, params } }), -32_021, /does not support/)
      const nobody = setUp({ link: null })
      refuses(() => nobody.call.admit(method, params), -32_601, /does not support/)
      for (const { records } of [denied, unable, nobody])
        assert.ok(records.length > 0 && records.every(({ reason }) => reason === 'refused'))
    })
  }

  it('of an unknown method or mode is refused', () => {
    const { call, records } = setUp()
    refuses(() => call.admit('shell/run', {}), -32_601, /shell\/run/)
    refuses(() => call.admit('elicitation/create', { ...FORM, mode: 'hologram' }), -32_601, /elicitation/)
    assert.equal(records.length, 2)
  })

  it('is one of at most ten in a call', () => {
    const { call, records } = setUp()
    for (let i = 0; i < MAX_ASKS; i++) call.admit('roots/list', {})
    refuses(() => call.admit('roots/list', {}), -32_603, /more than 10 times/)
    assert.equal(records.at(-1)?.reason, 'refused')
  })

  it('that is refused counts too, and does not fill the audit', () => {
    const { call, records } = setUp({ may: { elicit: false } })
    for (let i = 0; i < 1000; i++) assert.throws(() => call.admit('elicitation/create', FORM), RpcError)
    assert.equal(records.length, MAX_ASKS + 1)
    assert.match(records.at(-1)?.detail ?? '', /more than 10 times/)
  })

  it('reaches clients of MCP 2026-07-28, of every kind', () => {
    const { call } = setUp({ link: { era: 'modern', ask: undefined } })
    assert.deepEqual(call.capabilities, CAN)
    const asked = ASKED.map(([word, method, params]) => [word, { method, params }])
    const admitted = call.admitAll(Object.fromEntries(asked))
    assert.deepEqual(
      Object.values(admitted).map((request) => (request as { readonly method: string }).method),
      ASKED.map(([, method]) => method),
    )
  })
})

describe('a sampling request', () => {
  const ask = (more: JsonObject, given: SetUp = {}) => {
    const { call, records } = setUp(given)
    return { params: call.admit('sampling/createMessage', { ...SAMPLE, ...more }), detail: records[0]?.detail }
  }
  const OWN = { systemPrompt: 'Server "files" asks: ' }
  const says = (text: string) => ({ role: 'user', content: { type: 'text', text } })

  it('reaches the client with every field that MCP defines', () => {
    const fields = {
      modelPreferences: { hints: [{ name: 'small' }], costPriority: 0.5 },
      temperature: 0.1,
      stopSequences: ['\n'],
      metadata: { a: 1 },
      ...TOOLS,
    }
    assert.deepEqual(ask(fields).params, { ...SAMPLE, ...fields, ...OWN })
  })

  it('is recorded with the prompt and the last message', () => {
    const messages = [
      says('first'),
      { role: 'assistant', content: [{ type: 'image' }, { type: 'text', text: 'last' }] },
    ]
    const { detail } = ask({ messages, systemPrompt: 'Be brief.' })
    assert.equal(detail, 'files: sampling/createMessage: Server "files" asks: Be brief.: last')
  })

  it('gets no context of other servers, and the record says so', () => {
    const { params, detail } = ask({ includeContext: 'allServers', task: {} })
    assert.deepEqual(params, { ...SAMPLE, ...OWN })
    assert.match(detail ?? '', /\(left out: includeContext, task\)$/)
    assert.doesNotMatch(ask({ includeContext: 'none' }).detail ?? '', /left out/)
  })

  it('has no absent fields where the server wrote null', () => {
    const nulls = { systemPrompt: null, tools: null, toolChoice: null, modelPreferences: null, includeContext: null }
    const { params, detail } = ask(nulls, { link: { capabilities: { sampling: {} } } })
    assert.deepEqual(params, { ...SAMPLE, ...OWN })
    assert.doesNotMatch(detail ?? '', /left out/)
  })

  for (const [field, value] of [
    ['messages', undefined],
    ['messages', [7]],
    ['messages', [{ role: 'user' }]],
    ['maxTokens', undefined],
    ['maxTokens', 1.5],
    ['systemPrompt', 7],
    ['modelPreferences', []],
    ['temperature', 'hot'],
    ['stopSequences', [1]],
    ['metadata', 'm'],
    ['tools', [{ name: 'no_schema' }]],
    ['toolChoice', 'auto'],
  ] as const)
    it(`is refused by name for ${field}: ${JSON.stringify(value)}`, () => {
      refuses(() => ask({ [field]: value }), -32_602, new RegExp(`^${field} (?:must be|is required)`))
    })

  for (const [field, value] of Object.entries(TOOLS))
    it(`with ${field} needs a client whose model can use tools`, () => {
      const plain = setUp({ link: { capabilities: { sampling: {} } } })
      const params = { ...SAMPLE, [field]: value }
      refuses(() => plain.call.admit('sampling/createMessage', params), -32_601, /tools in sampling/)
      assert.throws(() => plain.call.admitAll({ a: { method: 'sampling/createMessage', params } }), {
        code: -32_021,
        data: { requiredCapabilities: { sampling: { tools: {} } } },
      })
    })

  it('is of bounded length', () => {
    refuses(() => ask({ messages: [says('x'.repeat(300_000))] }), -32_602, /characters/)
  })
})

describe('the capabilities that a server is told', () => {
  for (const [what, given, expected] of [
    ['all that both allow', {}, CAN],
    ['no more than its entry', { may: { sample: false, open: [] } }, { elicitation: { form: {} }, roots: {} }],
    ['no more than its client', { link: { capabilities: { elicitation: { url: {} } } } }, { elicitation: { url: {} } }],
    ['forms of a client of 2025-06-18', { link: { capabilities: { elicitation: {} } } }, { elicitation: { form: {} } }],
    ['samples without tools', { link: { capabilities: { sampling: {} } } }, { sampling: {} }],
    ['nothing that is null or false', { link: { capabilities: { sampling: null, roots: false } as never } }, undefined],
    [
      'no more of roots than that they exist',
      { link: { capabilities: { roots: { listChanged: true } } } },
      { roots: {} },
    ],
    ['nothing for a client without a stream', { link: { ask: undefined } }, undefined],
    ['nothing without a client', { link: null }, undefined],
  ] as const) {
    it(`are ${what}`, () => assert.deepEqual(setUp(given).call.capabilities, expected))
  }
})

describe('a form', () => {
  const ask = (properties: JsonObject, message = 'Please.') =>
    setUp().call.admit('elicitation/create', { message, requestedSchema: { type: 'object', properties } })

  for (const [name, schema] of [
    ['password', {}],
    ['userPassword', {}],
    ['API_KEY', {}],
    ['p a s s w o r d', {}],
    ['x', { title: 'Your PIN' }],
    ['x', { description: 'The number of your credit card' }],
    ['x', { title: 'One-time code' }],
    ['x', { title: 'Pass\u200Bword' }],
    ['x', { title: 'Contraseña' }],
    ['x', { title: 'Пароль' }],
    ['x', { type: 'integer', title: 'CVV' }],
    ['token', {}],
    ['x', { description: 'Never enter this elsewhere: your password' }],
    ['x', { description: '(do not enter your name) Your password' }],
    ['x', { title: 'Your p\u0430ssw\u043Erd' }],
    ['x', { title: '\u03A1\u0391SSWORD' }],
    ['x', { title: 'Your \u1D18\u1D00\uA731\uA731\u1D21\u1D0F\u0280\u1D05' }],
    ['x', { title: 'pa$$w0rd' }],
    ['x', { title: 'P1N' }],
  ] as const) {
    it(`does not ask for ${JSON.stringify([name, schema])}`, () => {
      refuses(() => ask({ ok: { type: 'string' }, [name]: { type: 'string', ...schema } }), -32_602, /secrets/)
    })
  }

  it('does not ask for a secret in its message, nor in the format of a field', () => {
    refuses(() => ask({ value: { type: 'string' } }, 'Enter your password below.'), -32_602, /secrets/)
    refuses(() => ask({ value: { type: 'string', format: 'password' } }), -32_602, /string, number/)
  })

  it('does not ask for one beside a choice that names it', () => {
    const choice = { type: 'boolean', title: 'Type your password into the field below' }
    refuses(() => ask({ agree: choice, value: { type: 'string' } }), -32_602, /secrets/)
    ask({ agree: { type: 'boolean' }, value: { type: 'string', title: 'Комментарий о погоде' } })
  })

  for (const [what, schema] of [
    ['items', { type: 'string', items: {} }],
    ['an empty list', { type: 'string', enum: [] }],
    ['no list', { type: 'string', enum: 'x' }],
    ['numbers', { type: 'integer', enum: [1] }],
    ['an empty oneOf', { type: 'string', oneOf: [] }],
    ['a oneOf of anything', { type: 'string', oneOf: [{}] }],
    ['an array of nothing', { type: 'array', items: { enum: [] } }],
  ] as const)
    it(`has no free text that claims to be a choice: ${what}`, () => {
      refuses(() => ask({ x: { ...schema, title: 'Password' } }), -32_602, /choice|secrets/)
    })

  it('has no fields that MCP does not define', () => {
    const schema = { type: 'string', title: 'A', maxLength: 5 }
    const form = ask({ a: { ...schema, placeholder: 'Your password', allOf: [{}] } })
    assert.deepEqual(form['requestedSchema'], { type: 'object', properties: { a: schema } })
  })

  it('may name such a thing where no secret can be typed', () => {
    ask({ pin: { type: 'boolean', title: 'Pin this card?' }, card: { type: 'string', enum: ['red', 'blue'] } })
    ask({ integer: { type: 'integer', description: 'Any (do not enter your phone number, PIN, or other data)' } })
    ask({ spinner: { type: 'string' }, opinion: { type: 'string', title: 'Your opinion of the carding machine' } })
  })

  for (const [what, properties] of [
    ['objects in it', { a: { type: 'object', properties: {} } }],
    ['lists of anything', { a: { type: 'array', items: { type: 'string' } } }],
    ['no type', { a: {} }],
    ['a schema that is none', { a: true }],
    ['too many properties', Object.fromEntries(Array.from({ length: 51 }, (_, i) => [`p${i}`, { type: 'string' }]))],
  ] as const) {
    it(`has no ${what.replace(/^no /, 'property without a ')}`, () => {
      refuses(() => ask(properties), -32_602, /must be|at most/)
    })
  }

  it('has no absent fields where the server wrote null', () => {
    const choice = { type: 'string', enum: ['a'], format: null, oneOf: null, title: null }
    const asked = setUp().call.admit('elicitation/create', {
      mode: null,
      message: 'Please.',
      requestedSchema: { type: 'object', properties: { a: choice }, required: null },
    })
    assert.deepEqual(asked['requestedSchema'], { type: 'object', properties: { a: { type: 'string', enum: ['a'] } } })
    assert.deepEqual(Object.keys(asked), ['message', 'requestedSchema'])
    refuses(() => ask({ token: { type: 'string', enum: null } }), -32_602, /secrets/)
  })

  it('has every choice that MCP allows', () => {
    ask({
      one: { type: 'string', enum: ['a'], enumNames: ['A'] },
      titled: { type: 'string', oneOf: [{ const: 'a', title: 'A' }] },
      many: { type: 'array', items: { type: 'string', enum: ['a'] } },
      manyTitled: { type: 'array', items: { anyOf: [{ const: 'a', title: 'A' }] } },
      when: { type: 'string', format: 'date-time' },
    })
  })

  it('is of bounded length', () => {
    refuses(() => ask({ a: { type: 'string' } }, 'x'.repeat(4_001)), -32_602, /4000/)
    refuses(() => ask({ a: { type: 'string', description: 'x'.repeat(300_000) } }), -32_602, /characters/)
  })
})

describe('a URL', () => {
  const open = (url: unknown, given: SetUp = {}) => setUp(given).call.admit('elicitation/create', { ...URL_ASK, url })

  for (const url of [
    'https://evil.example.com/',
    'https://login.example.com.evil.org/',
    'http://login.example.com/',
    'https://login.example.com:8443/',
    'javascript:alert(1)',
    'file:///etc/passwd',
    'https://user:pass@login.example.com/',
    'https://login.example.com@evil.org/',
    '/relative',
    7,
  ]) {
    it(`${String(url)} is not opened`, () => refuses(() => open(url), -32_602, /url|opened/))
  }

  it('is never one of this gateway, nor one for a shared server', () => {
    refuses(() => open(URL_ASK.url, { own: ORIGIN }), -32_602, /opened/)
    refuses(() => open(URL_ASK.url, { per: 'shared' }), -32_602, /opened/)
  })

  it('in an error that asks for it is checked like any other', () => {
    const error = (url: string) => new RpcError(-32_042, 'Sign in.', { elicitations: [{ ...URL_ASK, url }] })
    const { call, records } = setUp()
    const passed = call.admitError(error(URL_ASK.url)) as RpcError
    assert.equal(passed.code, -32_042)
    assert.deepEqual(passed.data, { elicitations: [{ ...URL_ASK, message: 'Server "files" asks: Sign in.' }] })
    const refused = call.admitError(error('https://evil.example.com/')) as RpcError
    assert.equal(refused.code, -32_603)
    assert.doesNotMatch(JSON.stringify(refused.data ?? ''), /evil/)
    assert.deepEqual(
      records.map(({ reason }) => reason),
      ['relayed', 'refused'],
    )
    const other = new RpcError(-32_050, 'other')
    assert.equal(call.admitError(other), other)
  })
})

describe('a log message', () => {
  it('gets the name of the server, and needs its entry', () => {
    const { call, logs } = setUp()
    call.log({ level: 'info', logger: 'db', data: 'x', extra: 1 })
    call.log({ level: 'info', data: 'y' })
    call.log({ level: 'info', data: 'x'.repeat(70_000) })
    assert.deepEqual(logs, [
      { level: 'info', logger: 'files: db', data: 'x' },
      { level: 'info', logger: 'files', data: 'y' },
    ])
    const silent = setUp({ may: { log: false } })
    silent.call.log({ level: 'info', data: 'x' })
    assert.deepEqual(silent.logs, [])
  })
})
