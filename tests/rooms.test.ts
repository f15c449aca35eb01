import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { GatewayConfig } from '@toolgate/gateway'
import { startWith } from '../packages/gateway/src/compose/gateway.ts'
import { ROOMS } from '../packages/gateway/src/compose/rooms.ts'
import type { ListedRoom } from '../packages/gateway/src/heart/room.ts'
import { send } from './support/http.ts'
import { CALLERS, KEYS } from './support/keys.ts'
import { type Era, MODERN, type Params, type RpcAnswer, toMessage } from './support/rpc.ts'
import { startSayingServer } from './support/saying-http.ts'
import { serverConfig } from './support/servers.ts'

const AGENT = { authorization: `Bearer ${KEYS.viewer}` }
const PERSON = { authorization: `Bearer ${KEYS.console}` }
const MAY_LOG = { elicit: false, sample: false, roots: false, log: true, open: [] }
const OFFERS = ['tools', 'resources', 'prompts'] as const
const NAMES = await Promise.all(ROOMS.map(nameOf))

let server: Awaited<ReturnType<typeof startSayingServer>>
before(async () => {
  server = await startSayingServer()
})
after(() => server.close())

describe('a gateway without one of its rooms', () => {
  for (const [at, name] of NAMES.entries())
    it(`starts, lists and calls without ${name}, and answers people`, async () => {
      const gateway = await startWithout(ROOMS[at])
      try {
        const client = name === 'mcp' ? overHttp(gateway.url) : overMcp(gateway.url)
        assert.deepEqual(await client.list(), [name === 'mcp' ? 'saying:log' : 'saying__log'])
        assert.equal(await client.call(), 'ok')
        if (name !== 'mcp') await checkMethods(gateway.url, name)
        const asked = [...ROUTES].map(async ([room, route]) => {
          const { status } = await send(`${gateway.url}/api/${route}`, { method: 'GET', headers: PERSON })
          return status === 200 ? [] : [`${room}: ${status}`]
        })
        const gone = [...ROUTES.keys()].filter((room) => room === name || NEEDS.get(room) === name)
        assert.deepEqual(
          (await Promise.all(asked)).flat(),
          gone.map((room) => `${room}: 404`),
        )
        assert.deepEqual(gateway.faults, [])
      } finally {
        await gateway.close()
      }
    })
})

/** A client without this room is told that its methods do not exist, and its capability is not declared. */
async function checkMethods(url: string, without: string): Promise<void> {
  const { result } = await overMcp(url).ask('server/discover', {})
  for (const [room, method, params, capability] of METHODS) {
    const { error } = await overMcp(url, '2025-11-25').ask(method, params)
    const isUnknown = error?.code === METHOD_NOT_FOUND
    assert.equal(isUnknown, room === without, `${method}: ${error?.message}`)
    assert.equal(Object.hasOwn(result?.['capabilities'] as object, capability), room !== without, capability)
  }
}

const METHOD_NOT_FOUND = -32_601
const COMPLETING: Params = { ref: { type: 'ref/prompt', name: 'none' }, argument: { name: 'to', value: '' } }

/** A route of each room that has some. */
const ROUTES: ReadonlyMap<string, string> = new Map([
  ['approvals', 'approvals'],
  ['audit', 'audit'],
  ['callers', 'callers'],
  ['calls', 'calls'],
  ['connections', 'connections'],
  ['grants', 'grants'],
  ['groups', 'groups'],
  ['halts', 'halts'],
  ['keys', 'keys'],
  ['limits', 'limits'],
  ['login', 'session'],
  ['matrix', 'matrix'],
  ['openapi', 'openapi.json'],
  ['notifications', 'notifications'],
  ['overview', 'overview'],
  ['people', 'people'],
  ['pins', 'pins'],
  ['policy', 'policy'],
  ['preferences', 'preferences'],
  ['replicas', 'replicas'],
  ['revisions', 'policy/revisions'],
  ['runs', 'runs'],
  ['servers', 'servers'],
  ['tools', 'tools?as=viewer'],
  ['warnings', 'warnings'],
])

/** The methods of MCP that rooms bring: an earlier client's request for each, and the capability that declares it. */
const METHODS: readonly (readonly [room: string, method: string, params: Params, capability: string])[] = [
  ['resources', 'resources/list', {}, 'resources'],
  ['resources', 'resources/unsubscribe', { uri: 'x://1' }, 'resources'],
  ['prompts', 'prompts/list', {}, 'prompts'],
  ['completion', 'completion/complete', COMPLETING, 'completions'],
  ['logging', 'logging/setLevel', { level: 'info' }, 'logging'],
  ['tasks', 'tasks/list', {}, 'extensions'],
]

/** What a room cannot do without. */
const NEEDS: ReadonlyMap<string, string> = new Map([
  ['matrix', 'tools'],
  ['people', 'overview'],
  ['revisions', 'reload'],
])

async function nameOf({ start, people }: ListedRoom): Promise<string> {
  return start?.name ?? (await people?.())?.room.name ?? ''
}

async function startWithout(removed: ListedRoom | undefined) {
  const config: GatewayConfig = {
    file: '/test/toolgate.yaml',
    listen: { host: '127.0.0.1', port: 0 },
    servers: [serverConfig('saying', { url: server.url, offers: OFFERS, may: MAY_LOG })],
    callers: CALLERS,
    groups: [],
    policy: [{ allow: ['saying:log'] }],
    limits: [],
    audit: { store: 'memory', mode: 'batched' },
    drainMs: 250,
  }
  const faults: unknown[] = []
  const log = (line: { readonly level: string; readonly detail?: string | undefined }) =>
    void (line.level === 'error' && faults.push(line))
  const rooms = ROOMS.filter((row) => row !== removed)
  const gateway = await startWith(rooms, config, { log })
  await gateway.ready
  return { ...gateway, faults }
}

function overMcp(url: string, era: Era = MODERN) {
  const ask = async (method: string, params: Params): Promise<RpcAnswer> => {
    const { headers, body } = toMessage(era, method, params)
    const answer = await send(`${url}/mcp`, { headers: { ...headers, ...AGENT }, body: JSON.stringify(body) })
    return answer.json() as RpcAnswer
  }
  return {
    ask,
    list: async () => ((await ask('tools/list', {})).result?.tools ?? []).map((tool) => tool.name),
    call: async () => textOf((await ask('tools/call', { name: 'saying__log', arguments: { text: 'hi' } })).result),
  }
}

function overHttp(url: string) {
  return {
    list: async () => {
      const { items } = (await send(`${url}/api/list`, { method: 'GET', headers: AGENT })).json() as {
        items: { id: string }[]
      }
      return items.map(({ id }) => id)
    },
    call: async () => {
      const headers = { ...AGENT, 'content-type': 'application/json' }
      const body = JSON.stringify({ tool: 'saying:log', input: { text: 'hi' } })
      return ((await send(`${url}/api/call`, { method: 'POST', headers, body })).json() as { text: string }).text
    },
  }
}

function textOf(result: RpcAnswer['result']): unknown {
  const [first] = (result as { content?: { text?: string }[] } | undefined)?.content ?? []
  return first?.text
}
