import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { after, before, beforeEach, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { AuditBody } from '@toolgate/gateway'
import { startTestGateway, type TestGateway, until } from './support/gateway.ts'
import { type Answer, send, type Sending, sendRaw } from './support/http.ts'
import { callerConfig, CALLERS, KEYS } from './support/keys.ts'
import { type RecordingServer, startRecordingServer } from './support/recording-server.ts'
import { type Era, ERAS, MODERN, type Params, type RpcAnswer, textOf, toMessage } from './support/rpc.ts'
import { httpServer, nodeServer } from './support/servers.ts'

const CAP_BYTES = 4 * 1024 * 1024
const DEEP_KEY = 'key-with-scope'
let recording: RecordingServer
let gateway: TestGateway

before(async () => {
  recording = await startRecordingServer([{ name: 'read' }, { name: 'hidden' }])
  gateway = await startTestGateway({
    servers: [httpServer('rec', recording.url, { tools: new Map([['scoped', { requiredScopes: ['admin'] }]]) })],
    callers: [...CALLERS, callerConfig(DEEP_KEY, { user: 'scoped', roles: ['viewer'], scopes: ['other'] })],
    policy: [{ deny: [{ match: 'rec:hidden', unless: "'admin' in caller.roles" }] }],
  })
})

after(async () => {
  await gateway?.close()
  await recording?.close()
})

beforeEach(() => recording.forget())

const READ = { name: 'rec__read', arguments: {} }
/** The SDK keeps a connection open after an event stream, even if the client asked to close it. */
const LAST_CHUNK = /\r\n0\r\n\r\n$/
const bearer = (key: string) => ({ authorization: `Bearer ${key}` })

/** Sends a correct call of the visible tool with one change. */
function sendCall(era: Era, change: Sending & { params?: Params } = {}): Promise<Answer> {
  const { headers, body } = toMessage(era, 'tools/call', change.params ?? READ)
  return send(gateway.mcpUrl, {
    body: JSON.stringify(body),
    ...change,
    headers: { ...headers, ...bearer(KEYS.admin), ...change.headers },
  })
}

const errorOf = (answer: Answer) => (answer.json() as RpcAnswer).error

/** Asserts a JSON-RPC error that names the rule, and that the upstream got nothing. */
function assertRefused(answer: Answer, status: number, code: number, message: RegExp): void {
  assert.equal(answer.status, status, answer.text)
  const { jsonrpc, error } = answer.json() as RpcAnswer
  assert.equal(jsonrpc, '2.0')
  assert.equal(error?.code, code, answer.text)
  assert.match(error?.message ?? '', message)
  assert.deepEqual(recording.messages, [])
}

async function assertServes(): Promise<void> {
  for (const era of ['2025-11-25', MODERN] as const)
    assert.equal(textOf((await sendCall(era)).json() as RpcAnswer), 'read ran')
  recording.forget()
}

describe('a key', () => {
  for (const era of ['2025-11-25', MODERN] as const) {
    for (const [what, authorization, challenge] of [
      ['missing', undefined, 'Bearer realm="toolgate"'],
      ['wrong', 'Bearer wrong', 'Bearer realm="toolgate", error="invalid_token"'],
      ['almost right', `Bearer ${KEYS.admin}x`, 'Bearer realm="toolgate", error="invalid_token"'],
      ['empty', 'Bearer ', 'Bearer realm="toolgate", error="invalid_token"'],
      ['of another scheme', `Basic ${KEYS.admin}`, 'Bearer realm="toolgate"'],
      ['without a scheme', KEYS.admin, 'Bearer realm="toolgate"'],
      ['with spaces', 'Bearer a b', 'Bearer realm="toolgate", error="invalid_token"'],
      ['of 5,000 characters', `Bearer ${'x'.repeat(5000)}`, 'Bearer realm="toolgate", error="invalid_token"'],
    ] as const) {
      it(`that is ${what}: 401 and a challenge, in ${era}`, async () => {
        const { headers, body } = toMessage(era, 'tools/call', READ)
        const sent = { ...headers, ...(authorization === undefined ? {} : { authorization }) }
        const answer = await send(gateway.mcpUrl, { headers: sent, body: JSON.stringify(body) })
        assertRefused(answer, 401, -32_000, /key/i)
        assert.equal(answer.headers['www-authenticate'], challenge)
        assert.doesNotMatch(answer.text, /demo-/)
      })
    }

    it(`that is for the console: 403, in ${era}`, async () => {
      assertRefused(await sendCall(era, { headers: bearer(KEYS.console) }), 403, -32_000, /for the console/)
    })
  }

  it('is checked before the method, the media type and the body', async () => {
    const answers = await Promise.all([
      send(gateway.mcpUrl, { method: 'GET' }),
      send(gateway.mcpUrl, { headers: { 'content-type': 'text/plain' }, body: 'x' }),
      send(gateway.mcpUrl, { headers: { 'content-type': 'application/json' }, body: '[' }),
    ])
    assert.deepEqual(
      answers.map(({ status }) => status),
      [401, 401, 401],
    )
    assert.equal(new Set(answers.map(({ text }) => text)).size, 1)
  })
})

describe('a foreign host name', () => {
  const own = () => `127.0.0.1:${gateway.port}`
  const page = () => `http://${own()}`

  for (const era of ['2025-11-25', MODERN] as const) {
    it(`in Host alone: 403, in ${era}`, async () => {
      for (const host of [
        'evil.example',
        `evil.example:${gateway.port}`,
        '127.0.0.1',
        `127.0.0.1.evil.example:${gateway.port}`,
        `${own()}@evil.example`,
      ])
        assertRefused(await sendCall(era, { headers: { host } }), 403, -32_000, /Host/)
    })

    it(`in Host with our own Origin: 403, in ${era}`, async () => {
      assertRefused(await sendCall(era, { headers: { host: 'evil.example', origin: page() } }), 403, -32_000, /Host/)
    })

    it(`in Origin alone: 403, in ${era}`, async () => {
      for (const origin of [
        'http://evil.example',
        'null',
        page().replace('http', 'https'),
        'http://127.0.0.1',
        `${page()}.evil.example`,
        `${page()}/`,
        '',
      ])
        assertRefused(await sendCall(era, { headers: { origin } }), 403, -32_000, /Origin/)
    })

    it(`that is empty, or no Host at all: refused, in ${era}`, async () => {
      const { headers, body } = toMessage(era, 'tools/call', READ)
      const text = JSON.stringify(body)
      const sent = { ...headers, ...bearer(KEYS.admin), 'content-length': text.length, connection: 'close' }
      const lines = Object.entries(sent).map(([header, value]) => `${header}: ${value}`)
      for (const [head, status] of [
        [['POST /mcp HTTP/1.1', 'Host: '], 403],
        [['POST /mcp HTTP/1.1', 'Host: evil.example', `Host: ${own()}`], 403],
        [['POST /mcp HTTP/1.1'], 400],
        [['POST /mcp HTTP/1.0'], 403],
      ] as const) {
        const answer = await sendRaw(gateway.port, [...head, ...lines, '', text].join('\r\n'))
        assert.match(answer, new RegExp(`^HTTP/1\\.1 ${status} `))
        assert.deepEqual(recording.messages, [])
      }
    })

    it(`sent twice beside ours: 403, in ${era}`, async () => {
      const origin = [page(), 'http://evil.example']
      assertRefused(await sendCall(era, { headers: { origin } }), 403, -32_000, /Origin/)
    })
  }

  it('is absent: our own Origin, and no Origin, are served', async () => {
    for (const headers of [
      {},
      { origin: page() },
      { origin: page().replace('127.0.0.1', 'localhost') },
      { host: `LOCALHOST:${gateway.port}` },
    ] as Record<string, string>[])
      assert.equal((await sendCall(MODERN, { headers })).status, 200)
  })

  it('is refused before the key is checked', async () => {
    const answer = await sendCall(MODERN, { headers: { origin: 'http://evil.example', authorization: 'Bearer wrong' } })
    assert.equal(answer.status, 403)
    assert.equal(answer.headers['www-authenticate'], undefined)
  })
})

describe('a body', () => {
  const big = Buffer.alloc(CAP_BYTES + 1, 0x20)

  it('over the limit: 413, with an announced length or in chunks', async () => {
    assertRefused(await sendCall(MODERN, { body: big }), 413, -32_000, /larger than 4194304 bytes/)
    const chunked = { 'transfer-encoding': 'chunked' }
    assertRefused(await sendCall(MODERN, { body: big, headers: chunked }), 413, -32_000, /larger than 4194304 bytes/)
    assertRefused(await sendCall('2025-11-25', { body: big }), 413, -32_000, /larger than 4194304 bytes/)
  })

  it('over the limit is refused before it has arrived, and the connection does not hang', async () => {
    const { headers } = toMessage(MODERN, 'tools/list')
    const lines = Object.entries({ ...headers, ...bearer(KEYS.admin) }).map(([name, value]) => `${name}: ${value}`)
    const head = ['POST /mcp HTTP/1.1', `Host: 127.0.0.1:${gateway.port}`, ...lines]
    const announced = await sendRaw(gateway.port, [...head, 'Content-Length: 99999999999', '', '{'].join('\r\n'))
    assert.match(announced, /^HTTP\/1\.1 413 /)
    const chunk = `${CAP_BYTES.toString(16)}\r\n${' '.repeat(CAP_BYTES)}\r\n2\r\n{}\r\n`
    const chunked = await sendRaw(gateway.port, [...head, 'Transfer-Encoding: chunked', '', chunk].join('\r\n'))
    assert.match(chunked, /^HTTP\/1\.1 413 /)
  })

  it('of exactly the limit is read', async () => {
    const { body } = toMessage(MODERN, 'tools/call', READ)
    const text = JSON.stringify(body)
    const answer = await sendCall(MODERN, { body: text + ' '.repeat(CAP_BYTES - text.length) })
    assert.equal(textOf(answer.json() as RpcAnswer), 'read ran')
  })

  for (const era of ['2025-11-25', MODERN] as const) {
    const call = toMessage(era, 'tools/call', READ).body
    const text = JSON.stringify(call)
    const withArguments = (json: string) => text.replace('"arguments":{}', `"arguments":${json}`)
    const refused: readonly [string, string | Buffer, number, RegExp][] = [
      ['empty', '', -32_700, /not JSON/],
      ['not JSON', '{"jsonrpc"', -32_700, /not JSON/],
      ['of two values', `${text}{}`, -32_700, /not JSON/],
      ['not UTF-8', Buffer.from(withArguments('{"a":"\xff"}'), 'latin1'), -32_700, /not UTF-8/],
      ['nested 65 levels', withArguments(`{"a":${'['.repeat(62)}${']'.repeat(62)}}`), -32_600, /more than 64 levels/],
      ['of a million brackets', '['.repeat(1_000_000), -32_600, /more than 64 levels/],
      [
        'of 300,000 nested objects',
        `${'{"a":'.repeat(300_000)}1${'}'.repeat(300_000)}`,
        -32_600,
        /more than 64 levels/,
      ],
      [
        'of 10,001 keys',
        withArguments(JSON.stringify(Object.fromEntries(Array.from({ length: 10_001 }, (_, i) => [`k${i}`, 1])))),
        -32_600,
        /holds more than 10000 keys/,
      ],
      [
        'of a million empty objects',
        withArguments(`{"a":[${'{},'.repeat(1_000_000)}{}]}`),
        -32_600,
        /holds more than 50000 values/,
      ],
      ['with a key of 3 MB', withArguments(`{"${'k'.repeat(3_000_000)}":1}`), -32_600, /a key of more than 4096/],
      [
        'with an id of 3 MB',
        text.replace('"id":1', `"id":"${'i'.repeat(3_000_000)}"`),
        -32_600,
        /^id is longer than 256/,
      ],
      [
        'with a method of 3 MB',
        text.replace('tools/call', 'm'.repeat(3_000_000)),
        -32_600,
        /^method is longer than 512 characters/,
      ],
      ['that is a batch', `[${text}]`, -32_600, /Batches/],
      ['that is an empty batch', '[]', -32_600, /Batches/],
      ['with its method twice', text.replace('"method"', '"method":"ping","method"'), -32_600, /occurs twice/],
      [
        'with its method twice, once escaped',
        text.replace('"method"', '"\\u006dethod":"ping","method"'),
        -32_600,
        /occurs twice/,
      ],
      ['with an argument twice', withArguments('{"p":{"a":1,"a":2}}'), -32_600, /occurs twice/],
      ['with __proto__ twice', withArguments('{"__proto__":1,"__proto__":2}'), -32_600, /occurs twice/],
      ['with id null', text.replace('"id":1', '"id":null'), -32_600, /"id"/],
      ['that is null', 'null', -32_600, /not an object/],
      ['of another JSON-RPC', text.replace('"2.0"', '"1.0"'), -32_600, /"jsonrpc"/],
    ]
    for (const [what, body, code, message] of refused) {
      it(`${what}: ${code}, in ${era}`, async () => {
        assertRefused(await sendCall(era, { body }), 400, code, message)
      })
    }

    it(`with a name or a cursor of 3 MB: -32602, and nothing of it is echoed, in ${era}`, async () => {
      const long = 'n'.repeat(3_000_000)
      for (const [method, field] of [
        ['tools/call', 'name'],
        ['tools/list', 'cursor'],
      ] as const) {
        const { headers, body } = toMessage(era, method, { [field]: long })
        const sent = { ...headers, ...bearer(KEYS.admin), ...('mcp-name' in headers ? { 'mcp-name': 'n' } : {}) }
        const answer = await send(gateway.mcpUrl, { headers: sent, body: JSON.stringify(body) })
        assertRefused(answer, 200, -32_602, new RegExp(`^params\\.${field} is longer than 512 characters`))
        assert.ok(answer.text.length < 400)
      }
    })

    it(`with a large input for a tool that its caller may not use leaves one record without the input, in ${era}`, async () => {
      const rows = Array.from({ length: 2000 }, (_, i) => ({ id: i }))
      const answer = await gateway.call('viewer', era, 'rec__hidden', { rows, name: `for ${era}` })
      assert.match(textOf(answer), /^Tool "rec__hidden" is not available|^TOOL_CALL_BLOCKED/)
      assert.deepEqual(recording.messages, [])
      const { body } = await gateway.api('/api/audit?limit=1')
      const [record] = (body as AuditBody).records
      assert.equal(record?.tool, 'rec:hidden')
      assert.equal(record?.event, 'tool_blocked')
      assert.equal(record?.input_hash, undefined)
      assert.equal(record?.input_preview, undefined)
    })

    it(`with __proto__ in its arguments runs nothing with it, in ${era}`, async () => {
      const answer = await sendCall(era, { body: withArguments('{"__proto__":{"admin":true}}') })
      assert.match(textOf(answer.json() as RpcAnswer), /^TOOL_CALL_BLOCKED: invalid input at "\/__proto__"/)
      assert.deepEqual(recording.messages, [])
      assert.equal(({} as { admin?: boolean }).admin, undefined)
    })

    it(`of another media type: 415, in ${era}`, async () => {
      for (const type of [
        'text/plain',
        'application/x-www-form-urlencoded',
        'application/jsonx',
        'text/json',
        '',
        'application/json-rpc',
      ])
        assertRefused(await sendCall(era, { headers: { 'content-type': type } }), 415, -32_000, /application\/json/)
    })
  }

  it('may name its charset, in upper or lower case', async () => {
    const answer = await sendCall(MODERN, { headers: { 'content-type': 'Application/JSON; charset=utf-8' } })
    assert.equal(answer.status, 200)
  })

  it('that never ends does not stop the gateway', async () => {
    const socket = connect(gateway.port, '127.0.0.1')
    socket.on('error', () => {})
    socket.write(
      `POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:${gateway.port}\r\nAuthorization: Bearer ${KEYS.admin}\r\n` +
        'Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"jsonrpc"',
    )
    await assertServes()
    socket.destroy()
  })
})

describe('a method', () => {
  for (const method of ['GET', 'DELETE', 'PUT', 'PATCH', 'OPTIONS'])
    it(`${method} of HTTP: 405 and Allow`, async () => {
      const answer = await send(gateway.mcpUrl, {
        method,
        headers: { ...bearer(KEYS.admin), accept: 'text/event-stream' },
      })
      assertRefused(answer, 405, -32_000, new RegExp(method))
      assert.equal(answer.headers.allow, 'POST')
      assert.equal(answer.headers['access-control-allow-origin'], undefined)
    })

  const UNGOVERNED: readonly [string, Params][] = [
    ['resources/list', {}],
    ['resources/templates/list', {}],
    ['resources/read', { uri: 'file:///etc/passwd' }],
    ['resources/subscribe', { uri: 'file:///etc/passwd' }],
    ['resources/unsubscribe', { uri: 'file:///etc/passwd' }],
    ['prompts/list', {}],
    ['prompts/get', { name: 'rec__read' }],
    ['sampling/createMessage', { messages: [], maxTokens: 1 }],
    ['elicitation/create', { message: 'x', requestedSchema: { type: 'object', properties: {} } }],
    ['roots/list', {}],
    ['logging/setLevel', { level: 'debug' }],
    ['completion/complete', { ref: { type: 'ref/prompt', name: 'x' }, argument: { name: 'a', value: 'b' } }],
    ['tools/run', READ],
    ['Tools/Call', READ],
    ['tools/call ', READ],
    ['__proto__', {}],
    ['constructor', {}],
    ['toString', {}],
    ['rpc.discover', {}],
    ['x'.repeat(500), {}],
  ]
  for (const era of ERAS) {
    it(`that is not governed is refused and never passed on, in ${era}`, async () => {
      for (const [method, params] of UNGOVERNED) {
        const { headers, body } = toMessage(era, method, params)
        // A method that a header cannot carry is refused because of its header.
        const fits = method.trim() === method
        const sent = { ...headers, ...bearer(KEYS.admin), ...(fits ? {} : { 'mcp-method': 'x' }) }
        const answer = await send(gateway.mcpUrl, { headers: sent, body: JSON.stringify(body) })
        const { code } = errorOf(answer) ?? {}
        if (era === MODERN && !fits) assert.equal(code, -32_020, answer.text)
        else {
          assert.equal(code, -32_601, `${method}: ${answer.text}`)
          assert.equal(answer.status, era === MODERN ? 404 : 200)
        }
        assert.ok(answer.text.length < 400, 'it does not echo the request')
        assert.deepEqual(recording.messages, [], method)
      }
    })

    it(`without a name is no request, in ${era}`, async () => {
      const { headers, body } = toMessage(era, '', {})
      const sent = { ...headers, ...bearer(KEYS.admin), 'mcp-method': 'x' }
      const answer = await send(gateway.mcpUrl, { headers: sent, body: JSON.stringify(body) })
      assert.equal(errorOf(answer)?.code, -32_600, answer.text)
      assert.deepEqual(recording.messages, [])
    })

    it(`is not advertised where it is not governed, in ${era}`, async () => {
      const answer =
        era === MODERN
          ? await gateway.ask('viewer', era, 'server/discover')
          : await gateway.ask('viewer', era, 'initialize', {
              protocolVersion: era,
              capabilities: {},
              clientInfo: { name: 'x', version: '1' },
            })
      const { result } = answer.json() as RpcAnswer
      // The approval of a call can be a task of a client of today.
      const extensions = era === MODERN ? { extensions: { 'io.modelcontextprotocol/tasks': {} } } : {}
      assert.deepEqual(result?.['capabilities'], { tools: { listChanged: true }, ...extensions })
      if (era !== MODERN) assert.equal(result?.['protocolVersion'], era)
    })
  }

  it('ping or initialize is unknown in the modern revision', async () => {
    for (const method of ['ping', 'initialize', 'notifications/initialized'])
      assertRefused(await gateway.ask('admin', MODERN, method), 404, -32_601, /Method not found/)
  })

  it('of the modern revision is unknown in earlier ones', async () => {
    const answer = await gateway.ask('admin', '2025-11-25', 'server/discover')
    assert.equal(errorOf(answer)?.code, -32_601)
  })

  it('that is a notification is accepted and not passed on', async () => {
    for (const era of ERAS)
      for (const method of ['notifications/initialized', 'notifications/cancelled', 'notifications/x', 'tools/call']) {
        const { headers, body } = toMessage(era, method, { ...READ, requestId: 1 })
        const { id: _, ...notification } = body
        const sent = { headers: { ...headers, ...bearer(KEYS.admin) }, body: JSON.stringify(notification) }
        const answer = await send(gateway.mcpUrl, sent)
        assert.equal(answer.status, 202, `${era} ${method}: ${answer.text}`)
        assert.deepEqual(recording.messages, [])
      }
  })

  it('that is a response is not passed on', async () => {
    for (const era of ERAS)
      for (const body of [
        { id: 1, result: {} },
        { id: 1, error: { code: 1, message: 'x' } },
      ]) {
        const { headers } = toMessage(era, 'tools/list')
        const sent = {
          headers: { ...headers, ...bearer(KEYS.admin) },
          body: JSON.stringify({ jsonrpc: '2.0', ...body }),
        }
        const answer = await send(gateway.mcpUrl, sent)
        assert.ok([202, 400].includes(answer.status), `${era}: ${answer.status} ${answer.text}`)
        assert.deepEqual(recording.messages, [])
      }
  })
})

describe('a tool with a name that objects inherit', () => {
  for (const era of ERAS)
    it(`is unknown, in ${era}`, async () => {
      for (const name of ['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'valueOf', '__defineGetter__']) {
        const told = textOf(await gateway.call('viewer', era, name))
        assert.equal(told, `Tool "${name}" is not available. Available tools: rec__read.`)
        assert.deepEqual(recording.messages, [])
      }
    })
})

describe('headers and a body that disagree', () => {
  for (const [what, headers] of [
    ['the name', { 'mcp-name': 'rec__hidden' }],
    ['the name by its case', { 'mcp-name': 'REC__READ' }],
    ['the name in base64', { 'mcp-name': `=?base64?${Buffer.from('rec__hidden').toString('base64')}?=` }],
    ['the name in base64 that is none', { 'mcp-name': '=?base64?***?=' }],
    [
      'the name behind a byte order mark',
      { 'mcp-name': `=?base64?${Buffer.from('\ufeffrec__read').toString('base64')}?=` },
    ],
    ['the method', { 'mcp-method': 'tools/list' }],
    ['the method by its case', { 'mcp-method': 'TOOLS/CALL' }],
    ['the version', { 'mcp-protocol-version': '2025-11-25' }],
    ['the version by a later one', { 'mcp-protocol-version': '2027-01-01' }],
  ] as const)
    it(`about ${what}: -32020`, async () => {
      assertRefused(await sendCall(MODERN, { headers }), 400, -32_020, /headers and the body disagree/)
    })

  for (const missing of ['mcp-name', 'mcp-method', 'mcp-protocol-version'])
    it(`because ${missing} is missing: -32020`, async () => {
      const { headers, body } = toMessage(MODERN, 'tools/call', READ)
      const { [missing]: _, ...rest } = headers
      const answer = await send(gateway.mcpUrl, {
        headers: { ...rest, ...bearer(KEYS.admin) },
        body: JSON.stringify(body),
      })
      assertRefused(answer, 400, -32_020, /\(missing\)/)
    })

  it('because a header is sent twice: -32020', async () => {
    for (const name of ['mcp-name', 'mcp-method', 'mcp-protocol-version']) {
      const value = toMessage(MODERN, 'tools/call', READ).headers[name] as string
      assertRefused(await sendCall(MODERN, { headers: { [name]: [value, value] } }), 400, -32_020, /disagree/)
    }
  })

  it('have the id of the request in the answer', async () => {
    const answer = await gateway.ask('admin', MODERN, 'tools/call', READ, { id: 'mine', headers: { 'mcp-name': 'x' } })
    assert.equal((answer.json() as RpcAnswer).id, 'mine')
  })
})

describe('a hidden tool and an unknown one', () => {
  /** The bytes of the whole answer, without its date. */
  async function rawAnswer(era: Era, key: string, name: string, id: number): Promise<string> {
    const { headers, body } = toMessage(era, 'tools/call', { name, arguments: { path: '/x' } }, id)
    const text = JSON.stringify(body)
    const sent = { ...headers, ...bearer(key), 'content-length': Buffer.byteLength(text), connection: 'close' }
    const lines = Object.entries(sent).map(([header, value]) => `${header}: ${value}`)
    const head = ['POST /mcp HTTP/1.1', `Host: 127.0.0.1:${gateway.port}`, ...lines, '', ''].join('\r\n')
    const answer = await sendRaw(gateway.port, head + text, LAST_CHUNK)
    return answer.replace(/^date: .*\r\n/im, '')
  }

  const KINDS = ['policy', 'allowlist', 'requireTags', 'policy_error', 'input policy_error', 'scope'] as const

  async function deny(kind: (typeof KINDS)[number]): Promise<void> {
    gateway.gate.setPolicy(
      {
        policy: { deny: ['rec:hidden'] },
        allowlist: { allow: ['rec:read'] },
        requireTags: { deny: [], requireTags: ['reviewed'] },
        policy_error: { deny: [{ match: 'rec:hidden', when: "caller.tenant == 'x'", message: 'Not to be told.' }] },
        'input policy_error': { deny: [{ match: 'rec:hidden', when: 'caller.attributes.level > 1' }] },
        scope: {},
      }[kind],
    )
  }

  for (const kind of KINDS) {
    it(`get byte-identical answers, in every era, when it is hidden by ${kind}`, async () => {
      const name = kind === 'scope' ? 'scoped' : 'hidden'
      const other = name.replace('d', 'x')
      const others = kind === 'requireTags' ? [] : [{ name: 'read' }]
      await deny(kind)
      recording.setTools([...others, { name }])
      await until(() => gateway.gate.catalog.get(`rec:${name}`))
      const hidden = new Map<Era, string>()
      for (const era of ERAS) {
        const answer = await rawAnswer(era, DEEP_KEY, `rec__${name}`, 7)
        hidden.set(era, answer)
        assert.match(answer, /^HTTP\/1\.1 200 OK/)
        assert.match(answer, /is not available/)
        // Another name and id: equal except for those.
        const missing = await rawAnswer(era, DEEP_KEY, `rec__${other}`, 8)
        assert.equal(missing.replace(other, name).replace('"id":8', '"id":7'), answer)
      }
      // The same requests without the tool.
      recording.setTools(others)
      await until(() => !gateway.gate.catalog.get(`rec:${name}`))
      for (const era of ERAS) assert.equal(await rawAnswer(era, DEEP_KEY, `rec__${name}`, 7), hidden.get(era))
      assert.deepEqual(recording.calls(), [])
    })
  }

  it('differ if the author of the denial gave a message', async () => {
    recording.setTools([{ name: 'read' }, { name: 'hidden' }])
    gateway.gate.setPolicy({ deny: [{ match: 'rec:hidden', message: 'Ask an admin.' }] })
    await until(() => gateway.gate.catalog.get('rec:hidden'))
    assert.equal(textOf(await gateway.call('viewer', MODERN, 'rec__hidden')), 'TOOL_CALL_BLOCKED: Ask an admin.')
  })
})

/** Answers a call with 50 MB of progress, then with a result. */
const TALKATIVE = `
  const say = (message) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n')
  const capabilities = { tools: {} }
  const results = {
    initialize: { protocolVersion: '2025-11-25', capabilities, serverInfo: { name: 'talkative', version: '1' } },
    'tools/list': { tools: [{ name: 'talk', inputSchema: { type: 'object' } }] },
    'tools/call': { content: [{ type: 'text', text: 'said all' }] },
  }
  require('readline').createInterface({ input: process.stdin }).on('line', (line) => {
    const { id, method, params } = JSON.parse(line)
    if (method === 'tools/call')
      for (let progress = 0; progress < 100; progress++)
        say({
          method: 'notifications/progress',
          params: { progressToken: params._meta.progressToken, progress, message: 'x'.repeat(500_000) },
        })
    if (results[method]) say({ id, result: results[method] })
  })`

describe('a client that does not read', () => {
  for (const era of ['2025-11-25', MODERN] as const) {
    it(`loses progress but not the result, and the gateway does not buffer it all, in ${era}`, async () => {
      const talking = await startTestGateway({ servers: [nodeServer('t', ['--eval', TALKATIVE])] })
      try {
        const call = toMessage(era, 'tools/call', { name: 't__talk', arguments: {}, _meta: { progressToken: 1 } })
        const text = JSON.stringify(call.body)
        const fields = { ...call.headers, ...bearer(KEYS.admin), host: new URL(talking.url).host }
        const head = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`)
        const socket = connect(talking.port, '127.0.0.1').pause()
        socket.write(`POST /mcp HTTP/1.1\r\n${head.join('')}content-length: ${text.length}\r\n\r\n${text}`)
        await until(async () => {
          const { body } = await talking.api('/api/audit?event=tool_result')
          return (body as AuditBody).records.length === 1
        })
        let answer = ''
        for await (const chunk of socket) if (LAST_CHUNK.test((answer += String(chunk)).slice(-16))) break
        assert.match(answer, /"said all"/)
        assert.ok(answer.length < 25_000_000, `${answer.length} characters`)
      } finally {
        await talking.close()
      }
    })
  }
})

describe('the gateway', () => {
  it('still serves after all of this, without a fault', async () => {
    recording.setTools([{ name: 'read' }])
    gateway.gate.setPolicy([])
    await until(() => gateway.gate.catalog.snapshot().size === 1)
    await assertServes()
    assert.deepEqual(
      gateway.log.filter(({ message }) => message === 'a fault').map(({ detail }) => detail?.split('\n')[0]),
      [],
    )
  })

  it('survives a client that disconnects at any moment', async () => {
    const { headers, body } = toMessage(MODERN, 'tools/call', READ)
    for (const waitMs of [0, 1, 2, 5]) {
      const gone = new AbortController()
      const sent = { headers: { ...headers, ...bearer(KEYS.admin) }, body: JSON.stringify(body), signal: gone.signal }
      const answer = send(gateway.mcpUrl, sent).catch(() => undefined)
      await sleep(waitMs)
      gone.abort()
      await answer
    }
    await assertServes()
  })
})
