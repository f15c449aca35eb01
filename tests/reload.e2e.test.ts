import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, it } from 'node:test'
import type { AuditRecord } from '@toolgate/core/audit'
import { loadConfig, type Reload } from '@toolgate/gateway'
import { runCommand } from './support/command.ts'
import { startTestGateway, tempFolder, type TestGateway, until } from './support/gateway.ts'
import { MODERN, type RpcAnswer, textOf } from './support/rpc.ts'
import { send } from './support/http.ts'

const LEGACY = '2025-11-25'
const SLOW = join(import.meta.dirname, 'support/reload-server.js')

interface File {
  servers?: string
  callers?: readonly string[]
  groups?: string
  apps?: string
  policy?: string
  limits?: string
  more?: string
}

const VIEWER = '{ key: demo-viewer, user: viewer, roles: [viewer] }'
const ADMIN = '{ key: demo-admin, user: admin, roles: [admin] }'
const OWNER = '{ key: demo-console, for: console, user: owner, roles: [approver] }'
const SERVER = (name: string, more = '') =>
  `  ${name}: { command: ${JSON.stringify(process.execPath)}, args: [${JSON.stringify(SLOW)}], per: shared${more} }`

function textOfFile({ servers, callers, groups, apps, policy, limits, more }: File): string {
  return [
    'servers:',
    servers ?? SERVER('slow'),
    'callers:',
    ...(callers ?? [VIEWER, ADMIN, OWNER]).map((caller) => `  - ${caller}`),
    `groups: ${groups ?? '{}'}`,
    `apps: ${apps ?? '{}'}`,
    `policy: ${policy ?? '[{ allow: ["*"] }]'}`,
    `limits: ${limits ?? '[]'}`,
    'listen: { port: 0 }',
    'drainMs: 250',
    'audit: { store: memory }',
    'state: { store: memory }',
    more ?? '',
  ].join('\n')
}

describe('a reload', () => {
  let folder: ReturnType<typeof tempFolder>
  let gateway: TestGateway
  let file: string
  const write = (given: File) => writeFileSync(file, textOfFile(given))
  beforeEach(async () => {
    folder = tempFolder()
    file = join(folder.path, 'toolgate.yaml')
    write({})
    gateway = await startTestGateway(loadConfig(file))
  })
  afterEach(async () => {
    await gateway.close()
    folder.remove()
  })

  const toolgate = async (...args: string[]) => runCommand(gateway.url, ...args)
  const reload = async (given: File): Promise<Reload> => {
    write(given)
    const { status, body } = await gateway.api('/api/reload', { method: 'POST', body: {} })
    assert.equal(status, 200, JSON.stringify(body))
    return body as Reload
  }
  const records = async (event: string) => {
    const { body } = await gateway.api(`/api/audit?event=${event}`)
    return (body as { records: readonly AuditRecord[] }).records
  }
  const pid = async (server: string) => textOf(await gateway.call('admin', MODERN, `${server}__pid`))

  it('replaces policy, callers, limits, groups and apps, and says who gains and who loses', async () => {
    const before = await gateway.list('viewer', MODERN)
    const answer = await reload({
      policy: '[{ allow: ["*"], deny: [{ match: "slow:wait", unless: "\'admin\' in caller.roles" }] }]',
      limits: '["slow:echo:1/60"]',
      apps: '{ desk: { tools: ["slow:echo"] } }',
    })
    assert.equal(answer.isApplied, true)
    assert.deepEqual(answer.access, [{ caller: 'viewer', gains: [], loses: ['slow:wait'] }])
    assert.deepEqual(
      await gateway.list('viewer', MODERN),
      before.filter((name) => name !== 'slow__wait'),
    )
    assert.equal(textOf(await gateway.call('viewer', MODERN, 'slow__echo')), 'echo')
    assert.match(textOf(await gateway.call('viewer', MODERN, 'slow__echo')), /rate limited/)
    const desk = await send(`${gateway.url}/mcp/desk`, {
      headers: {
        authorization: 'Bearer demo-viewer',
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' }),
    })
    assert.deepEqual(
      (desk.json() as RpcAnswer).result?.tools?.map(({ name }) => name),
      ['slow__echo'],
    )
    const [record] = await records('config_changed')
    assert.deepEqual([record?.user_id, record?.reason], ['owner', 'api'])
    assert.match(record?.detail ?? '', /viewer loses slow:wait/)
  })

  it('with a mistake changes nothing, and names it with line and column in every place', async () => {
    writeFileSync(
      file,
      textOfFile({ policy: '[{ deny: [{ match: "slow:wait", when: "\'admin\' in caller.rolse" }] }]' }),
    )
    const { status, body } = await gateway.api('/api/reload', { method: 'POST', body: {} })
    assert.equal(status, 400)
    const place = /toolgate\.yaml:\d+:\d+: policy\[0\]\.deny\[0\]\.when: /
    assert.match(JSON.stringify(body), place)
    const command = await toolgate('reload')
    assert.equal(command.code, 2)
    assert.match(command.err, place)
    await assert.rejects(gateway.reload(), place)
    assert.ok(gateway.log.some(({ level, message, detail }) => level === 'error' && place.test(`${message} ${detail}`)))
    assert.equal(textOf(await gateway.call('viewer', MODERN, 'slow__echo')), 'echo')
    assert.deepEqual(await records('config_changed'), [])
  })

  it('as a dry run only prints what would change', async () => {
    write({ policy: '[{ allow: ["*"], deny: ["slow:wait"] }]', more: 'pins: off' })
    const { code, out } = await toolgate('reload', '--dry-run')
    assert.equal(code, 0)
    const [, preview = ''] = /--preview ([0-9a-f]{16})\n/.exec(out) ?? []
    assert.equal(
      out,
      [
        'this would change',
        '+ policy: policy[0]: deny: slow:wait',
        'viewer loses slow:wait',
        'admin loses slow:wait',
        'restart needed for pins',
        `to apply exactly this: toolgate reload --preview ${preview}`,
        '',
      ].join('\n'),
    )
    assert.ok((await gateway.list('viewer', MODERN)).includes('slow__wait'))
    assert.match((await toolgate('reload')).out, /^revision 2\n/)
    assert.deepEqual((await toolgate('reload')).out, 'nothing has changed\nrestart needed for pins\n')
  })

  describe('that names a preview', () => {
    const DENIES = (tool: string) => ({ policy: `[{ allow: ["*"], deny: ["slow:${tool}"] }]` })
    const post = (body: object) => gateway.api('/api/reload', { method: 'POST', body })
    const previewOf = async () => ((await post({ dryRun: true })).body as Reload).preview
    const codeOf = (body: unknown) => (body as { error?: { code: string } }).error?.code
    const hides = async (tool: string) => !(await gateway.list('viewer', MODERN)).includes(`slow__${tool}`)

    it('applies what the preview showed', async () => {
      write(DENIES('wait'))
      const { status, body } = await post({ preview: await previewOf() })
      assert.deepEqual([status, (body as Reload).isApplied, await hides('wait')], [200, true, true])
    })

    it('applies nothing once somebody has changed the file, even to an equal set of names', async () => {
      write(DENIES('wait'))
      const preview = await previewOf()
      const changed = { ...DENIES('wait'), callers: [VIEWER.replace('demo-viewer', 'demo-thief1'), ADMIN, OWNER] }
      for (const given of [DENIES('echo'), changed]) {
        write(given)
        const { status, body } = await post({ preview })
        assert.deepEqual([status, codeOf(body)], [409, 'reload_outdated'])
        const command = await toolgate('reload', '--preview', preview ?? '')
        assert.match(command.err, /Nothing was applied: the file, or the configuration in force, is no longer/)
        assert.notEqual(command.code, 0)
      }
      assert.deepEqual([await hides('wait'), await hides('echo')], [false, false])
      assert.deepEqual(await records('config_changed'), [])
      write(DENIES('wait'))
      assert.equal((await post({ preview })).status, 200)
    })

    it('applies nothing once another configuration is in force than it was compared with', async () => {
      write(DENIES('wait'))
      const preview = await previewOf()
      await reload(DENIES('echo'))
      write(DENIES('wait'))
      assert.equal((await post({ preview })).status, 409)
      assert.deepEqual([await hides('wait'), await hides('echo')], [false, true])
    })

    it('of two people at the same time applies the one that comes first, once', async () => {
      write(DENIES('wait'))
      const previews = [await previewOf(), await previewOf()]
      const answers = await Promise.all(previews.map((preview) => post({ preview })))
      assert.deepEqual(answers.map(({ status }) => status).toSorted(), [200, 409])
      assert.equal((await records('config_changed')).length, 1)
    })
  })

  it('is for a person with a role, and takes no configuration', async () => {
    await reload({
      callers: [
        VIEWER,
        ADMIN,
        OWNER,
        '{ key: demo-looker, for: console, user: looker }',
        '{ key: demo-tenant, for: console, user: t, tenant: acme, roles: [approver] }',
      ],
    })
    for (const key of ['demo-looker', 'demo-tenant', 'demo-viewer'])
      assert.equal((await gateway.api('/api/reload', { key, method: 'POST', body: {} })).status, 403)
    const sent = await gateway.api('/api/reload', { method: 'POST', body: { policy: [] } })
    assert.equal(sent.status, 400)
    assert.equal((await gateway.api('/api/reload', { method: 'POST', body: { preview: 1 } })).status, 400)
  })

  it('keeps the process of a server that did not change, also where only its overlay did', async () => {
    await reload({ servers: [SERVER('slow'), SERVER('other')].join('\n') })
    await until(async () => (await gateway.list('admin', MODERN)).includes('other__pid'))
    const [slow, other] = [await pid('slow'), await pid('other')]
    await reload({
      servers: [SERVER('slow', ', tools: { "wait": { tags: [slow] } }'), SERVER('other', ', env: { A: b }')].join('\n'),
      policy: '[{ allow: ["*"], deny: ["tag:slow"] }]',
    })
    await until(async () => (await gateway.list('admin', MODERN)).includes('other__pid'))
    assert.equal(await pid('slow'), slow)
    assert.notEqual(await pid('other'), other)
    assert.equal((await gateway.list('admin', MODERN)).includes('slow__wait'), false)
    await reload({})
    assert.equal(await pid('slow'), slow)
    assert.deepEqual(
      (await gateway.list('admin', MODERN)).filter((name) => name.startsWith('other')),
      [],
    )
  })

  it('applies overlays in another order, as later ones take precedence', async () => {
    const overlays = (...list: readonly string[]) => SERVER('slow', `, tools: { ${list.join(', ')} }`)
    const [none, all] = ['"wait": { enabled: false }', '"*": { enabled: true }']
    await reload({ servers: overlays(none, all) })
    assert.ok((await gateway.list('admin', MODERN)).includes('slow__wait'))
    const before = await pid('slow')
    const { changes } = await reload({ servers: overlays(all, none) })
    assert.deepEqual(changes, [{ section: 'servers', what: 'changed', name: 'slow', fields: ['tools'] }])
    assert.equal((await gateway.list('admin', MODERN)).includes('slow__wait'), false)
    assert.equal(await pid('slow'), before)
  })

  it('redacts rotated secrets at once, and the former ones still, in results, errors, logs, the audit and its own text', async () => {
    const [before, after] = ['first-plain-words', 'later-plain-words']
    const secret = join(folder.path, 'secret')
    const servers = SERVER('slow', `, env: { A: "\${file:${secret}}" }`)
    writeFileSync(secret, `${before}\n`)
    await reload({ servers })
    writeFileSync(secret, `${after}\n`)
    const policy = `[{ allow: ["*"], deny: [{ match: "slow:wait", when: "caller.user == '\${file:${secret}}'" }] }]`
    write({ servers, policy })
    const dry = await gateway.api('/api/reload', { method: 'POST', body: { dryRun: true } })
    const applied = await reload({ servers, policy })
    await until(async () => (await gateway.list('viewer', MODERN)).includes('slow__fail'))
    for (const word of [before, after]) {
      await gateway.call('viewer', MODERN, 'slow__echo', { word })
      await gateway.call('viewer', MODERN, 'slow__fail', { word })
    }
    const logs = () => gateway.api('/api/logs?server=slow')
    await until(async () => JSON.stringify((await logs()).body).includes('failed with'))
    const audit = await gateway.api('/api/audit?limit=100')
    const seen = JSON.stringify([dry.body, applied, audit.body, (await logs()).body, gateway.log])
    assert.match(seen, /failed with \[redacted:secret\]/)
    for (const word of [before, after]) assert.equal(seen.includes(word), false, word)
  })

  it('says who gains and who loses of callers with the same roles, also where a condition reads the user', async () => {
    const callers = [VIEWER, '{ key: demo-second, user: second, roles: [viewer] }', ADMIN, OWNER]
    await reload({ callers })
    const denyWhen = async (when: string) =>
      (await reload({ callers, policy: `[{ allow: ["*"], deny: [{ match: "slow:wait", when: "${when}" }] }]` })).access
    const loses = (caller: string) => ({ caller, gains: [], loses: ['slow:wait'] })
    assert.deepEqual(await denyWhen("'viewer' in caller.roles"), [loses('viewer'), loses('second')])
    for (const user of ['caller.user', "caller['user']", 'caller . user']) {
      await reload({ callers })
      assert.deepEqual(await denyWhen(`${user} == 'second'`), [loses('second')], user)
    }
  })

  it('lets calls that run end, also of a server that is gone', async () => {
    const running = gateway.call('viewer', MODERN, 'slow__wait', { file: join(folder.path, 'go') })
    await until(async () => (await records('tool_call')).length === 1)
    await reload({ servers: '  {}', callers: [ADMIN, OWNER] })
    assert.deepEqual(await gateway.list('admin', MODERN), [])
    writeFileSync(join(folder.path, 'go'), '')
    assert.equal(textOf(await running), 'waited')
    await until(() => gateway.servers().length === 0)
  })

  it('ends the sessions, streams and logins of removed and narrowed keys, and of no others', async () => {
    const login = (key: string) =>
      send(`${gateway.url}/api/login`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', origin: gateway.url },
        body: JSON.stringify({ key }),
      })
    const second = '{ key: demo-second, for: console, user: second, roles: [approver] }'
    await reload({ callers: [VIEWER, ADMIN, OWNER, second] })
    const cookies = await Promise.all(
      ['demo-console', 'demo-second'].map(
        async (key) => String((await login(key)).headers['set-cookie']).split(';')[0] ?? '',
      ),
    )
    const begin = async (who: 'viewer' | 'admin') =>
      String((await gateway.ask(who, LEGACY, 'initialize', INITIALIZE)).headers['mcp-session-id'])
    const [viewer, admin] = [await begin('viewer'), await begin('admin')]
    const statusOf = async (who: 'viewer' | 'admin', session: string) =>
      (await gateway.ask(who, LEGACY, 'ping', {}, { headers: { 'mcp-session-id': session } })).status
    const cookieStatus = async (cookie = '') =>
      (await send(`${gateway.url}/api/session`, { method: 'GET', headers: { cookie } })).status
    assert.deepEqual([await statusOf('viewer', viewer), await statusOf('admin', admin)], [200, 200])

    await reload({ callers: [VIEWER.replace('[viewer]', '[viewer, more]'), ADMIN, OWNER, second] })
    assert.deepEqual([await statusOf('viewer', viewer), await statusOf('admin', admin)], [200, 200], 'wider')
    await reload({ callers: [VIEWER, ADMIN, OWNER] })
    assert.deepEqual([await statusOf('viewer', viewer), await statusOf('admin', admin)], [404, 200], 'narrower')
    assert.deepEqual(await Promise.all(cookies.map(cookieStatus)), [200, 401])
    await reload({ callers: [VIEWER, OWNER] })
    assert.equal(await statusOf('admin', admin), 401, 'removed')
  })
})

const INITIALIZE = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1' } }
