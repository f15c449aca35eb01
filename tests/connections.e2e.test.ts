import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, afterEach, before, describe, it } from 'node:test'
import type { AuditBody, ConnectionsBody, ErrorBody, GatewayConfig } from '@toolgate/gateway'
import { type AccountServer, CHECKER, startAccountServer } from './support/account-server.ts'
import { type AuthorizationServer, startAuthorizationServer } from './support/authorization-server.ts'
import { Browser } from './support/connecting.ts'
import { startTestGateway, tempFolder, type TestGateway, until } from './support/gateway.ts'
import { callerConfig, CALLERS, KEYS, type Who } from './support/keys.ts'
import { MODERN } from './support/rpc.ts'
import { httpServer } from './support/servers.ts'

/** Users who connect a server to their own accounts, with a real authorization server and a real MCP server. */

const PERSON = 'demo-viewer-as-person'
const callers = [
  ...CALLERS,
  callerConfig(PERSON, { user: 'viewer' }, 'console'),
  callerConfig('demo-host', { user: 'viewer' }, 'host'),
  callerConfig('demo-bot', { agent: 'bot' }),
  { ...callerConfig('demo-desk', { user: 'viewer', roles: ['viewer'] }), id: 'desk', apps: ['desk'] },
]
const closing: (() => unknown)[] = []
let login: AuthorizationServer
let server: AccountServer

before(async () => {
  login = await startAuthorizationServer({ format: 'opaque', scopes: ['tools', 'more'], clients: [CHECKER] })
  server = await startAccountServer({
    login,
    toolsOf: (account) => (account === 'vera@mail' ? ['archive', 'leak'] : []),
  })
})
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
})
after(async () => {
  await server?.close()
  await login?.close()
})

type Server = GatewayConfig['servers'][number]

async function start(
  given: Partial<GatewayConfig> = {},
  more: Partial<Server> = {},
  reread?: () => Partial<GatewayConfig>,
): Promise<TestGateway> {
  const gateway = await startTestGateway({ callers, servers: [mail(more)], ...given }, reread)
  closing.push(gateway.close)
  return gateway
}

function mail(more: Partial<Server> = {}): Server {
  return httpServer('mail', server.url, { per: 'user', listing: 'user', oauth: {}, ...more })
}

async function call(gateway: TestGateway, who: Who = 'viewer', name = 'mail__whoami'): Promise<string> {
  const { result } = await gateway.call(who, MODERN, name)
  return result?.content?.[0]?.text ?? ''
}

/** Connects a user's account, and waits until it is called. */
async function connect(gateway: TestGateway, who: 'viewer' | 'operator' = 'viewer', account = 'vera@mail') {
  login.account = account
  const browser = new Browser(gateway.url)
  await browser.logIn('mail', KEYS[who])
  const answer = await browser.connect('mail', login)
  assert.equal(answer.status, 303, answer.text)
  assert.equal(await call(gateway, who), account)
  return browser
}

async function events(gateway: TestGateway, event: string) {
  const { body } = await gateway.api(`/api/audit?event=${event}`)
  return (body as AuditBody).records
}

describe('a user who connects a server to their account', () => {
  it('calls as that account, and nobody else does', async () => {
    const gateway = await start()
    assert.match(await call(gateway), /The user connects it at http:\/\/127\.0\.0\.1:\d+\/connect\/mail/)
    const told = async () => JSON.stringify((await gateway.ask('viewer', MODERN, 'server/discover')).json())
    assert.match(await told(), /The user connects it at http:\/\/127/)
    await connect(gateway)
    assert.doesNotMatch(await told(), /The user connects it/)
    assert.deepEqual(await gateway.list('viewer', MODERN), ['mail__archive', 'mail__leak', 'mail__whoami'])
    const heard = server.seen.length
    assert.match(await call(gateway, 'operator'), /connect\/mail/)
    assert.deepEqual(await gateway.list('operator', MODERN), [])
    assert.deepEqual(server.seen.slice(heard), [], 'the server heard of a user without a connection')
    await connect(gateway, 'operator', 'omar@mail')
    assert.equal(await call(gateway), 'vera@mail')
    assert.equal(await call(gateway, 'operator'), 'omar@mail')
    assert.deepEqual((await events(gateway, 'connection_made')).map(({ user_id: user }) => user).toSorted(), [
      'operator',
      'viewer',
    ])
  })

  it('is seen and disconnected by an approver, on record, and by no other person', async () => {
    const other = 'console-key-of-another'
    const boss = 'console-key-of-acme'
    const gateway = await start({
      callers: [
        ...callers,
        callerConfig(other, { user: 'other', roles: ['operator'] }, 'console'),
        callerConfig(boss, { user: 'boss', tenant: 'acme', roles: ['approver'] }, 'console'),
      ],
    })
    await connect(gateway)
    for (const key of [other, boss]) {
      const asked = await gateway.api('/api/connections?user=viewer', { key })
      const ended = await gateway.api('/api/connections/mail?user=viewer', { key, method: 'DELETE' })
      for (const { status, body } of [asked, ended])
        assert.deepEqual([status, (body as ErrorBody).error.code], [403, 'connection_forbidden'])
    }
    assert.equal(await call(gateway), 'vera@mail')
    const seen = ((await gateway.api('/api/connections?user=viewer')).body as ConnectionsBody).connections[0]
    assert.equal(seen?.connected?.issuer, login.issuer)
    assert.equal((await gateway.api('/api/connections/mail?user=viewer', { method: 'DELETE' })).status, 200)
    assert.match(await call(gateway), /has not connected/)
    const [record] = await events(gateway, 'connection_ended')
    assert.deepEqual([record?.user_id, record?.actor, record?.reason], ['viewer', 'owner', 'revoked'])
  })

  it('sees what is connected, and disconnects it: the tokens are withdrawn and the instance ends', async () => {
    const gateway = await start()
    const from = login.tokens.length
    await connect(gateway)
    const row = ((await gateway.api('/api/connections', { key: PERSON })).body as ConnectionsBody).connections[0]
    assert.equal(row?.connected?.issuer, login.issuer)
    assert.deepEqual(row?.connected?.scopes?.toSorted(), ['tools'])
    const others = ((await gateway.api('/api/connections')).body as ConnectionsBody).connections
    assert.equal(others[0]?.connected, undefined)
    await gateway.api('/api/connections/mail', { key: PERSON, method: 'DELETE' })
    assert.match(await call(gateway), /mail__whoami is unavailable: the user has not connected mail/)
    assert.deepEqual(gateway.servers()[0]?.instances?.users, [])
    for (const token of login.tokens.slice(from)) assert.equal(await isActive(token), false)
    const [ended] = await events(gateway, 'connection_ended')
    assert.equal(ended?.reason, 'disconnected')
    assert.match(ended?.detail ?? '', /^mail at .*; scopes: /)
  })

  it('sees as which account, where the scopes ask for an ID token', async () => {
    const gateway = await start({}, { oauth: { scopes: ['openid', 'tools', 'offline_access'] } })
    await connect(gateway)
    const { connections } = (await gateway.api('/api/connections', { key: PERSON })).body as ConnectionsBody
    assert.equal(connections[0]?.connected?.account, 'vera@mail')
  })

  it('is found by a tool that waits, where the server lists for everybody', async () => {
    const open = await startAccountServer({ login, listsForAll: true })
    closing.push(open.close)
    const shared = httpServer('mail', open.url, { per: 'user', oauth: {} })
    const gateway = await start({ servers: [shared] })
    const { tools } = await gateway.tools('viewer')
    const tool = tools.find(({ id }) => id === 'mail:whoami')
    assert.equal(tool?.outcome, 'wait')
    assert.equal(tool.reasons[0]?.code, 'not_connected')
    assert.match(
      await call(gateway),
      /unavailable: the user has not connected mail to their account\. The user connects it at http/,
    )
    await connect(gateway)
    assert.match(await call(gateway, 'operator'), /has not connected/)
  })
})

async function isActive(token: string): Promise<boolean> {
  const answer = await fetch(`${login.issuer}/token/introspection`, {
    method: 'POST',
    headers: {
      authorization: `Basic ${Buffer.from(`${CHECKER.client_id}:${CHECKER.client_secret}`).toString('base64')}`,
    },
    body: new URLSearchParams({ token }),
  })
  return ((await answer.json()) as { readonly active: boolean }).active
}

describe('the answer of an authorization server', () => {
  /** Returns a browser that has begun, and the address that it is sent back to. */
  async function begun(gateway: TestGateway, who: 'viewer' | 'operator' = 'viewer') {
    const browser = new Browser(gateway.url)
    await browser.logIn('mail', KEYS[who])
    const back = await login.open(await browser.begin('mail'))
    return { browser, back, path: `${back.pathname}${back.search}` }
  }
  const isConnected = async (gateway: TestGateway, key = PERSON) =>
    ((await gateway.api('/api/connections', { key })).body as ConnectionsBody).connections[0]?.connected !== undefined

  it('counts once', async () => {
    const gateway = await start()
    const { browser, path } = await begun(gateway)
    assert.equal((await browser.get(path)).status, 303)
    assert.equal((await browser.get(path)).status, 403)
  })

  it('counts only in the browser that began', async () => {
    const gateway = await start()
    login.account = 'mallory@mail'
    const { path } = await begun(gateway, 'operator')
    const victim = new Browser(gateway.url)
    await victim.logIn('mail', KEYS.viewer)
    assert.equal((await victim.get(path)).status, 403)
    await victim.begin('mail')
    assert.equal((await victim.get(path)).status, 403)
    assert.equal(await isConnected(gateway), false)
  })

  it('counts only for the person who began, and only while they are logged in', async () => {
    const gateway = await start()
    const { browser, path } = await begun(gateway, 'operator')
    await browser.logIn('mail', KEYS.viewer)
    assert.equal((await browser.get(path)).status, 403)
    assert.equal(await isConnected(gateway), false)
    const nobody = new Browser(gateway.url)
    assert.equal((await nobody.get(path)).status, 401)
    assert.match((await nobody.get(path, { 'sec-fetch-site': 'cross-site' })).text, /http-equiv="refresh"/)
  })

  it('must name its issuer', async () => {
    for (const change of [
      (to: URL) => to.searchParams.set('iss', 'https://other.example'),
      (to: URL) => to.searchParams.delete('iss'),
    ]) {
      const gateway = await start()
      const { browser, back } = await begun(gateway)
      assert.equal(back.searchParams.get('iss'), login.issuer)
      change(back)
      assert.equal((await browser.get(`${back.pathname}${back.search}`)).status, 403)
      assert.equal(await isConnected(gateway), false)
    }
  })

  it('counts only where it was to arrive: not as that of another server', async () => {
    const gateway = await start({ servers: [mail(), { ...mail(), name: 'other' }] })
    const { browser, back, path } = await begun(gateway)
    const elsewhere = [path.replace('/mail/', '/other/'), `/connect/~callback${back.search}`]
    for (const other of elsewhere) assert.equal((await browser.get(other)).status, 403, other)
    assert.equal(await isConnected(gateway), false)
    assert.equal((await browser.get(path)).status, 303)
    const others = await browser.begin('other')
    assert.notEqual(others.searchParams.get('redirect_uri'), `${back.origin}${back.pathname}`)
  })

  it('cannot be begun from another site', async () => {
    const gateway = await start()
    const browser = new Browser(gateway.url)
    await browser.logIn('mail', KEYS.viewer)
    const form = { action: 'connect' }
    assert.equal((await browser.post('/connect/mail', form, { 'sec-fetch-site': 'cross-site' })).status, 403)
    assert.equal((await browser.post('/connect/mail', form, { origin: 'https://evil.example' })).status, 403)
  })

  it('is asked for with PKCE, the resource and a fresh state', async () => {
    const gateway = await start()
    const browser = new Browser(gateway.url)
    await browser.logIn('mail', KEYS.viewer)
    const [first, second] = [await browser.begin('mail'), await browser.begin('mail')]
    assert.equal(first.searchParams.get('resource'), server.url)
    assert.equal(first.searchParams.get('code_challenge_method'), 'S256')
    assert.equal(
      first.searchParams.get('redirect_uri')?.replace(/[\w-]{22}$/, ''),
      `${gateway.url}/connect/~callback/mail/`,
    )
    for (const name of ['state', 'code_challenge'])
      assert.notEqual(first.searchParams.get(name), second.searchParams.get(name))
  })
})

describe('the page of a connection', () => {
  it('opens with any key of a user that is not bound to apps, and that login opens nothing else', async () => {
    const gateway = await start()
    const browser = new Browser(gateway.url)
    assert.equal((await browser.get('/connect/mail')).status, 401)
    for (const key of ['wrong', 'demo-host', 'demo-bot', 'demo-desk'])
      assert.equal((await browser.post('/connect/mail', { key })).status, 401, key)
    await browser.logIn('mail', KEYS.viewer)
    assert.equal((await browser.get('/connect/mail')).status, 200)
    assert.equal((await browser.get('/connect/other')).status, 404)
    assert.equal((await browser.get('/api/session')).status, 401)
    assert.equal((await browser.get('/api/connections')).status, 401)
  })
})

describe('the token of a connection', () => {
  const current = () => server.seen.findLast((one) => one !== undefined) ?? ''

  it('is refreshed once for all calls whose token the server refuses', async () => {
    const gateway = await start()
    await connect(gateway)
    const refused = current()
    server.refuse(refused)
    const from = login.grants.length
    const answers = await Promise.all(Array.from({ length: 8 }, () => call(gateway)))
    assert.deepEqual(new Set(answers), new Set(['vera@mail']))
    assert.deepEqual(login.grants.slice(from), ['refresh_token'])
    assert.notEqual(current(), refused)
  })

  it('is refreshed once by two gateways that share the store, although the refresh token rotates', async () => {
    const folder = tempFolder()
    closing.push(folder.remove)
    const state = { store: 'sqlite', path: join(folder.path, 'state.db') } as const
    const publicUrl = 'http://127.0.0.1:1'
    const [one, two] = [await start({ state }), await start({ state, publicUrl })]
    await connect(one)
    await until(async () => (await call(two)) === 'vera@mail')
    for (let round = 0; round < 3; round++) {
      const from = login.grants.length
      server.refuse(current())
      const answers = await Promise.all([one, two, one, two].map((gateway) => call(gateway)))
      assert.deepEqual(new Set(answers), new Set(['vera@mail']))
      assert.deepEqual(login.grants.slice(from), ['refresh_token'])
    }
    assert.deepEqual(await events(one, 'connection_ended'), [])
  })

  it('ends with the grant: the tools wait again', async () => {
    const gateway = await start()
    await connect(gateway)
    await login.endGrants()
    await call(gateway)
    await until(async () => (await events(gateway, 'connection_ended')).length === 1)
    assert.equal((await events(gateway, 'connection_ended'))[0]?.reason, 'refused')
    assert.match(await call(gateway), /mail__whoami is unavailable: the user has not connected mail/)
  })

  it('survives a restart, and its text is nowhere', async () => {
    const folder = tempFolder()
    closing.push(folder.remove)
    const state = { store: 'sqlite', path: join(folder.path, 'state.db') } as const
    const audit = { store: 'jsonl', path: join(folder.path, 'audit.jsonl'), mode: 'required' } as const
    const from = login.tokens.length
    const first = await start({ state, audit })
    const browser = await connect(first)
    const leaked = JSON.stringify(await first.call('viewer', MODERN, 'mail__leak'))
    const shown = [(await browser.get('/connect/mail')).text, leaked]
    assert.match(leaked, /cannot use/)
    for (const path of ['/api/connections', '/api/audit', '/api/logs?server=mail', '/api/tools?as=viewer'])
      shown.push(
        JSON.stringify((await first.api(path, { key: path === '/api/connections' ? PERSON : KEYS.console })).body),
      )
    await closing.pop()?.()
    const second = await start({ state, audit })
    assert.equal(await call(second), 'vera@mail')
    const files = ['state.db', 'state.db-wal', 'audit.jsonl'].map((name) => readIfAny(join(folder.path, name)))
    const all = [...shown, ...files, JSON.stringify(first.log), JSON.stringify(second.log)].join('\n')
    const tokens = login.tokens.slice(from)
    assert.ok(tokens.length >= 2 && all.length > 10_000)
    for (const token of tokens) assert.ok(!all.includes(token), 'a token was written')
    await closing.pop()?.()
    const third = await start({ state, audit }, { oauth: { scopes: ['tools'] } })
    assert.match(await call(third), /has not connected/)
  })
})

function readIfAny(file: string): string {
  try {
    return readFileSync(file, 'latin1')
  } catch {
    return ''
  }
}

describe('a reload', () => {
  it('ends the connections that no longer fit what it says', async () => {
    let scopes: readonly string[] | undefined
    const read = () => ({ servers: [mail(scopes ? { oauth: { scopes } } : {})] })
    const gateway = await start({}, {}, read)
    await connect(gateway)
    await gateway.reload()
    assert.equal(await call(gateway), 'vera@mail')
    scopes = ['tools', 'more', 'offline_access']
    await gateway.reload()
    assert.match(await call(gateway), /has not connected/)
    await until(async () => (await events(gateway, 'connection_ended')).length === 1)
    assert.equal((await events(gateway, 'connection_ended'))[0]?.reason, 'config_changed')
    await connect(gateway)
  })
})
