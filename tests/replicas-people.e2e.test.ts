import assert from 'node:assert/strict'
import { createServer } from 'node:net'
import { after, afterEach, beforeEach, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ApprovalsBody, AuditBody, GroupsBody, SessionBody } from '@toolgate/gateway'
import { WebSocket } from 'ws'
import { BATCH_MS, Feed } from '../packages/console/src/feed.ts'
import { Live } from '../packages/console/src/live.ts'
import { type AuthorizationServer, startAuthorizationServer } from './support/authorization-server.ts'
import { withBinaries } from './support/binaries.ts'
import { FLEET_PROGRAMS, ownFleet } from './support/fleet.ts'
import { type TestGateway, until } from './support/gateway.ts'
import { KEYS } from './support/keys.ts'
import { openLive } from './support/live.ts'
import { type RecordingServer, startRecordingServer } from './support/recording-server.ts'
import { MODERN, textOf } from './support/rpc.ts'

/** People at three replicas behind HAProxy: each of their requests arrives at another one. */

const CLIENT = { client_id: 'console', client_secret: 'console-secret' }
const CONSOLE = { authorization: `Bearer ${KEYS.console}` }
const FORM = 'application/x-www-form-urlencoded'
const TOOLS = ['read', 'pay'].map((name) => ({ name, inputSchema: { type: 'object' } }))

withBinaries(FLEET_PROGRAMS, (paths) => {
  describe('people at replicas behind a load balancer without stickiness', () => {
    let witness: RecordingServer
    let issuer: AuthorizationServer
    const fleet = ownFleet(paths, async ({ url }) => {
      witness = await startRecordingServer(TOOLS, { era: 'modern' })
      const redirects = {
        redirect_uris: [`${url}/api/oidc/callback`],
        post_logout_redirect_uris: [`${url}/`],
        backchannel_logout_uri: `${url}/api/oidc/backchannel-logout`,
      }
      issuer = await startAuthorizationServer({
        clients: [{ ...CLIENT, ...redirects, grant_types: ['authorization_code'], response_types: ['code'] }],
        claims: { ada: { groups: ['admins'] } },
      })
      return `
servers: { work: { url: "${witness.url}", era: modern, per: shared } }
callers:
  - { key: ${KEYS.viewer}, user: viewer, roles: [viewer] }
  - { key: ${KEYS.operator}, user: operator }
  - { key: ${KEYS.console}, for: console, user: owner, roles: [approver] }
oidc:
  issuer: "${issuer.issuer}"
  clientId: ${CLIENT.client_id}
  clientSecret: ${CLIENT.client_secret}
  users: { ada: ada }
  roles: { admins: [approver] }
groups: { web: { tools: ["work:read"], visibility: conditional, availableWhen: [{ tcp: "127.0.0.1:\${file:port}" }] } }
policy: [{ allow: ["*"], ask: ["work:pay"] }]
`
    })
    after(() => Promise.all([witness?.close(), issuer?.close()]))
    let n = 0
    const pay = async (to?: { readonly url: string }) => {
      const answer = await fleet.ask('viewer', MODERN, 'tools/call', { name: 'work__pay', arguments: { n } }, to)
      return textOf(answer)
    }
    const pending = async () => {
      const { approvals } = (await fleet.http('/api/approvals?status=pending')).json() as ApprovalsBody
      return approvals
    }
    const cookieOf = ({ headers }: Awaited<ReturnType<typeof fleet.http>>, name = '') =>
      (headers['set-cookie'] ?? []).find((line) => line.startsWith(name))?.split(';')[0] ?? ''
    const userOf = async (cookie: string, to?: { readonly url: string }) => {
      const answer = await fleet.http('/api/session', { headers: { cookie } }, to)
      return answer.status === 200 ? (answer.json() as SessionBody).user : answer.status
    }

    beforeEach(() => {
      witness.forget()
      n++
    })
    afterEach(async () => {
      for (const { id } of await pending()) await fleet.http(`/api/approvals/${id}`, { body: { decision: 'reject' } })
    })

    it('approve in the console of one what another asked, and a third runs it, once', async () => {
      const [first, second, third] = fleet.gateways
      assert.match(await pay(first), /[Ww]aiting for approval/)
      const [asked] = await pending()
      const decided = await fleet.http(`/api/approvals/${asked?.id}`, { body: { decision: 'approve' } }, second)
      assert.equal(decided.status, 200)
      const again = await fleet.http(`/api/approvals/${asked?.id}`, { body: { decision: 'reject' } }, third)
      assert.equal(again.status, 409)
      const answers = await Promise.all([pay(third), ...Array.from({ length: 8 }, () => pay())])
      assert.equal(answers.filter((text) => text === 'pay ran').length, 1, answers.join('\n'))
      assert.equal(witness.calls('pay').length, 1)
    })

    it('see in one live feed what all record, ask for and decide, each once and in one order', async (t) => {
      const page = await openLive(fleet.url, CONSOLE)
      t.after(() => page.socket.terminate())
      const [first, second, third] = fleet.gateways
      for (const gateway of [first, second, third, undefined]) {
        const name = { name: 'work__unknown', arguments: {} }
        await Promise.all([1, 2, 3].map(() => fleet.ask('operator', MODERN, 'tools/call', name, gateway)))
      }
      await pay(second)
      const [asked] = await pending()
      await until(() => page.of('approval').length === 1)
      await fleet.http(`/api/approvals/${asked?.id}`, { body: { decision: 'reject' } }, third)
      await until(() => page.of('approval').length === 2)
      assert.deepEqual(
        page.of('approval').map(({ approval: { id, status } }) => [id, status]),
        [
          [asked?.id, 'pending'],
          [asked?.id, 'rejected'],
        ],
      )
      await until(() => page.of('audit').some(({ record }) => record.event === 'approval_decided'))
      const seen = page.of('audit').map(({ record }) => record)
      const from = (seen[0]?.seq ?? 0) - 1
      const { records } = (await fleet.http(`/api/audit?after=${from}`)).json() as AuditBody
      assert.deepEqual(seen, records.toReversed().slice(0, seen.length))
      assert.equal(seen.filter(({ tool }) => tool === 'work__unknown').length, 12)
      assert.equal(new Set(seen.map(({ replica }) => replica)).size, 3)
    })

    it('have no hole and no record twice in a feed that goes on at another, while one is replaced', async () => {
      const feed = new Feed({
        fetchPage: async ({ after: newest, limit }) => {
          const query = new URLSearchParams({ limit: `${limit}`, ...(newest !== undefined && { after: `${newest}` }) })
          return ((await fleet.http(`/api/audit?${query.toString()}`)).json() as AuditBody).records
        },
        matches: () => true,
        later: (work) => setTimeout(work, BATCH_MS),
      })
      const live = new Live({
        open(onMessage, onEnd) {
          const socket = new WebSocket(`${fleet.url.replace('http', 'ws')}/api/live`, { headers: CONSOLE })
          socket.on('message', (data: Buffer) => onMessage(data.toString()))
          socket.on('error', () => {})
          socket.on('close', onEnd)
          return () => socket.terminate()
        },
      })
      live.subscribe(() => void feed.catchUp())
      live.onMessage((message) => {
        if (message.type === 'audit') feed.add(message.record)
      })
      live.start()
      await until(() => live.current === 'open')
      let states = 0
      live.subscribe(() => states++)
      const work = { isDone: false }
      const calling = (async () => {
        while (!work.isDone)
          await fleet.ask('operator', MODERN, 'tools/call', { name: 'work__unknown', arguments: {} }).catch(() => {})
      })()
      for (const at of fleet.gateways.keys()) await fleet.replace(at)
      work.isDone = true
      await calling
      assert.ok(states > 0, 'the page has lost its socket')
      const { records } = (await fleet.http('/api/audit?limit=1')).json() as AuditBody
      await until(() => (feed.current.records[0]?.seq ?? 0) >= (records[0]?.seq ?? 0))
      live.close()
      const held = feed.current.records
      const kept: number[] = []
      for (let before: number | undefined; ;) {
        const query = before === undefined ? '' : `&before=${before}`
        const part = ((await fleet.http(`/api/audit?limit=1000${query}`)).json() as AuditBody).records
        kept.push(...part.map(({ seq }) => seq))
        if (part.length < 1000) break
        before = part.at(-1)?.seq
      }
      const [newest = 0, oldest = 0] = [held[0]?.seq, held.at(-1)?.seq]
      assert.deepEqual(
        held.map(({ seq }) => seq),
        kept.filter((seq) => seq <= newest && seq >= oldest),
      )
      assert.ok(held.length > 50, String(held.length))
    })

    it('see where a group can be used, whichever answers', async (t) => {
      const page = await openLive(fleet.url, CONSOLE)
      t.after(() => page.socket.terminate())
      const server = createServer((socket) => socket.destroy())
      server.listen(fleet.ownPorts[0], '127.0.0.1')
      const shown = async (at: number) => {
        const { groups } = (await fleet.http('/api/groups', {}, fleet.gateways[at])).json() as GroupsBody
        return groups[0]
      }
      try {
        await until(async () => (await shown(0))?.badge === 'available' && (await shown(0))?.elsewhere?.length === 2)
        await until(async () => (await shown(1))?.elsewhere !== undefined)
        const [here, there] = [await shown(0), await shown(1)]
        assert.deepEqual(
          here?.elsewhere?.map(({ badge }) => badge),
          ['unavailable', 'unavailable'],
        )
        assert.match(here?.elsewhere?.[0]?.reason ?? '', /nothing listens/)
        assert.deepEqual(there?.elsewhere, [{ replica: here?.replica, badge: 'available' }])
        const seen = () => page.of('groups').at(-1)?.groups[0]
        await until(() => seen()?.replica === here?.replica || seen()?.elsewhere?.[0]?.replica === here?.replica)
      } finally {
        server.close()
      }
      await until(async () => (await shown(1))?.elsewhere === undefined)
    })

    it('decide on the page of an approval, each step of which is served by another', async () => {
      await pay()
      const [asked] = await pending()
      const path = `/approvals/${asked?.id}`
      const post = (form: Readonly<Record<string, string>>, cookie = '') =>
        fleet.http(path, {
          headers: { 'content-type': FORM, origin: fleet.url, cookie },
          body: new URLSearchParams(form).toString(),
        })
      assert.equal((await fleet.http(path, { headers: { cookie: '' } })).status, 401)
      const login = await post({ key: KEYS.console })
      assert.equal(login.status, 303)
      const cookie = cookieOf(login)
      for (const gateway of fleet.gateways) {
        const page = await fleet.http(path, { headers: { cookie } })
        assert.match(page.text, /Approve this call\?/, gateway.url)
      }
      assert.equal((await post({ decision: 'approve' }, cookie)).status, 303)
      assert.equal(await pay(), 'pay ran')
      assert.match(await pay(), /[Ww]aiting for approval/)
    })

    it('wait after wrong keys, however many replicas they tried these at', async () => {
      const address = '192.0.2.77'
      const guess = async (to: { readonly url: string }) => {
        const startedMs = performance.now()
        const headers = { authorization: 'Bearer a-wrong-key', 'x-forwarded-for': address }
        assert.equal((await fleet.http('/api/session', { headers }, to)).status, 401)
        return performance.now() - startedMs
      }
      const [first, ...others] = fleet.gateways as [TestGateway, ...TestGateway[]]
      // Five are free at one gateway, so that only what the others have counted makes the first one wait.
      for (let i = 0; i < 5; i++) await Promise.all(others.map(guess))
      let slowestMs = 0
      for (let i = 0; i < 5 && slowestMs < 1000; i++) {
        await sleep(600)
        slowestMs = Math.max(slowestMs, await guess(first))
      }
      assert.ok(slowestMs >= 1000, `${slowestMs} ms`)
    })

    it('log in with a key, and are known at all until they log out at one', async () => {
      const login = await fleet.http('/api/login', {
        headers: { origin: fleet.url, cookie: '' },
        body: { key: KEYS.console },
      })
      assert.equal(login.status, 200)
      const cookie = cookieOf(login)
      for (const gateway of fleet.gateways) assert.equal(await userOf(cookie, gateway), 'owner')
      await fleet.http('/api/logout', { headers: { origin: fleet.url, cookie }, body: {} })
      for (const gateway of fleet.gateways) assert.equal(await userOf(cookie, gateway), 401)
    })

    it('log in at the authorization server: it begins at one, and ends at another', async () => {
      issuer.account = 'ada'
      for (const [at, from] of fleet.gateways.entries()) {
        const to = fleet.gateways[(at + 1) % fleet.gateways.length]
        const host = { host: new URL(fleet.url).host }
        const begun = await fleet.http('/api/oidc/login', { headers: { ...host, cookie: '' } }, from)
        assert.equal(begun.status, 303, begun.text)
        const { pathname, search } = await issuer.open(begun.headers.location ?? '')
        const came = { headers: { ...host, cookie: cookieOf(begun) } }
        const ended = await fleet.http(pathname + search, came, to)
        assert.deepEqual([ended.status, ended.headers.location], [303, '/'], ended.text)
        const cookie = cookieOf(ended, 'toolgate_session=')
        for (const gateway of fleet.gateways) assert.equal(await userOf(cookie, gateway), 'ada')
        // What has begun it ends one login only, wherever that is tried.
        assert.equal((await fleet.http(pathname + search, came, from)).status, 403)
        // The authorization server tells one of them that the person was logged out.
        await issuer.logOut(CLIENT.client_id, 'ada')
        for (const gateway of fleet.gateways) assert.equal(await userOf(cookie, gateway), 401)
      }
    })
  })
})
