import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { after, beforeEach, describe, it } from 'node:test'
import { type Caller, createGate, defineTool, type Gate } from '@toolgate/core'
import { createAvailability, type Probe } from '@toolgate/core/groups'
import { memoryState } from '@toolgate/core/stores'
import { toApps } from '../../servers/catalog/groups.ts'
import type { CallerConfig, GatewayConfig } from '../../config/config.ts'
import type { HttpApi } from '../http/api.ts'
import { apiOf, heartOf, nameFor } from '../../testing/heart.ts'
import type { AppsBody, ErrorBody, PreferencesBody, ToolsBody, WhyBody } from '../../model/rows.ts'

const OWN = 'http://127.0.0.1:8787'
const opened: Gate[] = []
after(async () => {
  for (const gate of opened) await gate.close()
})

const CALLERS = [
  person('owner', { user: 'owner', roles: ['approver'] }),
  person('reader', { user: 'reader' }),
  person('tina', { user: 'tina', tenant: 'acme', roles: ['approver'] }),
  person('agent', { user: 'vera', tenant: 'acme' }, 'mcp'),
  person('agent-2', { user: 'reader' }, 'mcp'),
]

function open({ canStore = () => true }: { canStore?: () => boolean } = {}) {
  const tools = ['files:read', 'files:write', 'web:search'].map((id) => {
    const [namespace, name] = id.split(':') as [string, string]
    return defineTool({ namespace, name, execute: () => 'ok' })
  })
  const own = defineTool({ name: 'search_tools', execute: () => 'ok' })
  const kept = memoryState()
  const set: typeof kept.set = (...args) => {
    if (!canStore()) throw new Error('disk full')
    return kept.set(...args)
  }
  const gate = createGate({
    tools: [...tools, own],
    groups: { web: { tools: ['web:*'] }, disk: { tools: ['files:*'] } },
    apps: toApps(
      [
        {
          name: 'research',
          title: 'Research',
          instructions: 'Cite.',
          import: [{ group: 'web' }, { group: 'disk', visibility: 'hidden' }],
          tools: [],
          policy: [{ deny: ['web:none*'] }],
        },
        { name: 'desk', import: [], tools: ['files:read'], policy: [] },
      ],
      [own.id],
    ),
    state: { ...kept, set },
    pins: 'off',
  })
  opened.push(gate)
  const catalog = { lists: nameFor((id) => id), ownIds: () => new Set([own.id]) }
  const api = apiOf(heartOf({ gate, callers: CALLERS, catalog }))
  return { api, gate }
}

function person(key: string, caller: Caller, kind: 'console' | 'mcp' = 'console'): CallerConfig {
  const text = `key-of-${key}`
  return { keyHash: createHash('sha256').update(text).digest(), demoKey: text, for: kind, caller }
}

interface Asked {
  readonly key?: string
  readonly put?: unknown
  readonly headers?: Readonly<Record<string, string>>
}

async function ask(
  api: Pick<HttpApi, 'fetch'>,
  path: string,
  { key = 'owner', put, headers }: Asked = {},
): Promise<[number, unknown]> {
  const given = headers ?? { authorization: `Bearer key-of-${key}` }
  const sent = put === undefined ? {} : { method: 'PUT', body: JSON.stringify(put) }
  const all = { host: '127.0.0.1:8787', 'content-type': 'application/json', ...given }
  const answer = await api.fetch(new Request(`${OWN}${path}`, { headers: all, ...sent }))
  return [answer.status, await answer.json()]
}

const faultOf = ([status, body]: [number, unknown]) => [status, (body as ErrorBody).error.code]

describe('/api/apps', () => {
  it('lists each app with its path, groups and tools', async () => {
    const [status, body] = await ask(open().api, '/api/apps')
    assert.deepEqual(
      [status, (body as AppsBody).apps],
      [
        200,
        [
          {
            name: 'research',
            title: 'Research',
            path: '/mcp/research',
            instructions: 'Cite.',
            groups: ['web'],
            tools: ['web:search'],
            available: 1,
          },
          { name: 'desk', path: '/mcp/desk', groups: [], tools: ['files:read'], available: 1 },
        ],
      ],
    )
  })
})

describe('/api/needs', () => {
  const SECRET = 'correct-horse'
  const URL_OF_WEB = `http://127.0.0.1:9200/${SECRET}`
  const WEB: Probe = {
    key: 'web',
    kind: 'http',
    what: URL_OF_WEB,
    ask: () => ({ available: false, reason: `${URL_OF_WEB} answers with status 503` }),
  }

  async function openNeeds(): Promise<Pick<HttpApi, 'fetch'>> {
    const groups = {
      web: { tools: ['web:*'], availableWhen: [WEB], suggestion: `Start it with ${SECRET}.` },
      'server:web': { tools: ['web:*'], availableWhen: [WEB] },
    }
    const clock = { monotonicMs: () => 0, wallMs: () => 7 }
    const availability = createAvailability(groups, { clock })
    await availability.start()
    availability.close()
    const tools = [defineTool({ namespace: 'web', name: 'search' }), defineTool({ name: 'note' })]
    const apps = { research: { import: ['web'] }, desk: { tools: ['note'] } }
    const gate = createGate({ tools, groups, apps, availability })
    opened.push(gate)
    const config = { groups: [{ name: 'web' }] as object as GatewayConfig['groups'] }
    return apiOf(heartOf({ gate, callers: CALLERS, config, secrets: [SECRET] }))
  }

  it('lists what an app needs, in its configured groups and without secrets', async () => {
    const api = await openNeeds()
    const need = {
      kind: 'http',
      what: 'http://127.0.0.1:9200/[redacted:secret]',
      groups: ['web'],
      state: 'unavailable',
      reason: 'http://127.0.0.1:9200/[redacted:secret] answers with status 503',
      suggestion: 'Start it with [redacted:secret].',
      since: 7,
    }
    assert.deepEqual(await ask(api, '/api/needs?app=research'), [200, { app: 'research', needs: [need] }])
    assert.deepEqual(await ask(api, '/api/needs?app=desk'), [200, { app: 'desk', needs: [] }])
    assert.deepEqual(await ask(api, '/api/needs'), [200, { needs: [need] }])
  })

  it('names the nearest app for an unknown one, and takes nothing else', async () => {
    const api = await openNeeds()
    assert.deepEqual(faultOf(await ask(api, '/api/needs?app=')), [400, 'query_invalid'])
    assert.deepEqual(await ask(api, '/api/needs?app=reserch'), [
      404,
      { error: { code: 'app_unknown', message: 'No app is named "reserch"; the nearest is "research".' } },
    ])
  })

  it('is empty without needs', async () => {
    assert.deepEqual(await ask(open().api, '/api/needs'), [200, { needs: [] }])
  })
})

describe('?app=', () => {
  it('shows the tools that a caller sees in an app, and the reasons for hidden ones', async () => {
    const { api } = open()
    const [, tools] = (await ask(api, '/api/tools?as=vera&app=desk')) as [number, ToolsBody]
    assert.equal(tools.app, 'desk')
    assert.deepEqual(
      tools.tools.map(({ id, visible, reasons }) => [id, visible, reasons[0]?.code]),
      [
        ['files:read', true, undefined],
        ['files:write', false, 'app_hidden'],
        ['search_tools', true, undefined],
        ['web:search', false, 'app_hidden'],
      ],
    )
    const [, why] = (await ask(api, '/api/why?tool=files:write&as=vera&app=research')) as [number, WhyBody]
    assert.deepEqual(
      [why.app, why.visible, why.reasons.map(({ text }) => text)],
      ['research', false, ['the app research hides the group disk']],
    )
  })

  it('names the nearest of the apps there are', async () => {
    const { api } = open()
    for (const path of ['/api/tools?as=vera&app=reserch', '/api/why?tool=files:read&as=vera&app=reserch'])
      assert.deepEqual(await ask(api, path), [
        404,
        { error: { code: 'app_unknown', message: 'No app is named "reserch"; the nearest is "research".' } },
      ])
  })
})

describe('/api/preferences', () => {
  let world: ReturnType<typeof open>
  let canStore = true
  beforeEach(() => {
    canStore = true
    world = open({ canStore: () => canStore })
  })

  const OFF: PreferencesBody = { groups: ['web'], tools: ['files:write'] }
  const NONE: PreferencesBody = { groups: [], tools: [] }

  it('are a person’s own, and those of their agents', async () => {
    assert.deepEqual(await ask(world.api, '/api/preferences', { key: 'reader' }), [200, NONE])
    assert.deepEqual(await ask(world.api, '/api/preferences', { key: 'reader', put: OFF }), [200, OFF])
    assert.deepEqual(await ask(world.api, '/api/preferences', { key: 'reader' }), [200, OFF])
    assert.deepEqual((await world.gate.view({ user: 'reader' })).ids, ['files:read', 'search_tools'])
    assert.deepEqual(await ask(world.api, '/api/preferences'), [200, NONE])
  })

  it('of the person themselves can be changed by name too', async () => {
    const answer = await ask(world.api, '/api/preferences?as=reader', { key: 'reader', put: OFF })
    assert.deepEqual(answer, [200, OFF])
  })

  it('of another take an approver, who may see him', async () => {
    const answer = await ask(world.api, '/api/preferences?as=vera', { put: OFF })
    assert.deepEqual(answer, [200, OFF])
    assert.deepEqual(await ask(world.api, '/api/preferences?as=vera', { key: 'reader' }), [200, OFF])
    assert.deepEqual(faultOf(await ask(world.api, '/api/preferences?as=vera', { key: 'reader', put: NONE })), [
      403,
      'preferences_forbidden',
    ])
    assert.deepEqual(await ask(world.api, '/api/preferences?as=vera', { key: 'tina', put: NONE }), [200, NONE])
    assert.deepEqual(faultOf(await ask(world.api, '/api/preferences?as=owner', { key: 'tina', put: NONE })), [
      404,
      'caller_unknown',
    ])
  })

  it('are no agent’s to change', async () => {
    assert.deepEqual(faultOf(await ask(world.api, '/api/preferences', { key: 'agent', put: OFF })), [
      403,
      'key_not_for_console',
    ])
  })

  it('are changed by cookie only from a page of ours', async () => {
    const login = await world.api.fetch(
      new Request(`${OWN}/api/login`, {
        method: 'POST',
        headers: { host: '127.0.0.1:8787', origin: OWN, 'content-type': 'application/json' },
        body: JSON.stringify({ key: 'key-of-owner' }),
      }),
    )
    const cookie = (login.headers.get('set-cookie') ?? '').split(';', 1)[0] as string
    const change = (headers: Record<string, string>) =>
      ask(world.api, '/api/preferences', { put: OFF, headers: { cookie, ...headers } })
    assert.deepEqual(faultOf(await change({})), [403, 'origin_forbidden'])
    assert.deepEqual(faultOf(await change({ origin: 'http://evil.example' })), [403, 'origin_forbidden'])
    assert.equal((await change({ origin: OWN }))[0], 200)
  })

  it('are refused by name if they are invalid', async () => {
    const wrong: [unknown, string][] = [
      [
        { groups: ['wbe'], tools: [] },
        'preferences.groups: no group is named "wbe" (did you mean "web"?); the groups are web, disk',
      ],
      [{ groups: [] }, 'preferences.tools: must be a list of at most 1000 names'],
      [{ groups: [], tools: [], on: [] }, 'The field "on" is unknown; known are groups, tools.'],
    ]
    for (const [put, message] of wrong)
      assert.deepEqual(await ask(world.api, '/api/preferences', { put }), [
        400,
        { error: { code: 'body_invalid', message } },
      ])
  })

  it('are not changed if the store fails, with an error', async () => {
    canStore = false
    assert.deepEqual(faultOf(await ask(world.api, '/api/preferences', { put: OFF })), [503, 'state_unavailable'])
    assert.deepEqual(await ask(world.api, '/api/preferences'), [200, NONE])
  })
})
