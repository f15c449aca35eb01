import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { beforeEach, describe, it } from 'node:test'
import { type Approval, type Caller, createGate, defineTool, ToolgateError } from '@toolgate/core'
import type { AuditCountQuery, AuditQuery, AuditRecord } from '@toolgate/core/audit'
import { createApprovals } from '@toolgate/core/call'
import type { ApprovalVerdict } from '@toolgate/core/stores'
import { createOriginRules } from '../../auth/origin.ts'
import type { CallerConfig } from '../../config/config.ts'
import type { Room } from '../../heart/room.ts'
import { apiOf, gateWith, type HeartParts, heartOf } from '../../testing/heart.ts'
import type { HttpApi } from './api.ts'
import type {
  ApprovalsBody,
  AuditBody,
  AuditCountsBody,
  AuditEvidenceBody,
  CallersBody,
  ErrorBody,
  ServersBody,
  ToolsBody,
  WaitingApprovalsBody,
  WarningsBody,
  WhyBody,
} from '../../model/rows.ts'

const OWN = 'http://127.0.0.1:8787'
const CONSOLE = { authorization: 'Bearer demo-console' }
const TWELVE_HOURS_MS = 12 * 60 * 60 * 1000

describe('createApi', () => {
  let world: World
  let api: Pick<HttpApi, 'fetch'>
  beforeEach(() => {
    world = makeWorld()
    api = world.open()
  })

  describe('the door', () => {
    const routes = [
      '/api/tools?as=viewer',
      '/api/callers',
      '/api/why?tool=files:read&as=viewer',
      '/api/audit',
      '/api/audit/counts?since=0&until=1&bucket=1',
      '/api/audit/evidence',
      '/api/approvals',
      '/api/approvals/waiting',
      '/api/session',
      '/api/warnings',
    ]

    it('answers 401 with a challenge to a missing, wrong or malformed key', async () => {
      for (const path of routes) {
        const none = await get(path, {})
        assert.equal(none.status, 401, path)
        assert.equal(none.headers.get('www-authenticate'), 'Bearer realm="toolgate"')
        for (const key of ['Bearer wrong', 'Bearer a b', 'Bearer']) {
          const wrong = await get(path, { authorization: key })
          assert.equal(wrong.status, 401)
          assert.equal(wrong.headers.get('www-authenticate'), 'Bearer realm="toolgate", error="invalid_token"')
        }
      }
    })

    it("answers 403 to an agent's key everywhere", async () => {
      for (const path of routes) {
        const answer = await get(path, { authorization: 'Bearer demo-viewer' })
        assert.equal(answer.status, 403, path)
        assert.equal(await codeOf(answer), 'key_not_for_console')
      }
      const approve = await post(
        '/api/approvals/a1',
        { decision: 'approve' },
        { authorization: 'Bearer demo-approver-agent' },
      )
      assert.equal(approve.status, 403)
      assert.equal(world.decided.length, 0)
    })

    it('answers 403 to a foreign Host and to a foreign Origin, each alone', async () => {
      const host = await get('/api/session', { ...CONSOLE, host: 'evil.example:8787' })
      assert.deepEqual([host.status, await codeOf(host)], [403, 'host_forbidden'])
      const origin = await get('/api/session', { ...CONSOLE, origin: 'http://evil.example' })
      assert.deepEqual([origin.status, await codeOf(origin)], [403, 'origin_forbidden'])
    })

    it('is not cached and not sniffed, also when it refuses', async () => {
      for (const answer of [
        await get('/api/session', CONSOLE),
        await get('/api/session', {}),
        await get('/api/nothing', {}),
      ]) {
        assert.equal(answer.headers.get('cache-control'), 'no-store')
        assert.equal(answer.headers.get('x-content-type-options'), 'nosniff')
        assert.match(answer.headers.get('content-type') ?? '', /^application\/json/)
      }
    })

    it('names unknown paths and methods', async () => {
      const path = await get('/api/nothing', CONSOLE)
      assert.deepEqual([path.status, await codeOf(path)], [404, 'route_unknown'])
      const method = await post('/api/tools', {}, CONSOLE)
      assert.deepEqual(
        [method.status, await codeOf(method), method.headers.get('allow')],
        [405, 'method_not_allowed', 'GET, HEAD'],
      )
      const reading = await get('/api/logout', CONSOLE)
      assert.deepEqual([reading.status, reading.headers.get('allow')], [405, 'POST'])
    })

    it('says that a body has no fields', async () => {
      const answer = await post('/api/audit/rotate', { file: 'audit.jsonl' }, CONSOLE)
      assert.deepEqual(await errorOf(answer), {
        code: 'body_invalid',
        message: 'The field "file" is unknown; there are none.',
      })
    })

    it('has no login with OpenID Connect without a configuration of it', async () => {
      assert.deepEqual(await (await get('/api/login', {})).json(), {})
      assert.equal((await get('/api/oidc/callback', {})).status, 404)
    })

    it('shows details of its own faults only in the log', async () => {
      world.failure = new Error('the password is swordfish')
      const answer = await get('/api/audit', CONSOLE)
      assert.equal(answer.status, 500)
      assert.doesNotMatch(JSON.stringify(await answer.json()), /swordfish/)
      assert.equal(world.faults[0], world.failure)
    })
  })

  describe('login', () => {
    it('opens a session whose cookie scripts and other sites cannot use, and that logout ends', async () => {
      const answer = await post('/api/login', { key: 'demo-console' }, { origin: OWN })
      assert.equal(answer.status, 200)
      assert.deepEqual(await answer.json(), { user: 'owner', roles: ['approver'], manyTenants: true })
      const set = answer.headers.get('set-cookie') ?? ''
      assert.match(set, /^toolgate_session_8787=[\w-]{43}; Path=\/; Max-Age=43200; HttpOnly; SameSite=Strict$/)
      const cookie = set.slice(0, set.indexOf(';'))
      assert.equal((await get('/api/session', { cookie: `other=1; ${cookie}` })).status, 200)
      const out = await post('/api/logout', {}, { cookie, origin: OWN })
      assert.match(out.headers.get('set-cookie') ?? '', /^toolgate_session_8787=; Path=\/; Max-Age=0; /)
      assert.equal((await get('/api/session', { cookie })).status, 401)
    })

    it('marks the cookie Secure if the page came over TLS', async () => {
      const answer = await post(
        '/api/login',
        { key: 'demo-console' },
        { host: 'tools.example.com', origin: 'https://tools.example.com' },
      )
      assert.match(answer.headers.get('set-cookie') ?? '', /; Secure$/)
    })

    it("refuses a wrong key and an agent's key, without a cookie", async () => {
      for (const [key, status] of [
        ['wrong', 401],
        ['demo-viewer', 403],
        ['', 401],
      ] as const) {
        const answer = await post('/api/login', { key }, { origin: OWN })
        assert.equal(answer.status, status, key)
        assert.equal(answer.headers.get('set-cookie'), null)
      }
    })

    it('ends a session after 12 hours', async () => {
      const cookie = await logIn()
      world.nowMs += TWELVE_HOURS_MS - 1
      assert.equal((await get('/api/session', { cookie })).status, 200)
      world.nowMs += 1
      assert.equal((await get('/api/session', { cookie })).status, 401)
    })

    it('refuses an unknown cookie', async () => {
      await logIn()
      for (const cookie of [
        'toolgate_session=',
        'toolgate_session=__proto__',
        'toolgate_session',
        `x=toolgate_session=a`,
      ])
        assert.equal((await get('/api/session', { cookie })).status, 401, cookie)
    })
  })

  describe('/api/tools', () => {
    it('lists every tool with the decision for that caller, hidden ones with the reason', async () => {
      const body = await json<ToolsBody>('/api/tools?as=viewer')
      assert.equal(body.as, 'viewer')
      assert.deepEqual([body.policyRevision, body.catalogRevision], [3, 7])
      assert.deepEqual(
        body.tools.map((row) => [row.id, row.wireName, row.outcome, row.visible]),
        [
          ['files:read', 'files__read', 'allow', true],
          ['files:write', 'files__write', 'deny', false],
        ],
      )
      assert.equal(body.tools[1]?.reasons[0]?.code, 'policy_denied')
      assert.equal(body.servers[0]?.name, 'files')
      assert.equal(body.groups[0]?.name, 'web')
    })

    it('answers 404 for a user that is not configured, naming those that are', async () => {
      for (const name of ['nobody', 'constructor', '__proto__']) {
        const answer = await get(`/api/tools?as=${name}`, CONSOLE)
        assert.equal(answer.status, 404)
        const error = await errorOf(answer)
        assert.equal(error.code, 'caller_unknown')
        assert.equal(error.message, `No caller is named "${name}"; known are viewer, robot, vera, owner, vera#2.`)
      }
    })
  })

  describe('/api/callers', () => {
    it('names each caller once, agents first, with no trace of a key', async () => {
      const body = await json<CallersBody>('/api/callers')
      assert.deepEqual(
        body.callers.map((row) => [row.user, row.for, row.visible]),
        [
          ['viewer', 'mcp', 1],
          ['robot', 'mcp', 2],
          ['vera', 'mcp', 1],
          ['owner', 'console', 2],
          ['vera#2', 'console', 1],
        ],
      )
      assert.doesNotMatch(JSON.stringify(body), /key|demo-/)
    })

    it('finds callers by name and by text, and says how many there are', async () => {
      const find = async (query: string) => {
        const { callers, total } = await json<CallersBody>(`/api/callers?${query}`)
        return [callers.map(({ user }) => user), total]
      }
      assert.deepEqual(await find('as=vera%232'), [['vera#2'], 1])
      assert.deepEqual(await find('as=nobody'), [[], 0])
      assert.deepEqual(await find('text=VERA'), [['vera', 'vera#2'], 2])
      assert.deepEqual(await find('limit=1'), [['viewer'], 5])
    })
  })

  describe('/api/why', () => {
    it('returns the decision about one tool', async () => {
      const body = await json<WhyBody>('/api/why?tool=files:write&as=viewer')
      assert.deepEqual([body.tool, body.as, body.outcome, body.visible], ['files:write', 'viewer', 'deny', false])
      assert.match(body.reasons[0]?.text ?? '', /^policy "baseline" denies files:write, unless /)
      assert.equal(body.wouldAllow?.[0]?.[0]?.text, '`approver` in `roles`')
    })

    it('answers 404 for an unknown tool, and suggests an id', async () => {
      const wire = await get('/api/why?tool=files__write&as=viewer', CONSOLE)
      assert.equal(wire.status, 404)
      assert.match((await errorOf(wire)).message, /No tool has the id "files__write"\. Did you mean "files:write"\?/)
      const misspelt = await get('/api/why?tool=files:writ&as=viewer', CONSOLE)
      assert.match((await errorOf(misspelt)).message, /No tool has the id "files:writ"\. Did you mean "files:write"\?/)
      const caller = await get('/api/why?tool=files:read&as=viewr', CONSOLE)
      assert.match((await errorOf(caller)).message, /No caller is named "viewr"; .* Did you mean "viewer"\?/)
      assert.equal((await get('/api/why?tool=toString&as=viewer', CONSOLE)).status, 404)
    })
  })

  describe('/api/audit', () => {
    it('passes its parameters on', async () => {
      await json<AuditBody>('/api/audit?limit=20&tool=files:read&user=viewer&event=tool_result&before=9&after=2')
      assert.deepEqual(world.queries[0], {
        limit: 20,
        tool: 'files:read',
        user: 'viewer',
        event: 'tool_result',
        beforeSeq: 9,
        afterSeq: 2,
      })
      await json<AuditBody>('/api/audit?session=s1&outcome=done&call=c1&since=2026-11-21T09:00:00Z&until=1795000000000')
      assert.deepEqual(world.queries[1], {
        session: 's1',
        outcome: 'done',
        call: 'c1',
        since: Date.UTC(2026, 10, 21, 9),
        until: 1_795_000_000_000,
      })
      const body = await json<AuditBody>('/api/audit')
      assert.deepEqual(world.queries[2], {})
      assert.equal(body.records[0]?.event, 'tool_call')
    })
  })

  describe('/api/audit/counts', () => {
    it('counts how attempts ended, in buckets, and passes its filters on', async () => {
      const counts = await json<AuditCountsBody>(
        '/api/audit/counts?since=1970-01-01T00:00:01Z&until=3000&bucket=1000&tool=files:read&user=viewer&session=s1&event=tool_result&outcome=done&call=c1',
      )
      assert.deepEqual(counts, { since: 1000, bucketMs: 1000, buckets: [], newestSeq: 9 })
      assert.deepEqual(world.counted, [
        {
          since: 1000,
          until: 3000,
          bucketMs: 1000,
          tool: 'files:read',
          user: 'viewer',
          session: 's1',
          event: 'tool_result',
          outcome: 'done',
          call: 'c1',
        },
      ])
    })

    it('counts only the records of that tenant for a person of a tenant', async () => {
      const path = '/api/audit/counts?since=0&until=500&bucket=1'
      await json<AuditCountsBody>(path, { authorization: 'Bearer vera-console' })
      assert.deepEqual(world.counted, [{ since: 0, until: 500, bucketMs: 1, tenant: 'acme' }])
    })
  })

  describe('/api/audit/evidence', () => {
    it('returns the evidence of the audit and its problems, without paths for a person of a tenant', async () => {
      assert.deepEqual(await json<AuditEvidenceBody>('/api/audit/evidence'), EVIDENCE)
      const tenants = await json<AuditEvidenceBody>('/api/audit/evidence', { authorization: 'Bearer vera-console' })
      assert.deepEqual([tenants.store, tenants.checkpoints], ['sqlite', { signedSeq: 41 }])
      assert.deepEqual(
        tenants.problems.map(({ code }) => code),
        ['checkpoints_missing'],
      )
      assert.doesNotMatch(JSON.stringify(tenants), /srv/)
      assert.equal((await get('/api/audit/evidence?x=1', CONSOLE)).status, 400)
      assert.equal((await get('/api/audit/evidence', {})).status, 401)
    })
  })

  describe('/api/audit/export', () => {
    it('returns all matches as JSON lines, oldest first', async () => {
      const answer = await get('/api/audit/export?tool=files:read&after=2&since=0', CONSOLE)
      assert.equal(answer.headers.get('content-type'), 'application/x-ndjson; charset=utf-8')
      assert.equal(answer.headers.get('cache-control'), 'no-store')
      const lines = (await answer.text()).trimEnd().split('\n')
      assert.deepEqual(
        lines.map((line) => (JSON.parse(line) as AuditRecord).seq),
        Array.from({ length: 1500 }, (_, i) => i + 1),
      )
      assert.deepEqual(world.queries[0], { tool: 'files:read', afterSeq: 2, since: 0 })
    })

    it('refuses a parameter before it begins', async () => {
      assert.equal((await get('/api/audit/export?limit=1', CONSOLE)).status, 400)
    })
  })

  describe('query parameters', () => {
    const bad: readonly (readonly [string, RegExp])[] = [
      ['/api/tools', /"as" is needed/],
      ['/api/tools?as=', /"as" must not be empty/],
      ['/api/tools?as=viewer&as=admin', /"as" is given twice/],
      ['/api/tools?as=viewer&page=2', /"page" is unknown; known are as, caller/],
      ['/api/tools?as=viewer&__proto__=2', /"__proto__" is unknown/],
      [`/api/tools?as=${'x'.repeat(257)}`, /"as" has more than 256 characters/],
      ['/api/callers?x=1', /"x" is unknown; known are as, text, own, limit/],
      ['/api/why?as=viewer', /"tool" is needed/],
      ['/api/audit?limit=0', /"limit" must be a whole number from 1 to 1000/],
      ['/api/audit?limit=1001', /"limit"/],
      ['/api/audit?limit=1e2', /"limit"/],
      ['/api/audit?limit=-1', /"limit"/],
      ['/api/audit?before=1.5', /"before"/],
      ['/api/audit?after=9007199254740993', /"after"/],
      ['/api/audit?event=tool_cal', /"event" must be one of tool_call, /],
      ['/api/audit?outcome=tool_call', /"outcome" must be one of done, /],
      ['/api/audit?since=yesterday', /"since" must be a time such as 2026-/],
      ['/api/audit?until=2026-13-45T00:00:00Z', /"until" must be a time/],
      ['/api/audit/counts?until=2&bucket=1', /"since" is needed/],
      ['/api/audit/counts?since=1&bucket=1', /"until" is needed/],
      ['/api/audit/counts?since=1&until=2', /"bucket" is needed/],
      ['/api/audit/counts?since=1&until=2&bucket=0', /"bucket" must be a whole number from 1/],
      ['/api/audit/counts?since=2&until=2&bucket=1', /"until" must be later than "since"/],
      ['/api/audit/counts?since=0&until=1001&bucket=2', /"bucket" must be at least 3: at most 500 buckets/],
      ['/api/audit/counts?since=1&until=2&bucket=1&tenant=x', /"tenant" is unknown/],
      ['/api/audit/counts?since=1&until=2&bucket=1&before=9', /"before" is unknown/],
      ['/api/audit?Limit=1', /"Limit" is unknown/],
      ['/api/approvals?status=open', /"status" must be one of pending, /],
      ['/api/session?x=1', /"x" is unknown/],
    ]
    for (const [path, message] of bad)
      it(`are strict: ${path.slice(0, 60)}`, async () => {
        const answer = await get(path, CONSOLE)
        assert.equal(answer.status, 400)
        const error = await errorOf(answer)
        assert.equal(error.code, 'query_invalid')
        assert.match(error.message, message)
      })
  })

  it('shows a person of a tenant nothing of another', async () => {
    const vera = { authorization: 'Bearer vera-console' }
    const { callers } = await json<CallersBody>('/api/callers', vera)
    assert.deepEqual([...new Set(callers.map(({ user }) => user))], ['vera', 'vera#2'])
    const { approvals } = await json<ApprovalsBody>('/api/approvals', vera)
    assert.deepEqual(
      approvals.map(({ id }) => id),
      ['a2'],
    )
    const waiting = await json<WaitingApprovalsBody>('/api/approvals/waiting', vera)
    assert.deepEqual(
      waiting.approvals.map(({ id }) => id),
      ['a2'],
    )
    assert.equal((await get('/api/tools?as=viewer', vera)).status, 404)
    assert.equal((await get('/api/tools?as=vera%233', vera)).status, 404)
    const other = encodeURIComponent(JSON.stringify({ user: 'x', tenant: 'other' }))
    assert.equal((await get(`/api/why?tool=files:read&caller=${other}`, vera)).status, 400)
    assert.equal((await get('/api/tools?as=vera', vera)).status, 200)
    assert.deepEqual((await json<AuditBody>('/api/audit', vera)).records, [])
    assert.deepEqual((await json<WarningsBody>('/api/warnings', vera)).warnings, [])
    assert.equal((await json<WarningsBody>('/api/warnings')).warnings.length, 1)
    const { servers } = await json<ServersBody>('/api/servers', vera)
    assert.deepEqual(servers[0]?.instances, { ...NONE, running: 1 })
    const exported = await (await get('/api/audit/export', vera)).text()
    assert.deepEqual([exported.match(/"other"/), exported.split('\n').length], [null, 751])
  })

  describe('/api/approvals', () => {
    it('lists them, all or of one status', async () => {
      assert.equal((await json<ApprovalsBody>('/api/approvals')).approvals.length, 3)
      await json<ApprovalsBody>('/api/approvals?status=pending&limit=5')
      assert.deepEqual(world.listed, [{ limit: 100 }, { limit: 5, status: 'pending' }])
    })

    it('lists those that wait as they are in the whole list, without their inputs, and not again while they stay', async () => {
      const { approvals } = await json<ApprovalsBody>('/api/approvals?status=pending')
      const answer = await get('/api/approvals/waiting', CONSOLE)
      const waiting = (await answer.json()) as WaitingApprovalsBody
      const expected = approvals.map(({ id, tool, user, tenant, mayDecide }) => {
        return { id, tool, ...(user && { user }), ...(tenant && { tenant }), mayDecide }
      })
      assert.deepEqual(waiting.approvals, expected)
      assert.ok(expected.length > 0)
      assert.deepEqual(world.listed.at(-1), { status: 'pending', limit: 1000 })
      const tag = { ...CONSOLE, 'if-none-match': answer.headers.get('etag') ?? '' }
      assert.equal((await get('/api/approvals/waiting', tag)).status, 304)
      assert.equal((await get('/api/approvals/waiting?status=pending', CONSOLE)).status, 400)
    })

    it('lists those of one user or tool, page by page, and to a person of a tenant its own', async () => {
      await json<ApprovalsBody>('/api/approvals?user=vera&tool=files:write&before=a3')
      await json<ApprovalsBody>('/api/approvals?limit=1', { authorization: 'Bearer vera-console' })
      assert.deepEqual(world.listed, [
        { limit: 100, user: 'vera', tool: 'files:write', before: 'a3' },
        { limit: 1, tenant: 'acme' },
      ])
    })

    it('returns for each whether this person may decide it, and who else may', async () => {
      const rows = async (headers: Record<string, string>) =>
        (await json<ApprovalsBody>('/api/approvals', headers)).approvals.map(({ id, mayDecide, deciders }) => [
          id,
          mayDecide,
          deciders,
        ])
      assert.deepEqual(await rows(CONSOLE), [
        ['a1', true, ['owner']],
        ['a2', false, ['vera']],
        ['a3', false, []],
      ])
      // The users of another tenant are none of hers to know, and an agent's key decides nothing.
      assert.deepEqual(await rows({ authorization: 'Bearer vera-console' }), [['a2', true, ['vera']]])
    })

    it('takes the verdict of an approver, by key', async () => {
      const answer = await post('/api/approvals/a1', { decision: 'reject', reason: 'not today' }, CONSOLE)
      assert.equal(answer.status, 200)
      assert.equal(((await answer.json()) as Approval).status, 'rejected')
      assert.deepEqual(world.decided, [
        ['a1', { decision: 'reject', by: 'owner', reason: 'not today', atMs: 1000, loginAt: 1000 }],
      ])
    })

    it('takes it by cookie from a page of ours, and from no other and from nowhere', async () => {
      const cookie = await logIn()
      const verdict = { decision: 'approve' }
      for (const origin of [{ origin: 'http://evil.example' }, { origin: 'null' }, {}]) {
        const answer = await post('/api/approvals/a1', verdict, { cookie, ...origin })
        assert.deepEqual([answer.status, await codeOf(answer)], [403, 'origin_forbidden'])
      }
      assert.equal(world.decided.length, 0)
      assert.equal((await post('/api/approvals/a1', verdict, { cookie, origin: OWN })).status, 200)
    })

    it('takes it from the requester with their own console key', async () => {
      const vera = { authorization: 'Bearer vera-console' }
      // Approvals of another tenant, or of none, do not exist for them.
      for (const id of ['a1', 'a3']) {
        const elsewhere = await post(`/api/approvals/${id}`, { decision: 'approve' }, vera)
        assert.deepEqual([elsewhere.status, await codeOf(elsewhere)], [404, 'approval_unknown'])
      }
      assert.equal(world.decided.length, 0)
      assert.equal((await post('/api/approvals/a2', { decision: 'approve' }, vera)).status, 200)
    })

    it('takes the revocation of an approval that was given', async () => {
      const answer = await post('/api/approvals/a1', { decision: 'revoke', reason: 'wrong account' }, CONSOLE)
      assert.deepEqual([answer.status, ((await answer.json()) as Approval).status], [200, 'revoked'])
      assert.deepEqual(world.decided, [
        ['a1', { decision: 'revoke', by: 'owner', reason: 'wrong account', atMs: 1000, loginAt: 1000 }],
      ])
    })

    it('answers 404 for one that is not there and 409 for one that was decided', async () => {
      const unknown = await post('/api/approvals/none', { decision: 'approve' }, CONSOLE)
      assert.deepEqual([unknown.status, await codeOf(unknown)], [404, 'approval_unknown'])
      await post('/api/approvals/a1', { decision: 'approve' }, CONSOLE)
      const again = await post('/api/approvals/a1', { decision: 'reject' }, CONSOLE)
      assert.deepEqual([again.status, await codeOf(again)], [409, 'approval_decided'])
    })

    it('refuses a body that is not exactly a verdict', async () => {
      const bad: readonly (readonly [unknown, RegExp])[] = [
        [{}, /"decision" must be "approve", "reject" or "revoke"/],
        [{ decision: 'yes' }, /"decision"/],
        [{ decision: 'approve', force: true }, /"force" is unknown; known are decision, reason/],
        [{ decision: 'approve', reason: 1 }, /"reason" must be a string/],
        [{ decision: 'approve', reason: 'x'.repeat(501) }, /"reason"/],
        [[], /must be a JSON object/],
        [null, /must be a JSON object/],
      ]
      for (const [body, message] of bad) {
        const answer = await post('/api/approvals/a1', body, CONSOLE)
        assert.equal(answer.status, 400)
        assert.match((await errorOf(answer)).message, message)
      }
      assert.equal(world.decided.length, 0)
    })
  })

  describe('a body', () => {
    const cap = 64 * 1024

    it('has at most 64 KiB, by its header and by the received bytes', async () => {
      const atCap = JSON.stringify({ key: 'x'.repeat(cap - '{"key":""}'.length) })
      assert.equal((await send(atCap)).status, 401)
      assert.equal((await send(`${atCap} `)).status, 413)
      assert.equal((await send('{}', { 'content-length': String(cap + 1) })).status, 413)
    })

    it('is JSON in UTF-8, with that content type', async () => {
      for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'application/jsonp'])
        assert.equal((await send('{}', { 'content-type': type })).status, 415)
      assert.equal((await send('{"key":', {})).status, 400)
      assert.equal((await send(new Uint8Array([0x22, 0xff, 0x22]), {})).status, 400)
      assert.equal((await send('', {})).status, 400)
      assert.equal((await send('['.repeat(30_000), {})).status, 400)
    })

    it('that breaks off is no fault of the gateway', async () => {
      const broken = new ReadableStream({ pull: (controller) => controller.error(new Error('aborted')) })
      assert.equal((await send(broken)).status, 400)
      assert.deepEqual(world.faults, [])
    })

    function send(
      body: string | Uint8Array<ArrayBuffer> | ReadableStream,
      headers: Record<string, string> = {},
    ): Promise<Response> {
      return api.fetch(
        new Request(`${OWN}/api/login`, {
          method: 'POST',
          body,
          duplex: 'half',
          headers: { host: '127.0.0.1:8787', 'content-type': 'application/json', ...headers },
        }),
      )
    }
  })

  function get(path: string, headers: Record<string, string>): Promise<Response> {
    return api.fetch(new Request(`${OWN}${path}`, { headers: { host: '127.0.0.1:8787', ...headers } }))
  }

  function post(path: string, body: unknown, headers: Record<string, string>): Promise<Response> {
    const all = { host: '127.0.0.1:8787', 'content-type': 'application/json', ...headers }
    return api.fetch(new Request(`${OWN}${path}`, { method: 'POST', body: JSON.stringify(body), headers: all }))
  }

  async function json<Body>(path: string, headers: Readonly<Record<string, string>> = CONSOLE): Promise<Body> {
    const answer = await get(path, headers)
    assert.equal(answer.status, 200)
    return (await answer.json()) as Body
  }

  async function logIn(): Promise<string> {
    const answer = await post('/api/login', { key: 'demo-console' }, { origin: OWN })
    return (answer.headers.get('set-cookie') ?? '').split(';')[0] ?? ''
  }
})

async function codeOf(answer: Response): Promise<string> {
  return (await errorOf(answer)).code
}

async function errorOf(answer: Response): Promise<ErrorBody['error']> {
  return ((await answer.json()) as ErrorBody).error
}

interface World {
  open(replaced?: Partial<HeartParts>): Pick<HttpApi, 'fetch'>
  nowMs: number
  failure: Error | undefined
  readonly faults: unknown[]
  readonly queries: AuditQuery[]
  readonly counted: AuditCountQuery[]
  readonly listed: unknown[]
  readonly decided: (readonly [string, unknown])[]
}

function makeWorld(): World {
  const callers = [
    callerOf('demo-viewer', 'mcp', { user: 'viewer', roles: ['viewer'] }),
    callerOf('demo-console', 'console', { user: 'owner', roles: ['approver'] }),
    callerOf('demo-approver-agent', 'mcp', { user: 'robot', roles: ['approver'] }),
    callerOf('vera-console', 'console', { user: 'vera', tenant: 'acme' }),
    callerOf('vera-agent', 'mcp', { user: 'vera', tenant: 'acme', agent: 'desk' }),
    callerOf('vera-agent-2', 'mcp', { user: 'vera', tenant: 'acme', agent: 'desk' }),
  ]
  const tools = ['read', 'write'].map((name) => defineTool({ namespace: 'files', name, execute: () => 'ok' }))
  const gate = createGate({ tools, policy: BASELINE })
  const approvals = new Map(
    [approval('a1', 'viewer', undefined), approval('a2', 'vera', 'acme'), approval('a3', 'vera', 'other')].map((a) => [
      a.id,
      a,
    ]),
  )
  const clock = { monotonicMs: () => world.nowMs, wallMs: () => 1000 + world.nowMs }
  const world: World = {
    nowMs: 0,
    failure: undefined,
    faults: [],
    queries: [],
    counted: [],
    listed: [],
    decided: [],
    open: (replaced = {}) => apiOf(heartOf({ ...parts, ...replaced }), [{ start: GROUPS }, { start: WARNINGS }]),
  }
  const audit = {
    evidence: () => EVIDENCE,
    query(query: AuditQuery) {
      if (world.failure) throw world.failure
      world.queries.push(query)
      return [{ seq: 1, event: 'tool_call', tool: 'files:read' } as AuditRecord]
    },
    countOutcomes(query: AuditCountQuery) {
      world.counted.push(query)
      return { since: query.since, bucketMs: query.bucketMs, buckets: [], newestSeq: 9 }
    },
    async *exportRecords(query: object) {
      world.queries.push(query as AuditQuery)
      for (let seq = 1; seq <= 1500; seq++)
        yield { seq, event: 'tool_call', tenant: seq % 2 === 0 ? 'acme' : 'other' } as AuditRecord
    },
  }
  const listed = createApprovals({
    clock,
    approvals: {
      list(filter: object) {
        world.listed.push(filter)
        return [...approvals.values()]
      },
      get: (id: string) => approvals.get(id),
      decide(id: string, verdict: ApprovalVerdict) {
        if (world.decided.some(([decided]) => decided === id))
          throw new ToolgateError('approval_decided', `${id} is decided`)
        world.decided.push([id, verdict])
        return {
          ...(approvals.get(id) as Approval),
          status: DECIDED[verdict.decision],
        }
      },
    },
  })
  const parts: HeartParts = {
    gate: gateWith(gate, {
      approvals: listed,
      policyRevision: 3,
      catalog: Object.create(gate.catalog, { revision: { value: 7 } }) as typeof gate.catalog,
    }),
    callers,
    clock,
    audit,
    config: { audit: { store: 'sqlite', mode: 'batched' } },
    fleet: { rows: () => [{ ...FILES, instances: { ...NONE, running: 2, users: RUNNING } }] },
    door: { origins: createOriginRules({ host: '127.0.0.1', port: 8787, origins: ['https://tools.example.com'] }) },
    onFault: (error) => world.faults.push(error),
  }
  return world
}

const GROUPS: Room = {
  name: 'groups',
  open: () => {
    const web = { name: 'web', visibility: 'conditional', available: false, tools: [] }
    return { service: { rows: () => [web], refresh: () => {} } }
  },
}

const WARNINGS: Room = {
  name: 'warnings',
  open: () => ({
    warnings: () => [
      { code: 'x', path: 'callers', text: 'no console key can decide the requests of "udo" in "other"' },
    ],
  }),
}

const FILES = { name: 'files', status: 'ready', since: 0, restarts: 0, toolCount: 2, rejected: [] } as const
const NONE = { starting: 0, running: 0, idle: 0, down: 0 }
const RUNNING = ['acme', 'other'].map((tenant) => ({ user: 'vera', tenant, state: 'running' as const }))

const EVIDENCE: AuditEvidenceBody = {
  store: 'sqlite',
  checkpoints: { path: '/srv/audit.checkpoints', signedSeq: 41 },
  problems: [{ code: 'checkpoints_missing', message: 'The checkpoints /srv/audit.checkpoints were removed.' }],
}

/** Callers with the role `approver` see all, others only `files:read`. */
const BASELINE = {
  name: 'baseline',
  deny: [{ match: 'files:write', unless: "has(caller.roles) && 'approver' in caller.roles" }],
}

const DECIDED = { approve: 'approved', reject: 'rejected', revoke: 'revoked' } as const

function callerOf(text: string, kind: 'mcp' | 'console', caller: Caller): CallerConfig {
  return { keyHash: createHash('sha256').update(text).digest(), demoKey: text, for: kind, caller }
}

function approval(id: string, user: string, tenant: string | undefined): Approval {
  const binding = { tenant, user, tool: 'files:write', definitionHash: 'd', inputHash: 'i', run: undefined }
  return { ...binding, id, status: 'pending', input: {}, requestedAt: 0, expiresAt: 600_000 }
}
