import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { after, beforeEach, describe, it } from 'node:test'
import { type Caller, createGate, defineTool, type Gate, memoryAudit } from '@toolgate/core'
import { parseGroups } from '@toolgate/core/groups'
import { memoryState } from '@toolgate/core/stores'
import type { People } from '../../auth/people.ts'
import type { CallerConfig } from '../../config/config.ts'
import type { HttpApi } from '../http/api.ts'
import { apiOf, heartOf, nameFor } from '../../testing/heart.ts'
import type { ErrorBody, HaltRow, HaltsBody } from '../../model/rows.ts'

const SECRET = 'ghp_0123456789abcdefghijklmnopqrstuvwxyz'
const GROUPS = { disk: { tools: ['files:*'] } }

const opened: Gate[] = []
after(async () => {
  for (const gate of opened) await gate.close()
})

function open({ canStore = () => true }: { canStore?: () => boolean } = {}) {
  const callers = [
    person('owner', { user: 'owner', roles: ['approver'] }),
    person('operator', { user: 'olga', roles: ['operator'] }),
    person('reader', { user: 'reader', roles: ['viewer'] }),
    person('tenant', { user: 'tina', tenant: 'acme', roles: ['operator'] }),
    person('agent', { user: 'vera', tenant: 'acme' }, 'mcp'),
    person('agent-2', { user: 'omar', roles: ['operator'] }, 'mcp'),
  ]
  const listed = ['read', 'write'].map((name) =>
    defineTool({ namespace: 'files', name, tags: [name], execute: () => 'ok' }),
  )
  const audit = memoryAudit()
  const kept = memoryState()
  const state = {
    ...kept,
    set: (...args: Parameters<typeof kept.set>) => {
      if (!canStore()) throw new Error('disk full')
      return kept.set(...args)
    },
    take: (key: string) => {
      if (!canStore()) throw new Error('disk full')
      return kept.take(key)
    },
  }
  const source = { name: 'files', tools: () => listed, subscribe: () => () => {} }
  const gate = createGate({ sources: [source], groups: GROUPS, audit, state })
  opened.push(gate)
  const faults: unknown[] = []
  const signedIn: Caller[] = []
  const api = apiOf(
    heartOf({
      gate,
      callers,
      audit,
      catalog: { lists: nameFor((id) => id), selectors: () => parseGroups(GROUPS).selectors },
      door: { people: { list: () => signedIn, of: () => [] } as object as People },
      onFault: (error) => faults.push(error),
    }),
  )
  return { api, gate, audit, faults, signedIn }
}

function person(key: string, caller: Caller, kind: 'console' | 'mcp' = 'console'): CallerConfig {
  const text = `key-of-${key}`
  return { keyHash: createHash('sha256').update(text).digest(), demoKey: text, for: kind, caller }
}

interface Asked {
  readonly key?: string
  readonly method?: string
  readonly body?: object
  readonly headers?: Readonly<Record<string, string>>
}

function ask(
  api: Pick<HttpApi, 'fetch'>,
  path: string,
  { key = 'owner', method, body, headers = {} }: Asked = {},
): Promise<Response> {
  const given = { authorization: `Bearer key-of-${key}`, host: '127.0.0.1:8787', 'content-type': 'application/json' }
  const sent = body === undefined ? {} : { body: JSON.stringify(body) }
  const init = { method: method ?? (body === undefined ? 'GET' : 'POST'), headers: { ...given, ...headers }, ...sent }
  return api.fetch(new Request(`http://127.0.0.1:8787${path}`, init))
}

async function faultOf(answer: Promise<Response>): Promise<[number, string, string]> {
  const { status, ...rest } = await answer.then(async (got) => ({
    status: got.status,
    ...((await got.json()) as ErrorBody),
  }))
  return [status, rest.error.code, rest.error.message]
}

const rowOf = async (answer: Promise<Response>) => (await (await answer).json()) as HaltRow
const listOf = async (answer: Promise<Response>) => (await (await answer).json()) as HaltsBody

describe('/api/halts', () => {
  let world: ReturnType<typeof open>
  beforeEach(() => {
    world = open()
  })

  it('halts in the name of the person, and returns what the target matches now', async () => {
    const answer = await ask(world.api, '/api/halts', { body: { tool: 'group:disk', reason: 'stolen key' } })
    const row = (await answer.json()) as HaltRow
    assert.equal(answer.status, 200)
    assert.deepEqual(
      [row.target, row.reason, row.by, row.reach, row.mayRelease],
      [{ tool: 'group:disk' }, 'stolen key', 'owner', { tools: 2 }, true],
    )
    assert.deepEqual((await world.gate.view({ user: 'vera' })).ids, [])
    assert.deepEqual((await listOf(ask(world.api, '/api/halts', { key: 'reader' }))).halts, [
      { ...row, mayRelease: false },
    ])
  })

  it('says what a halt would stop before it is set, to those who may set it', async () => {
    const reach = async (query: string, key = 'owner') => {
      const answer = await ask(world.api, `/api/halts/reach?${query}`, { key })
      return [answer.status, await answer.json()]
    }
    assert.deepEqual(await reach('tool=group:disk'), [200, { tools: 2, underWay: 0 }])
    assert.deepEqual(await reach('user=vera'), [200, { tools: 2, people: 1, underWay: 0 }])
    assert.deepEqual(await reach('tool=files:wriet'), [200, { tools: 0, nearestTools: ['files:write'], underWay: 0 }])
    // A person of a tenant asks about it only.
    assert.deepEqual(await reach('all=true', 'tenant'), [200, { tools: 2, people: 2, underWay: 0 }])
    assert.equal((await reach('tenant=other', 'tenant'))[0], 403)
    assert.equal((await reach('user=vera', 'reader'))[0], 403)
    for (const wrong of ['', 'all=yes', 'user=', 'tool=files:', 'all=true&user=vera', 'usr=vera'])
      assert.equal((await reach(wrong))[0], 400, wrong)
    assert.deepEqual(world.gate.halts, [])
  })

  it('halts an unknown name, and reports that it stops nothing now, with the nearest names', async () => {
    const unknown: readonly (readonly [object, object])[] = [
      [{ tool: 'files:wriet' }, { tools: 0, nearestTools: ['files:write'] }],
      [{ user: 'vear' }, { tools: 0, people: 0, nearestPeople: ['vera'] }],
      [
        { user: 'vera', tenant: 'acmee' },
        { tools: 0, people: 0, nearestPeople: ['vera of acme'] },
      ],
      [{ tenant: 'acem' }, { tools: 0, people: 0, nearestPeople: ['acme'] }],
      [{ user: 'somebody-else' }, { tools: 0, people: 0 }],
    ]
    for (const [target, reach] of unknown) {
      const answer = await ask(world.api, '/api/halts', { body: { ...target, reason: 'r' } })
      assert.equal(answer.status, 200)
      assert.deepEqual(((await answer.json()) as HaltRow).reach, reach)
    }
    assert.deepEqual(
      world.gate.halts.map(({ target }) => target),
      unknown.map(([target]) => target),
    )
    const forced = { user: 'vera', reason: 'r', force: true }
    assert.equal((await faultOf(ask(world.api, '/api/halts', { body: forced })))[1], 'body_invalid')
  })

  it('counts users who signed in or called, even if the configuration does not name them', async () => {
    const reachOf = async (target: object) =>
      (await rowOf(ask(world.api, '/api/halts', { body: { ...target, reason: 'r' } }))).reach
    assert.deepEqual(await reachOf({ user: 'zoltan' }), { tools: 0, people: 0 })
    world.signedIn.push({ user: 'zoltan', tenant: 'acme' }, { user: 'zoltan', tenant: 'other' })
    assert.deepEqual(await reachOf({ user: 'zoltan' }), { tools: 2, people: 2 })
    assert.deepEqual(await reachOf({ user: 'zoltan', tenant: 'acme' }), { tools: 2, people: 1 })
    const view = await world.gate.view({ user: 'paul' })
    await view.call({ tool: 'files:read', input: {} })
    assert.deepEqual(await reachOf({ user: 'paul' }), { tools: 2, people: 1 })
  })

  it('shows a person of a tenant no people of other tenants', async () => {
    world.signedIn.push({ user: 'zoltan', tenant: 'other' })
    const answer = await ask(world.api, '/api/halts', { key: 'tenant', body: { user: 'zoltan', reason: 'r' } })
    assert.deepEqual(((await answer.json()) as HaltRow).reach, { tools: 0, people: 0 })
  })

  it('takes everything and a session without checking what they match', async () => {
    for (const target of [{ session: 'nobody-knows' }, { all: true }])
      assert.equal((await ask(world.api, '/api/halts', { body: { ...target, reason: 'r' } })).status, 200)
  })

  it('releases by id, in the name of the person, and both are on record', async () => {
    const { id } = await rowOf(ask(world.api, '/api/halts', { body: { all: true, reason: 'fire' } }))
    const answer = await ask(world.api, `/api/halts/${id}`, { key: 'operator', method: 'DELETE' })
    assert.equal(((await answer.json()) as HaltRow).id, id)
    assert.deepEqual(await listOf(ask(world.api, '/api/halts')), { halts: [], mayHalt: true })
    assert.equal((await world.gate.view({ user: 'vera' })).size, 2)
    assert.deepEqual(
      world.audit.records.map(({ event, user_id }) => [event, user_id]),
      [
        ['halt_set', 'owner'],
        ['halt_released', 'olga'],
      ],
    )
    assert.deepEqual((await faultOf(ask(world.api, `/api/halts/${id}`, { method: 'DELETE' }))).slice(0, 2), [
      404,
      'halt_unknown',
    ])
  })

  it('takes a person with the role operator or approver: to halt, and to release', async () => {
    const body = { user: 'vera', reason: 'r' }
    const { id } = await rowOf(ask(world.api, '/api/halts', { key: 'operator', body }))
    for (const asked of [
      ask(world.api, '/api/halts', { key: 'reader', body }),
      ask(world.api, `/api/halts/${id}`, { key: 'reader', method: 'DELETE' }),
    ])
      assert.deepEqual((await faultOf(asked)).slice(0, 2), [403, 'halt_forbidden'])
    for (const method of ['POST', 'DELETE'])
      assert.equal(
        (await faultOf(ask(world.api, `/api/halts/${id}`, { key: 'agent-2', method })))[0],
        method === 'POST' ? 405 : 403,
      )
    assert.equal((await listOf(ask(world.api, '/api/halts', { key: 'reader' }))).mayHalt, false)
    assert.equal(world.gate.halts.length, 1)
  })

  it('takes no change from the page of another', async () => {
    const headers = { origin: 'https://evil.example' }
    const body = { all: true, reason: 'r' }
    assert.equal((await faultOf(ask(world.api, '/api/halts', { body, headers })))[1], 'origin_forbidden')
    const plain = ask(world.api, '/api/halts', { body, headers: { 'content-type': 'text/plain' } })
    assert.equal((await faultOf(plain))[1], 'media_type_unsupported')
    const login = await world.api.fetch(
      new Request('http://127.0.0.1:8787/api/login', {
        method: 'POST',
        headers: { host: '127.0.0.1:8787', 'content-type': 'application/json', origin: 'http://127.0.0.1:8787' },
        body: JSON.stringify({ key: 'key-of-owner' }),
      }),
    )
    const cookie = (login.headers.get('set-cookie') ?? '').split(';')[0] ?? ''
    const byCookie = (method: string, path: string, origin?: string) =>
      world.api.fetch(
        new Request(`http://127.0.0.1:8787${path}`, {
          method,
          headers: {
            cookie,
            host: '127.0.0.1:8787',
            'content-type': 'application/json',
            ...(origin === undefined ? {} : { origin }),
          },
          ...(method === 'POST' ? { body: JSON.stringify(body) } : {}),
        }),
      )
    assert.equal((await faultOf(byCookie('POST', '/api/halts')))[1], 'origin_forbidden')
    assert.equal((await faultOf(byCookie('DELETE', '/api/halts/x')))[1], 'origin_forbidden')
    assert.deepEqual(world.gate.halts, [])
    assert.equal((await byCookie('POST', '/api/halts', 'http://127.0.0.1:8787')).status, 200)
  })

  describe('for a person of a tenant', () => {
    const narrowed: [object, object][] = [
      [
        { user: 'vera', reason: 'r' },
        { tenant: 'acme', user: 'vera' },
      ],
      [
        { tool: 'files:*', tenant: 'acme', reason: 'r' },
        { tenant: 'acme', tool: 'files:*' },
      ],
      [{ all: true, reason: 'r' }, { tenant: 'acme' }],
    ]
    for (const [body, target] of narrowed) {
      it(`${JSON.stringify(body)} halts ${JSON.stringify(target)}`, async () => {
        assert.deepEqual((await rowOf(ask(world.api, '/api/halts', { key: 'tenant', body }))).target, target)
        assert.equal((await world.gate.view({ user: 'omar', tenant: 'other' })).size, 2)
      })
    }

    it('halts nothing of another tenant, and nothing that it does not name', async () => {
      const bodies: [object, number][] = [
        [{ tenant: 'other', reason: 'r' }, 403],
        [{ reason: 'r' }, 400],
        [{ all: true, tenant: 'other', reason: 'r' }, 403],
        [{ all: true, user: 'vera', reason: 'r' }, 400],
      ]
      for (const [body, status] of bodies)
        assert.equal((await faultOf(ask(world.api, '/api/halts', { key: 'tenant', body })))[0], status)
      assert.deepEqual(world.gate.halts, [])
    })

    it('shows and releases only the halts of the tenant', async () => {
      const all = await rowOf(ask(world.api, '/api/halts', { body: { all: true, reason: 'r' } }))
      const other = await rowOf(ask(world.api, '/api/halts', { body: { tenant: 'other', reason: 'r' } }))
      const own = await rowOf(ask(world.api, '/api/halts', { key: 'tenant', body: { user: 'vera', reason: 'r' } }))
      const seen = await listOf(ask(world.api, '/api/halts', { key: 'tenant' }))
      assert.deepEqual(
        seen.halts.map(({ id }) => id),
        [own.id],
      )
      const gone = await faultOf(ask(world.api, '/api/halts/0000', { key: 'tenant', method: 'DELETE' }))
      for (const { id } of [all, other])
        assert.deepEqual(await faultOf(ask(world.api, `/api/halts/${id}`, { key: 'tenant', method: 'DELETE' })), gone)
      assert.equal((await ask(world.api, `/api/halts/${own.id}`, { key: 'tenant', method: 'DELETE' })).status, 200)
      assert.equal(world.gate.halts.length, 2)
    })

    it('neither releases nor replaces a halt by a person without a tenant', async () => {
      const from = await rowOf(ask(world.api, '/api/halts', { body: { tenant: 'acme', reason: 'abuse' } }))
      const [row] = (await listOf(ask(world.api, '/api/halts', { key: 'tenant' }))).halts
      assert.deepEqual([row?.id, row?.mayRelease], [from.id, false])
      const releasing = ask(world.api, `/api/halts/${from.id}`, { key: 'tenant', method: 'DELETE' })
      assert.deepEqual((await faultOf(releasing)).slice(0, 2), [403, 'halt_forbidden'])
      // The halt that they ask for is in force already.
      const again = await rowOf(
        ask(world.api, '/api/halts', { key: 'tenant', body: { all: true, reason: 'mine now' } }),
      )
      assert.deepEqual([again.id, again.reason, again.by, again.mayRelease], [from.id, 'abuse', 'owner', false])
      assert.equal(world.gate.halts[0]?.reason, 'abuse')
    })
  })

  it('does not let a person release a halt of themselves that somebody else has set', async () => {
    const halt = async (key: string, body: object) => (await rowOf(ask(world.api, '/api/halts', { key, body }))).id
    const release = async (key: string, id: string) => {
      const answer = await ask(world.api, `/api/halts/${id}`, { key, method: 'DELETE' })
      return answer.status
    }
    const id = await halt('owner', { user: 'olga' })
    const fault = await faultOf(ask(world.api, `/api/halts/${id}`, { key: 'operator', method: 'DELETE' }))
    assert.deepEqual(fault, [
      403,
      'halt_forbidden',
      'You are halted by somebody else, and another person has to release it.',
    ])
    // Halting once more does not make it theirs.
    assert.equal(await halt('operator', { user: 'olga' }), id)
    assert.equal(await release('operator', id), 403)
    const { halts } = await listOf(ask(world.api, '/api/halts', { key: 'operator' }))
    assert.deepEqual(
      halts.map(({ by, mayRelease }) => [by, mayRelease]),
      [['owner', false]],
    )
    assert.equal(await release('owner', id), 200)
    assert.equal(await release('operator', await halt('operator', { user: 'olga' })), 200)
    const inTenant = await halt('owner', { user: 'tina', tenant: 'acme' })
    assert.equal(await release('tenant', inTenant), 403)
    // A user of that name in another tenant is somebody else.
    assert.equal(await release('operator', await halt('owner', { user: 'olga', tenant: 'other' })), 200)
  })

  it('halts without a reason, and with names as long as a header', async () => {
    for (const reason of [undefined, '', 'x'.repeat(501)])
      assert.equal((await ask(world.api, '/api/halts', { body: { user: 'vera', reason } })).status, 200)
    assert.equal((await ask(world.api, '/api/halts', { body: { user: 'v'.repeat(8192) } })).status, 200)
    assert.equal((await rowOf(ask(world.api, '/api/halts', { body: { all: true } }))).reason, 'a person has halted it')
  })

  it('returns how much a target matches now, and the nearest tool if none matches', async () => {
    const reach = async (body: object) =>
      (await rowOf(ask(world.api, '/api/halts', { body: { ...body, reason: 'r' } }))).reach
    assert.deepEqual(await reach({ tool: 'files:raed' }), { tools: 0, nearestTools: ['files:read'] })
    assert.deepEqual(await reach({ tool: 'fiels:*' }), { tools: 0, nearestTools: ['files:*'] })
    assert.deepEqual(await reach({ tool: 'tag:raed' }), { tools: 0, nearestTools: ['tag:read'] })
    assert.deepEqual(await reach({ user: 'vera' }), { tools: 2, people: 1 })
    assert.deepEqual(await reach({ user: 'vear', tool: 'files:write' }), {
      tools: 0,
      people: 0,
      nearestPeople: ['vera'],
    })
    assert.deepEqual(await reach({ session: 's1' }), { tools: 2 })
    assert.deepEqual(await reach({ user: 'owner' }), { tools: 2, people: 1 })
  })

  const wrong: [object, RegExp][] = [
    [{ reason: 'r' }, /must name what to halt/],
    [{ user: 'vera', reason: 7 }, /halt\.reason: must be a text/],
    [{ user: 7, reason: 'r' }, /"user" must be a text/],
    [{ session: 'x'.repeat(8193), reason: 'r' }, /"session" must be a text of 1 to 8192/],
    [{ all: false, reason: 'r' }, /halt\.all: must be true/],
    [{ all: true, user: 'vera', reason: 'r' }, /cannot be combined with/],
    [{ tool: 'group:none', reason: 'r' }, /group:none/],
    [{ user: 'vera', reason: 'r', by: 'me' }, /"by" is unknown/],
    [{ user: 'vera', reason: 'r', byTenant: 'acme' }, /"byTenant" is unknown/],
  ]
  for (const [body, message] of wrong) {
    it(`refuses ${JSON.stringify(body).slice(0, 60)}`, async () => {
      const [status, code, text] = await faultOf(ask(world.api, '/api/halts', { body }))
      assert.deepEqual([status, code], [400, 'body_invalid'])
      assert.match(text, message)
      assert.deepEqual(world.gate.halts, [])
    })
  }

  it('reports a store that fails: a halt is in effect here, a release is not', async () => {
    let canStore = false
    const { api, gate, faults } = open({ canStore: () => canStore })
    const halting = await faultOf(ask(api, '/api/halts', { body: { all: true, reason: 'r' } }))
    assert.deepEqual(halting.slice(0, 2), [503, 'state_unavailable'])
    assert.match(halting[2], /^It is halted here, but the state store did not take it/)
    assert.equal((await gate.view({})).size, 0)
    canStore = true
    const { id } = await rowOf(ask(api, '/api/halts', { body: { all: true, reason: 'r' } }))
    canStore = false
    const releasing = await faultOf(ask(api, `/api/halts/${id}`, { method: 'DELETE' }))
    assert.match(releasing[2], /^It is still halted/)
    assert.equal((await gate.view({})).size, 0)
    assert.ok(faults.length >= 2)
  })

  it('shows no secret that a reason holds', async () => {
    const body = { user: 'vera', reason: `the token ${SECRET} has leaked` }
    const posted = await ask(world.api, '/api/halts', { body })
    const shown = (await posted.text()) + (await (await ask(world.api, '/api/halts')).text())
    assert.doesNotMatch(shown, /ghp_/)
  })
})
