import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, it } from 'node:test'
import type { Approval } from '@toolgate/core'
import type { AuditRecord } from '@toolgate/core/audit'
import { type ApprovalRow, type KeyRow, loadConfig } from '@toolgate/gateway'
import { runCommand } from './support/command.ts'
import { startTestGateway, tempFolder, type TestGateway, until } from './support/gateway.ts'
import { send } from './support/http.ts'
import { type Era, MODERN, type RpcAnswer, toMessage } from './support/rpc.ts'

const SERVER = join(import.meta.dirname, 'support/reload-server.js')
const LEGACY = '2025-11-25'

const FILE = (callers: string) => `
listen: { port: 0 }
drainMs: 250
servers: { own: { command: ${JSON.stringify(process.execPath)}, args: [${JSON.stringify(SERVER)}], per: shared } }
apps: { desk: { tools: ["own:echo"] }, shop: { tools: ["own:pid"] } }
callers:
${callers}
policy: [{ allow: ["*"] }]
audit: { store: memory }
state: { store: memory }
`
const OWNER = '  - { key: demo-console, for: console, user: owner, roles: [approver] }'
const VERA = '  - { key: vera-one-key, id: one, user: vera, roles: [a] }'
const HOST = '  - { key: host-host-key, for: host, user: runner }'

describe('keys', () => {
  let folder: ReturnType<typeof tempFolder>
  let gateway: TestGateway
  let file: string
  const write = (...callers: readonly string[]) => writeFileSync(file, FILE(callers.join('\n')))
  beforeEach(async () => {
    folder = tempFolder()
    file = join(folder.path, 'toolgate.yaml')
    write(VERA, HOST, OWNER)
    gateway = await startTestGateway(loadConfig(file))
  })
  afterEach(async () => {
    await gateway.close()
    folder.remove()
  })

  const toolgate = async (...args: string[]) => runCommand(gateway.url, ...args)
  const ask = (
    key: string,
    method = 'tools/list',
    { path = '/mcp', era = MODERN as Era, headers = {}, params = {} } = {},
  ) => {
    const message = toMessage(era, method, params)
    return send(`${gateway.url}${path}`, {
      headers: { ...message.headers, authorization: `Bearer ${key}`, ...headers },
      body: JSON.stringify(message.body),
    })
  }
  const create = async (...args: string[]) => (await toolgate('keys', 'create', ...args)).out.trim()
  const rows = async () => ((await gateway.api('/api/keys')).body as { keys: readonly KeyRow[] }).keys

  it('bound to apps open the same apps for agents without MCP, and nothing else', async () => {
    write('  - { key: desk-only-key, user: vera, roles: [a], apps: [desk] }', OWNER)
    await toolgate('reload')
    const body = { tool: 'own:echo', input: {} }
    const post = (path: string, tool = body.tool) =>
      gateway.api(path, { key: 'desk-only-key', method: 'POST', body: { ...body, tool } })
    for (const path of ['/api/call', '/api/decide']) {
      const opened = (await post(`${path}?app=desk`)).body as { status?: string; outcome?: string }
      assert.ok(opened.status === 'done' || opened.outcome === 'allow', JSON.stringify(opened))
      const other = (await post(`${path}?app=desk`, 'own:pid')).body as { outcome?: string }
      assert.equal(other.outcome, 'deny')
      const [shop, none, whole] = await Promise.all(
        [`${path}?app=shop`, `${path}?app=none`, path].map((asked) => post(asked)),
      )
      assert.equal(shop?.status, 404)
      assert.deepEqual([none, whole], [shop, shop])
    }
    assert.equal((await gateway.api('/api/list', { key: 'desk-only-key' })).status, 404)
    assert.equal((await gateway.api('/api/list?app=desk', { key: 'desk-only-key' })).status, 200)
  })

  for (const [what, after] of [
    ['revoked', ''],
    ['bound to another app', '  - { key: vera-one-key, id: one, user: vera, roles: [a], apps: [desk] }'],
    ['for the console', '  - { key: vera-one-key, id: one, for: console, user: vera, roles: [a] }'],
    ['of a caller who may no longer call it', '  - { key: vera-one-key, id: one, user: vera, roles: [b] }'],
  ] as const)
    for (const through of ['/api/call?app=shop', '/mcp/shop'] as const)
      it(`ends a call that waits for a slot where its key is now ${what}, at ${through}`, async () => {
        await gateway.close()
        const text = (...callers: readonly string[]) =>
          `${FILE(callers.join('\n')).replace('[{ allow: ["*"] }]', '[{ allow: ["*"], deny: [{ match: "own:wait", when: "\'b\' in caller.roles" }] }]').replace('["own:pid"]', '["own:wait"]')}calls: { concurrency: [{ match: "own:wait", max: 1, waitMs: 60000 }] }\n`
        const other = '  - { key: vera-other-key, id: other, user: other, roles: [a] }'
        writeFileSync(file, text(VERA, other, OWNER))
        gateway = await startTestGateway(loadConfig(file))
        const go = join(folder.path, 'go')
        const wait = (key: string, input: object) =>
          through === '/mcp/shop'
            ? ask(key, 'tools/call', { path: through, params: { name: 'own__wait', arguments: input } })
            : send(`${gateway.url}${through}`, {
                headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
                body: JSON.stringify({ tool: 'own:wait', input }),
              })
        const started = async (count: number) =>
          ((await gateway.api('/api/audit?event=tool_call')).body as { records: readonly AuditRecord[] }).records
            .length === count
        const metrics = async () =>
          (await send(`${gateway.url}/metrics`, { method: 'GET', headers: { authorization: 'Bearer demo-console' } }))
            .text
        const first = wait('vera-other-key', { file: go })
        await until(() => started(1))
        const second = wait('vera-one-key', { file: go })
        await until(async () => /^toolgate_running_calls 2$/m.test(await metrics()))
        writeFileSync(file, text(...(after === '' ? [] : [after]), other, OWNER))
        assert.equal((await toolgate('reload')).code, 0)
        writeFileSync(go, '')
        assert.match((await first).text, /waited/)
        assert.doesNotMatch((await second).text, /waited/)
        assert.ok(await started(1), 'it never ran')
      })

  it('are made by the command, work at once, and rotate without a gap: the session of a user goes on with the new one', async () => {
    const begun = await ask('vera-one-key', 'initialize', { era: LEGACY, params: INITIALIZE })
    const session = { 'mcp-session-id': String(begun.headers['mcp-session-id']) }
    const second = await create('--user', 'vera', '--id', 'two')
    assert.match(second, /^tgk_[\w-]{43}$/)
    assert.equal((await ask(second)).status, 200)
    for (const key of ['vera-one-key', second])
      assert.equal((await ask(key, 'ping', { era: LEGACY, headers: session })).status, 200)
    write('  - { key: vera-three-key, id: three, user: vera, roles: [a] }', HOST, OWNER)
    assert.equal((await toolgate('reload')).code, 0)
    assert.equal((await ask('vera-one-key')).status, 401)
    assert.equal((await ask(second, 'ping', { era: LEGACY, headers: session })).status, 200)
    assert.deepEqual(
      (await rows()).map(({ id, from }) => [id, from]),
      [
        ['three', 'file'],
        [(await rows())[1]?.id, 'file'],
        [(await rows())[2]?.id, 'file'],
        ['two', 'made'],
      ],
    )
  })

  it('that are revoked end their sessions and streams at once, and are on record', async () => {
    const key = await create('--user', 'vera', '--id', 'two')
    const begun = await ask(key, 'initialize', { era: LEGACY, params: INITIALIZE })
    const session = { 'mcp-session-id': String(begun.headers['mcp-session-id']) }
    const stream = send(gateway.mcpUrl, {
      method: 'GET',
      headers: {
        authorization: `Bearer ${key}`,
        accept: 'text/event-stream',
        'mcp-protocol-version': LEGACY,
        ...session,
      },
    })
    const running = ask(key, 'tools/call', {
      params: { name: 'own__wait', arguments: { file: join(folder.path, 'go') } },
    })
    await until(async () => (await records('tool_call')).length === 1)
    assert.match((await toolgate('keys', 'revoke', 'two')).out, /revoked {2}two of vera/)
    assert.equal((await stream).status, 200)
    assert.equal((await ask(key)).status, 401)
    assert.equal((await ask('vera-one-key', 'ping', { era: LEGACY, headers: session })).status, 404)
    writeFileSync(join(folder.path, 'go'), '')
    assert.match((await running).text, /waited/)
    const changes = (await records('config_changed')).map(({ reason, detail, user_id: by }) => [reason, detail, by])
    assert.deepEqual(changes.toSorted(), [
      ['key_created', 'two of vera (mcp), made by owner for vera', 'owner'],
      ['key_revoked', 'two of vera (mcp)', 'owner'],
    ])
  })

  it('expire, also those of the file', async () => {
    const key = await create('--user', 'vera', '--expires', new Date(Date.now() + 3000).toISOString())
    const begun = await ask(key, 'initialize', { era: LEGACY, params: INITIALIZE })
    const session = { 'mcp-session-id': String(begun.headers['mcp-session-id']) }
    const listening = { 'mcp-protocol-version': LEGACY, accept: 'text/event-stream', ...session }
    const headers = { ...listening, authorization: `Bearer ${key}` }
    assert.equal((await send(gateway.mcpUrl, { method: 'GET', headers })).status, 200, 'the stream has ended')
    assert.equal((await ask(key)).status, 401)
    assert.equal((await ask('vera-one-key', 'ping', { era: LEGACY, headers: session })).status, 404)
    write('  - { key: vera-one-key, user: vera, expires: 2020-01-01 }', HOST, OWNER)
    await toolgate('reload')
    assert.equal((await ask('vera-one-key')).status, 401)
    assert.ok((await rows()).some(({ isExpired, from }) => isExpired && from === 'file'))
  })

  it('that are bound to apps open these, and everything else is as if it was not there', async () => {
    const key = await create('--user', 'vera', '--apps', 'desk')
    assert.equal((await ask(key, 'tools/list', { path: '/mcp/desk' })).status, 200)
    const [whole, other, none] = await Promise.all(
      ['/mcp', '/mcp/shop', '/mcp/nothing'].map((path) => ask(key, 'tools/list', { path })),
    )
    assert.deepEqual([whole?.status, other?.status], [404, 404])
    assert.equal(other?.text, none?.text)
  })

  it('that are bound to apps open nothing else over HTTP either, where names of apps cannot be guessed', async () => {
    const key = await create('--user', 'vera', '--apps', 'desk')
    const call = async (query: string, tool: string, as = key) => {
      const headers = { authorization: `Bearer ${as}`, 'content-type': 'application/json' }
      const body = JSON.stringify({ tool, input: {} })
      const { status, text } = await send(`${gateway.url}/api/call${query}`, { method: 'POST', headers, body })
      return { status, text }
    }
    const list = (query: string) =>
      send(`${gateway.url}/api/list${query}`, { method: 'GET', headers: { authorization: `Bearer ${key}` } })
    assert.equal((await call('?app=desk', 'own:echo')).status, 200)
    const none = await call('?app=nothing', 'own:pid')
    assert.equal(none.status, 404)
    for (const query of ['', '?app=shop', '?app=des']) {
      assert.deepEqual(await call(query, 'own:pid'), none)
      assert.equal((await list(query)).text, none.text)
    }
    assert.deepEqual(await call('?app=shp', 'own:pid', 'vera-one-key'), none)
  })

  it('of hosts open nothing yet', async () => {
    const answer = await ask('host-host-key')
    assert.equal(answer.status, 403)
    assert.match((answer.json() as RpcAnswer).error?.message ?? '', /for a program that runs agents/)
    assert.equal((await gateway.api('/api/session', { key: 'host-host-key' })).status, 403)
  })

  it('are never shown again, and their last use is', async () => {
    const key = await create('--user', 'vera', '--id', 'two')
    await ask(key)
    const text = JSON.stringify(await gateway.api('/api/keys'))
    assert.equal(text.includes(key), false)
    assert.equal(/[0-9a-f]{64}/.test(text), false)
    assert.ok(((await rows()).find(({ id }) => id === 'two')?.lastUsedAt ?? 0) > Date.now() - 60_000)
    assert.match((await toolgate('keys')).out, /two +mcp +vera +a +all +never +20\S+ +owner/)
  })

  it('end with the user that the file no longer has, and come with the roles that it has now', async () => {
    const key = await create('--user', 'vera')
    write('  - { key: udo-one-key-1, user: udo }', HOST, OWNER)
    await toolgate('reload')
    assert.equal((await ask(key)).status, 401)
    write(VERA, HOST, OWNER)
    await toolgate('reload')
    assert.equal((await ask(key)).status, 200)
  })

  it('are not denied for a user of another tenant: the tenant is named to people without one', async () => {
    const tenants = [
      '  - { key: ida-in-acme-1, user: ida, tenant: acme }',
      '  - { key: boss-of-other-1, for: console, user: boss, tenant: other, roles: [operator] }',
    ]
    write(VERA, HOST, OWNER, ...tenants)
    await toolgate('reload')
    assert.match(
      (await toolgate('keys', 'create', '--user', 'ida')).err,
      /"ida" exists in tenant "acme": name that as the tenant \(--tenant\)/,
    )
    const within = { method: 'POST', key: 'boss-of-other-1', body: { user: 'ida', tenant: 'other' } }
    const answer = await gateway.api('/api/keys', within)
    assert.equal(answer.status, 403)
    assert.doesNotMatch(JSON.stringify(answer.body), /acme/)
    write(VERA, HOST, OWNER)
    await toolgate('reload')
  })

  const refused: readonly (readonly [string, object, number, RegExp])[] = [
    ['an unknown user, naming the nearest', { user: 'vear' }, 400, /no caller for \\"mcp\\" is \\"vear\\".*vera/],
    ['an unknown app', { user: 'vera', apps: ['desc'] }, 400, /no app is named \\"desc\\".*desk/],
    ['a past expiry', { user: 'vera', expiresAt: 1 }, 400, /in the future/],
    ['a taken id', { user: 'vera', id: 'one' }, 400, /has the id \\"one\\" already/],
    ['an id that is none', { user: 'vera', id: '../x' }, 400, /letters, digits/],
    ['another use', { user: 'vera', for: 'all' }, 400, /mcp, console or host/],
    ['a key from outside', { user: 'vera', key: 'mine-mine-mine' }, 400, /key/],
    ['a console key of somebody else', { user: 'vera', for: 'console' }, 403, /whose it is/],
  ]
  for (const [what, body, status, message] of refused)
    it(`are not made for ${what}`, async () => {
      const answer = await gateway.api('/api/keys', { method: 'POST', body })
      assert.equal(answer.status, status)
      assert.match(JSON.stringify(answer.body), message)
    })

  it('are not made with an agent’s key, and those of the file are not revoked', async () => {
    assert.equal(
      (await gateway.api('/api/keys', { key: 'vera-one-key', method: 'POST', body: { user: 'vera' } })).status,
      403,
    )
    const revoking = await toolgate('keys', 'revoke', 'one')
    assert.deepEqual([revoking.code, /is in the file/.test(revoking.err)], [2, true])
    assert.match((await toolgate('keys', 'revoke', 'oen')).err, /did you mean "one"/i)
  })

  it('remember who made them: that person approves no call of the key where another person must', async () => {
    const people = [OWNER, '  - { key: second-person-key, for: console, user: ada, roles: [approver] }']
    writeFileSync(
      file,
      FILE([VERA, ...people].join('\n')).replace(
        '[{ allow: ["*"] }]',
        '[{ allow: ["*"], ask: [{ match: "own:echo", by: other }] }]',
      ),
    )
    await toolgate('reload')
    const key = await create('--user', 'vera', '--id', 'two')
    const echo = async (as: string) => (await ask(as, 'tools/call', { params: { name: 'own__echo' } })).text
    const waiting = async () =>
      ((await gateway.api('/api/approvals?status=pending')).body as { approvals: readonly Approval[] }).approvals
    const approve = (id: string, as: string) =>
      gateway.api(`/api/approvals/${id}`, { key: as, method: 'POST', body: { decision: 'approve' } })

    // What is approved for the user's own key is not for the other one.
    await echo('vera-one-key')
    const [own] = await waiting()
    assert.equal(own?.keyMadeBy, undefined)
    assert.equal((await approve(String(own?.id), 'demo-console')).status, 200)
    assert.match(await echo(key), /Waiting for approval/)

    const [asked] = await waiting()
    assert.ok(asked)
    assert.equal(asked.keyMadeBy, 'owner')
    assert.match((await toolgate('approvals')).out, /for vera, with a key made by owner/)
    const refusal = await approve(asked.id, 'demo-console')
    assert.equal(refusal.status, 403)
    assert.match(JSON.stringify(refusal.body), /approval_needs_other/)
    assert.equal((await approve(asked.id, 'second-person-key')).status, 200)
    assert.doesNotMatch(await echo(key), /Waiting for approval/)
    const makers = (await records('tool_result')).map(({ user_id: user, key_made_by: by }) => [user, by])
    assert.deepEqual(makers, [['vera', 'owner']])
  })

  it('remember the maker of a key of a host: that person may not approve calls of its runs or their children', async () => {
    const ada = '  - { key: second-person-key, for: console, user: ada, roles: [approver] }'
    const policy = '[{ allow: ["*"], ask: [{ match: "own:echo", by: other }] }]'
    writeFileSync(file, FILE([VERA, HOST, OWNER, ada].join('\n')).replace('[{ allow: ["*"] }]', policy))
    await toolgate('reload')
    const host = await create('--user', 'runner', '--for', 'host', '--id', 'h-two')
    const start = async (body: object, key: string) => {
      const started = await gateway.api('/api/runs', { key, method: 'POST', body })
      assert.equal(started.status, 200, JSON.stringify(started.body))
      return started.body as { readonly id: string; readonly token: string }
    }
    const root = await start({ user: 'vera' }, host)
    // A child that another key of the host starts has the maker of its parent's.
    const child = await start({ parent: root.id }, 'host-host-key')
    const echo = async (as: string) => (await ask(as, 'tools/call', { params: { name: 'own__echo' } })).text
    const approve = (id: string, as: string) =>
      gateway.api(`/api/approvals/${id}`, { key: as, method: 'POST', body: { decision: 'approve' } })
    for (const { id, token } of [root, child]) {
      assert.match(await echo(token), /Waiting for approval/)
      const { body } = await gateway.api('/api/approvals?status=pending')
      const asked = (body as { approvals: readonly ApprovalRow[] }).approvals.find(({ run }) => run === id)
      assert.ok(asked)
      assert.deepEqual([asked.keyMadeBy, asked.behind, asked.deciders], ['runner', ['owner'], ['ada']])
      const refusal = await approve(asked.id, 'demo-console')
      assert.deepEqual([refusal.status, /approval_needs_other/.test(JSON.stringify(refusal.body))], [403, true])
      assert.equal((await approve(asked.id, 'second-person-key')).status, 200)
      assert.doesNotMatch(await echo(token), /Waiting for approval/)
    }
  })

  const records = async (event: string) => {
    const { body } = await gateway.api(`/api/audit?event=${event}`)
    return (body as { records: readonly AuditRecord[] }).records
  }
})

const INITIALIZE = { protocolVersion: LEGACY, capabilities: {}, clientInfo: { name: 'test', version: '1' } }
