import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, beforeEach, describe, it } from 'node:test'
import type { Policy } from '@toolgate/core'
import { type ModernServer, startModernServer } from '../packages/gateway/fixtures/modern-server.ts'
import { startTestGateway, tempFolder, type TestGateway } from './support/gateway.ts'
import { send, sendRaw } from './support/http.ts'
import { callerConfig, CALLERS, KEYS } from './support/keys.ts'
import { type RecordingServer, startRecordingServer } from './support/recording-server.ts'
import { type Era, ERAS, MODERN, type RpcAnswer, textOf, toMessage } from './support/rpc.ts'
import { filesServer, httpServer } from './support/servers.ts'

/** Another operator's key. */
const COLLEAGUE = 'demo-colleague'
const folder = tempFolder()
const workspace = join(folder.path, 'workspace')
const secret = join(workspace, 'secret.txt')
let gateway: TestGateway
let recording: RecordingServer
let modern: ModernServer

/** The quickstart's: viewers read, operators also write inside the workspace if a person agrees, admins do anything. */
const policy = (root: string): Policy[] => [
  {
    name: 'roles',
    allow: [{ match: 'hint:read-only' }, { match: '*', when: "'operator' in caller.roles || 'admin' in caller.roles" }],
    deny: [
      { match: '*:move_*', unless: "'admin' in caller.roles" },
      {
        match: ['files:write_file', 'recording:write_file'],
        input: `!within(input.path, '${root}')`,
        unless: "'admin' in caller.roles",
        message: 'Write inside the workspace.',
      },
    ],
    ask: [{ match: '*:write_file', unless: "'admin' in caller.roles" }],
  },
]

before(async () => {
  mkdirSync(workspace)
  writeFileSync(secret, 'as it was')
  recording = await startRecordingServer([
    { name: 'read_file', annotations: { readOnlyHint: true } },
    { name: 'write_file', inputSchema: { type: 'object', properties: { path: { type: 'string' } } } },
  ])
  modern = await startModernServer()
  gateway = await startTestGateway({
    servers: [filesServer(workspace), httpServer('recording', recording.url), httpServer('modern', modern.url)],
    callers: [...CALLERS, callerConfig(COLLEAGUE, { user: 'colleague', roles: ['operator'] })],
    policy: policy(workspace),
  })
})

after(async () => {
  await gateway?.close()
  await Promise.all([recording?.close(), modern?.close()])
  folder.remove()
})

const filesNow = () =>
  readdirSync(workspace, { recursive: true, withFileTypes: true })
    .map((entry) => `${entry.name}=${entry.isFile() ? readFileSync(join(entry.parentPath, entry.name), 'utf8') : ''}`)
    .toSorted()

let filesBefore: readonly string[]
let countsBefore: readonly unknown[]

beforeEach(() => {
  filesBefore = filesNow()
  countsBefore = [...modern.counts]
  recording.forget()
})

/** The upstreams' own side effects show that nothing ran. */
function assertNothingRan(what: string): void {
  assert.deepEqual(filesNow(), filesBefore, what)
  assert.deepEqual([...modern.counts], countsBefore, what)
  assert.deepEqual(recording.messages, [], what)
}

const WRITE = { path: secret, content: 'overwritten' }
/** Hidden from the viewer, by wire name, with an input that would run. */
const HIDDEN: readonly [string, object][] = [
  ['files__write_file', WRITE],
  ['files__create_directory', { path: join(workspace, 'made') }],
  ['recording__write_file', WRITE],
  ['modern__count', {}],
]

describe('the lists of the three keys', () => {
  for (const era of ERAS) {
    it(`are strict subsets of each other in ${era}`, async () => {
      const [viewer, operator, admin] = await Promise.all([
        gateway.list('viewer', era),
        gateway.list('operator', era),
        gateway.list('admin', era),
      ])
      assert.ok(new Set(viewer).isSubsetOf(new Set(operator)) && viewer.length < operator.length)
      assert.ok(new Set(operator).isSubsetOf(new Set(admin)) && operator.length < admin.length)
      assert.ok(viewer.includes('files__read_text_file') && viewer.includes('modern__echo'))
      assert.deepEqual(
        viewer.filter((name) => HIDDEN.some(([hidden]) => hidden === name)),
        [],
      )
    })
  }

  it('are the same in every era, in the order of the ids', async () => {
    const [first, ...others] = await Promise.all(ERAS.map((era) => gateway.list('viewer', era)))
    for (const other of others) assert.deepEqual(other, first)
    assert.deepEqual(first, first?.toSorted())
  })

  it('name only tools that run', async () => {
    const answer = await gateway.call('viewer', MODERN, 'files__read_text_file', { path: secret })
    assert.equal(textOf(answer), 'as it was')
    assert.equal(textOf(await gateway.call('viewer', '2025-06-18', 'modern__echo', { message: 'hi' })), 'Echo: hi')
  })
})

describe('a viewer', () => {
  for (const era of ERAS) {
    it(`runs no hidden tool by any spelling of its name in ${era}`, async () => {
      for (const [name, input] of HIDDEN) {
        for (const spelling of spellingsOf(name)) {
          const answer = await gateway.call('viewer', era, spelling, input)
          assert.ok(answer.error || answer.result?.isError === true, `${spelling}: ${JSON.stringify(answer)}`)
          // A name longer than any tool's is refused before the lookup.
          if (spelling.length > 512) assert.equal(answer.error?.code, -32_602)
          // A name that is not valid Unicode has no matching header.
          else if (spelling.isWellFormed() || era !== MODERN)
            assert.match(textOf(answer), /^Tool ".*" is not available\. /s)
          else assert.equal(answer.error?.code, -32_020)
          assertNothingRan(`${era} ${JSON.stringify(spelling)}`)
        }
      }
    })

    it(`runs none by a batch, a repeated key or a notification in ${era}`, async () => {
      const message = toMessage(era, 'tools/call', { name: 'files__write_file', arguments: WRITE })
      const { id: _, ...notification } = message.body
      const text = JSON.stringify(message.body)
      const read = JSON.stringify({ name: 'files__read_text_file', arguments: { path: secret } }).slice(1, -1)
      for (const body of [
        `[${text}]`,
        `[${JSON.stringify(toMessage(era, 'tools/list').body)},${text}]`,
        `[[${text}]]`,
        JSON.stringify(notification),
        `{"method":"tools/list",${text.slice(1)}`,
        `${text.slice(0, -1)},"method":"tools/list"}`,
        `${text.slice(0, -1)},"m\\u0065thod":"ping"}`,
        text.replace('"params":{', `"params":{${read},`),
        text.replace('"name":', '"name":"files__read_text_file","n\\u0061me":'),
        text.replace('"params":', '"params":{},"params":'),
        `${text}${text}`,
        `${text}\n${text}`,
      ]) {
        const { headers } = message
        const answer = await send(gateway.mcpUrl, { headers: { ...headers, ...bearer(KEYS.viewer) }, body })
        assert.ok([202, 400].includes(answer.status), `${answer.status}: ${body}`)
        assertNothingRan(body)
      }
    })

    it(`is identified by its key alone in ${era}`, async () => {
      const claims = { roles: ['admin'], user: 'admin' }
      const claimed = {
        name: 'files__write_file',
        arguments: WRITE,
        caller: claims,
        task: { ttl: 1 },
        _meta: { caller: claims, 'dev.toolgate/caller': claims, progressToken: 'admin' },
      }
      const headers = {
        'x-user': 'admin',
        'x-forwarded-user': 'admin',
        'x-toolgate-caller': JSON.stringify(claims),
        'proxy-authorization': `Bearer ${KEYS.admin}`,
        'mcp-session-id': KEYS.admin,
        cookie: `toolgate_session_${gateway.port}=${KEYS.console}; key=${KEYS.admin}`,
      }
      const answer = await gateway.ask('viewer', era, 'tools/call', claimed, { headers })
      assert.ok(answer.status >= 400 || textOf(answer.json() as RpcAnswer).includes('is not available'), answer.text)
      assertNothingRan(answer.text)
    })
  }

  it('runs none by headers that disagree with the body', async () => {
    const call = (era: Era) => toMessage(era, 'tools/call', { name: 'files__write_file', arguments: WRITE })
    const tricks: readonly [Era, Record<string, string>][] = [
      [MODERN, { 'mcp-name': 'files__read_text_file' }],
      [MODERN, { 'mcp-method': 'tools/list' }],
      [MODERN, { 'mcp-method': 'server/discover', 'mcp-name': 'files__read_text_file' }],
      [MODERN, { 'mcp-protocol-version': '2025-11-25' }],
      ['2025-11-25', { 'mcp-protocol-version': MODERN }],
      ['2025-11-25', { 'mcp-method': 'tools/list', 'mcp-name': 'files__read_text_file' }],
      ['2025-11-25', { 'mcp-protocol-version': 'none' }],
      ['2025-06-18', { 'x-http-method-override': 'GET' }],
    ]
    for (const [era, headers] of tricks) {
      const message = call(era)
      const sent = { ...message.headers, ...headers, ...bearer(KEYS.viewer) }
      const answer = await send(gateway.mcpUrl, { headers: sent, body: JSON.stringify(message.body) })
      assert.ok(answer.status === 400 || textOf(answer.json() as RpcAnswer).includes('is not available'), answer.text)
      assertNothingRan(JSON.stringify(headers))
    }
  })

  it('runs none by another path', async () => {
    const { headers, body } = toMessage(MODERN, 'tools/call', { name: 'files__write_file', arguments: WRITE })
    for (const path of [
      '/mcp/',
      '//mcp',
      '/MCP',
      '/mcp%2f',
      '/mcp/admin',
      '/mcp?as=admin',
      '/api/../mcp',
      '/mcp#a',
      '/',
    ])
      for (const method of ['POST', 'PUT']) {
        const sent = { ...headers, ...bearer(KEYS.viewer) }
        await send(`${gateway.url}${path}`, { method, headers: sent, body: JSON.stringify(body) })
        assertNothingRan(path)
      }
  })

  it('runs none by bytes that two servers parse differently', async () => {
    const message = toMessage(MODERN, 'tools/call', { name: 'files__write_file', arguments: WRITE })
    const body = JSON.stringify(message.body)
    const head = (lines: Record<string, string | number>, key?: string) =>
      [
        'POST /mcp HTTP/1.1',
        `Host: 127.0.0.1:${gateway.port}`,
        ...(key ? [`Authorization: Bearer ${key}`] : []),
        ...Object.entries({ ...message.headers, ...lines }).map(([name, value]) => `${name}: ${value}`),
        '',
        '',
      ].join('\r\n')
    const inner = head({ 'content-length': body.length, connection: 'close' }) + body
    const chunked = `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`
    const length = { 'content-length': body.length, connection: 'close' }
    for (const bytes of [
      // A second request hidden in the body of the first, behind a length that disagrees.
      head({ 'content-length': 4, 'transfer-encoding': 'chunked' }, KEYS.viewer) + `0\r\n\r\n${inner}`,
      head({ 'content-length': 0, 'Content-Length': inner.length }, KEYS.viewer) + inner,
      head({ 'transfer-encoding': 'chunked, identity' }, KEYS.viewer) + chunked + inner,
      head({ 'transfer-encoding': 'xchunked', connection: 'close' }, KEYS.viewer) + chunked,
      // Two requests on one connection: the second has no key, and does not use the first one's.
      head({ 'content-length': 2 }, KEYS.admin) + '{}' + inner,
      // Lines that end early, fold, or hide in a value.
      head(length, `${KEYS.viewer}\r\n : x`) + body,
      head(length, `${KEYS.viewer}\n\tfolded`) + body,
      head(length, `${KEYS.viewer} ${KEYS.admin}`) + body,
      head(length, `${KEYS.viewer},${KEYS.admin}`) + body,
      head({ ...length, authorization: `Bearer ${KEYS.admin}` }, KEYS.viewer) + body,
      head(length, KEYS.viewer).replaceAll('\r\n', '\n') + body,
      head(length, KEYS.viewer).replace('HTTP/1.1', 'HTTP/0.9') + body,
      head(length, KEYS.viewer).replace('POST /mcp', 'POST http://127.0.0.1/mcp') + body,
    ]) {
      const answer = await sendRaw(gateway.port, bytes)
      assert.doesNotMatch(answer, /Successfully wrote/)
      assertNothingRan(bytes.slice(0, 400))
    }
  })
})

describe('an operator', () => {
  const inside = join(workspace, 'note.txt')
  const outside = join(folder.path, 'outside.txt')

  for (const era of ERAS) {
    it(`that writes outside the workspace is refused, and the upstream gets no call, in ${era}`, async () => {
      for (const path of [
        outside,
        `${workspace}/../outside.txt`,
        `${workspace}-other/a.txt`,
        `${workspace}/a/../../outside.txt`,
        '../outside.txt',
        '/etc/passwd',
      ]) {
        for (const server of ['recording', 'files']) {
          const answer = await gateway.call('operator', era, `${server}__write_file`, { path, content: 'x' })
          assert.equal(textOf(answer), 'TOOL_CALL_BLOCKED: Write inside the workspace.', path)
          assertNothingRan(path)
        }
      }
      const pending = (await gateway.api('/api/approvals?status=pending')).body
      assert.deepEqual(pending, { approvals: [] })
    })
  }

  it('waits for another person to approve; then only that call runs, once', async () => {
    const write = (content: string, path = inside) =>
      gateway.call('operator', MODERN, 'files__write_file', { path, content })
    const waiting = await write('one')
    assert.equal(
      textOf(waiting),
      `Waiting for approval of files__write_file. owner or somebody with the role approver can decide at ${gateway.url}/approvals/${approvalOf(waiting)}.`,
    )
    assertNothingRan('before the approval')
    const id = approvalOf(waiting)

    for (const key of [KEYS.operator, KEYS.admin, KEYS.viewer]) {
      const body = { decision: 'approve' }
      const refused = await gateway.api(`/api/approvals/${id}`, { key, method: 'POST', body })
      assert.equal(refused.status, 403)
      assert.equal((await gateway.api('/api/approvals', { key })).status, 403)
    }
    assert.equal(approvalOf(await write('one')), id)
    assertNothingRan('after an agent tried to approve')

    const approved = await gateway.api(`/api/approvals/${id}`, { method: 'POST', body: { decision: 'approve' } })
    assert.equal(approved.status, 200)
    assertNothingRan('the approval runs nothing by itself')

    const another = await write('two')
    assert.notEqual(approvalOf(another), id)
    const elsewhere = await write('one', join(workspace, 'other.txt'))
    assert.notEqual(approvalOf(elsewhere), id)
    assertNothingRan('another input is another call')

    const [first, second] = await Promise.all([write('one'), write('one')])
    const ran = [first, second].filter(({ result }) => result?.isError !== true)
    assert.equal(ran.length, 1, JSON.stringify([first, second]))
    assert.equal(readFileSync(inside, 'utf8'), 'one')

    writeFileSync(inside, 'changed meanwhile')
    assert.notEqual(approvalOf(await write('one')), id)
    assert.equal(readFileSync(inside, 'utf8'), 'changed meanwhile')
  })

  it('gets a rejection with its reason, and nothing runs', async () => {
    const write = () => gateway.call('operator', '2025-11-25', 'recording__write_file', { path: join(workspace, 'r') })
    const id = approvalOf(await write())
    await gateway.api(`/api/approvals/${id}`, { method: 'POST', body: { decision: 'reject', reason: 'not today' } })
    assert.equal(textOf(await write()), 'TOOL_CALL_BLOCKED: a person rejected this call: not today')
    assertNothingRan('after the rejection')
  })

  it("cannot use the approval of another caller's call", async () => {
    const input = { path: join(workspace, 'shared') }
    const id = approvalOf(await gateway.call('operator', MODERN, 'recording__write_file', input))
    await gateway.api(`/api/approvals/${id}`, { method: 'POST', body: { decision: 'approve' } })
    assert.match(textOf(await gateway.call('viewer', MODERN, 'recording__write_file', input)), /is not available/)
    const { headers, body } = toMessage(MODERN, 'tools/call', { name: 'recording__write_file', arguments: input })
    const sent = { headers: { ...headers, ...bearer(COLLEAGUE) }, body: JSON.stringify(body) }
    const colleague = (await send(gateway.mcpUrl, sent)).json() as RpcAnswer
    assert.notEqual(approvalOf(colleague), id)
    assertNothingRan('by another caller')
    assert.equal(textOf(await gateway.call('operator', '2025-03-26', 'recording__write_file', input)), 'write_file ran')
  })
})

describe('the audit', () => {
  it('has one terminal record for each attempt of the viewer, in every spelling and era', async () => {
    const countOf = async () => {
      const { body } = await gateway.api('/api/audit?user=viewer&limit=1000')
      const { records } = body as { records: { event: string; seq: number }[] }
      return records.filter(({ event }) => event === 'tool_blocked').length
    }
    const spellings = [...spellingsOf('files__write_file')].slice(0, 10)
    const earlier = (await gateway.api('/api/audit?limit=1')).body as { records: { seq: number }[] }
    const since = earlier.records[0]?.seq ?? 0
    for (const era of ERAS) for (const name of spellings) await gateway.call('viewer', era, name, WRITE)
    const { body } = await gateway.api(`/api/audit?user=viewer&limit=1000&after=${since}`)
    const events = (body as { records: { event: string }[] }).records.map(({ event }) => event)
    assert.deepEqual(
      events,
      Array.from({ length: spellings.length * ERAS.length }, () => 'tool_blocked'),
    )
    assert.ok((await countOf()) >= events.length)
  })
})

function approvalOf({ result }: RpcAnswer): string {
  const approval = result?._meta?.['dev.toolgate/approval'] as { id: string } | undefined
  assert.ok(approval, JSON.stringify(result))
  return approval.id
}

function bearer(key: string): { authorization: string } {
  return { authorization: `Bearer ${key}` }
}

/** Every known way to write a name that a careless reader confuses with another. */
function spellingsOf(name: string): ReadonlySet<string> {
  const [server = '', tool = ''] = name.split('__')
  const id = `${server}:${tool}`
  return new Set([
    name,
    id,
    tool,
    `:${tool}`,
    `${name} `,
    ` ${name}`,
    `${name}\t`,
    `${name}\n`,
    `${name}\0`,
    `${name}\0.txt`,
    name.toUpperCase(),
    `${server.toUpperCase()}__${tool}`,
    `${server}__${tool.toUpperCase()}`,
    `${server}_${tool}`,
    `${server}___${tool}`,
    `${server}____${tool}`,
    `__${name}`,
    `${name}__`,
    `${server}.${tool}`,
    `${server}/${tool}`,
    `${server}::${tool}`,
    `mcp__${name}`,
    `${server}:${name}`,
    `${server}__${server}__${tool}`,
    `${server}__*`,
    `${server}:*`,
    '*',
    `/${name}/`,
    `group:server:${server}`,
    encodeURIComponent(id),
    Buffer.from(name).toString('base64'),
    `=?base64?${Buffer.from(name).toString('base64')}?=`,
    // Look-alikes, and what Unicode normalisation or case folding would make the same.
    name.replace('e', '\u0435'),
    name.replace('o', '\u03bf'),
    name.replace('i', '\u0131'),
    name.normalize('NFD').replace('i', 'i\u0307'),
    name.replace('fi', '\ufb01'),
    name.replaceAll('_', '\uff3f'),
    name.replaceAll(/[a-z]/g, (letter) => String.fromCodePoint((letter.codePointAt(0) ?? 0) + 0xfee0)),
    `${name}\u200b`,
    `\ufeff${name}`,
    `${name}\u202e`,
    name.replace('_', '\u00ad_'),
    `${name.slice(0, 3)}\ud800${name.slice(3)}`,
    // The form that a name takes which does not fit.
    `${name.replace('__', '_')}__${createHash('sha256').update(id).digest('hex').slice(0, 10)}_`,
    '__proto__',
    'constructor',
    'toString',
    'hasOwnProperty',
    'valueOf',
    `${server}____proto__`,
    `${server}__constructor`,
    '',
    `${name}${'x'.repeat(10_000)}`,
  ])
}
