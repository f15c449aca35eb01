import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { after, beforeEach, describe, it } from 'node:test'
import { type Caller, createGate, defineTool, type Gate } from '@toolgate/core'
import { createPins, type Pins } from '@toolgate/core/pins'
import { memoryState, systemClock } from '@toolgate/core/stores'
import type { CallerConfig } from '../../config/config.ts'
import type { HttpApi } from '../http/api.ts'
import { apiOf, gateWith, heartOf } from '../../testing/heart.ts'
import type { ErrorBody, PinRow, PinsBody } from '../../model/rows.ts'

const SECRET = 'ghp_0123456789abcdefghijklmnopqrstuvwxyz'
const read = defineTool({ namespace: 'files', name: 'read', description: 'Reads a file.' })
const CHANGED = { description: `Reads a file with ${SECRET}.` }

const opened: { close(): void }[] = []
after(() => {
  for (const each of opened) each.close()
})

async function open(): Promise<{ api: Pick<HttpApi, 'fetch'>; pins: Pins; hash: string }> {
  let listed = read
  let announce = () => {}
  const subscribe = (listener: () => void) => {
    announce = listener
    return () => {}
  }
  const gate = createGate({ sources: [{ name: 'files', tools: () => [listed], subscribe }] })
  const pins = createPins({ catalog: gate.catalog, state: memoryState(), clock: systemClock, mode: 'suspend' })
  opened.push(pins, gate)
  listed = defineTool({ namespace: 'files', name: 'read', ...CHANGED })
  announce()
  await pins.settled()
  return { api: apiWith(gateWith(gate, { pins: pins as Gate['pins'] })), pins, hash: pins.list()[0]?.hash ?? '' }
}

function apiWith(gate: Gate): Pick<HttpApi, 'fetch'> {
  const callers: readonly CallerConfig[] = [
    person('owner', { user: 'owner', roles: ['approver'] }),
    person('reader', { user: 'reader', roles: [] }),
    person('tenant', { user: 'tina', tenant: 'acme', roles: ['approver'] }),
  ]
  return apiOf(heartOf({ gate, callers }))
}

function person(key: string, caller: Caller): CallerConfig {
  const text = `console-${key}`
  return { keyHash: createHash('sha256').update(text).digest(), demoKey: text, for: 'console', caller }
}

function ask(api: Pick<HttpApi, 'fetch'>, path: string, key = 'owner', body?: object): Promise<Response> {
  const headers = { authorization: `Bearer console-${key}`, host: '127.0.0.1:8787', 'content-type': 'application/json' }
  const init = body === undefined ? { headers } : { headers, method: 'POST', body: JSON.stringify(body) }
  return api.fetch(new Request(`http://127.0.0.1:8787${path}`, init))
}

const codeOf = async (answer: Response) => ((await answer.json()) as ErrorBody).error.code

describe('/api/pins', () => {
  let world: Awaited<ReturnType<typeof open>>
  beforeEach(async () => {
    world = await open()
  })

  it('returns the state of each definition, with secrets masked and hashes kept', async () => {
    const body = (await (await ask(world.api, '/api/pins?status=suspended', 'reader')).json()) as PinsBody
    const [row] = body.pins
    assert.deepEqual(
      [row?.tool, row?.status, row?.hash, row?.quarantined],
      ['files:read', 'suspended', world.hash, false],
    )
    assert.match(row?.diff?.text ?? '', /^~ \/description: Reads a file\{\+ with /)
    assert.doesNotMatch(JSON.stringify(body), /ghp_/)
  })

  it('shows a person of a tenant only tools that are not denied to them', async () => {
    const gate = createGate({
      tools: [read, defineTool({ namespace: 'vault', name: 'open' })],
      policy: { deny: ['vault:*'] },
    })
    opened.push(gate)
    const api = apiWith(gate)
    const idsFor = async (key: string) => {
      const { pins } = (await (await ask(api, '/api/pins', key)).json()) as PinsBody
      return pins.map(({ tool }) => tool)
    }
    assert.deepEqual([await idsFor('owner'), await idsFor('tenant')], [['files:read', 'vault:open'], ['files:read']])
  })

  it('filters by status, and refuses another', async () => {
    const none = (await (await ask(world.api, '/api/pins?status=pinned')).json()) as PinsBody
    assert.deepEqual(none.pins, [])
    const wrong = await ask(world.api, '/api/pins?status=fine')
    assert.deepEqual([wrong.status, await codeOf(wrong)], [400, 'query_invalid'])
  })

  it('accepts the definition that was looked at, by an approver of no tenant', async () => {
    const body = { tool: 'files:read', hash: world.hash }
    for (const key of ['reader', 'tenant']) {
      const answer = await ask(world.api, '/api/pins/accept', key, body)
      assert.deepEqual([answer.status, await codeOf(answer)], [403, 'approval_forbidden'])
    }
    assert.equal(world.pins.list()[0]?.status, 'suspended')
    const answer = await ask(world.api, '/api/pins/accept', 'owner', body)
    const row = (await answer.json()) as PinRow
    assert.deepEqual([answer.status, row.status, row.by, row.pinnedHash], [200, 'pinned', 'owner', world.hash])
  })

  it('accepts no other definition, no unknown tool, and nothing without pins', async () => {
    const hash = 'a'.repeat(64)
    const empty = createGate({ tools: [] })
    opened.push(empty)
    const none = apiWith(empty)
    const wrong = [
      await ask(world.api, '/api/pins/accept', 'owner', { tool: 'files:read', hash }),
      await ask(world.api, '/api/pins/accept', 'owner', { tool: 'files:gone', hash: world.hash }),
      await ask(none, '/api/pins/accept', 'owner', { tool: 'files:read', hash }),
    ]
    for (const answer of wrong) assert.deepEqual([answer.status, await codeOf(answer)], [404, 'pin_unknown'])
    assert.deepEqual(await (await ask(none, '/api/pins')).json(), { pins: [] })
    assert.equal(world.pins.list()[0]?.status, 'suspended')
  })

  it('takes a tool and a whole hash, and nothing else', async () => {
    const { hash } = world
    const bodies = [
      {},
      { tool: 'files:read' },
      { tool: 1, hash },
      { tool: '', hash },
      { tool: 'files:read', hash: 'abc' },
    ]
    for (const body of [...bodies, { tool: 'files:read', hash, by: 'me' }]) {
      const answer = await ask(world.api, '/api/pins/accept', 'owner', body)
      assert.deepEqual([answer.status, await codeOf(answer)], [400, 'body_invalid'])
    }
  })
})
