import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, it } from 'node:test'
import type { AgentCallBody, LimitsBody } from '@toolgate/gateway'
import { loadConfig } from '@toolgate/gateway'
import { MODERN, type RpcAnswer, toMessage } from './support/rpc.ts'
import { startTestGateway, type TestGateway } from './support/gateway.ts'
import { send } from './support/http.ts'
import { KEYS } from './support/keys.ts'
import { nodeServer } from './support/servers.ts'

const SLOW = join(import.meta.dirname, 'support/slow-server.js')
const FILE = `
servers: {}
policy: [{ allow: ["*"] }]
limits:
  - match: "slow:echo"
    max: 50000
    windowMs: 86400000
    per: [user]
    cost: units(input.amount, 2)
    unit: { name: EUR, per: 100 }
  - { match: "slow:long", max: 1, windowMs: 180000, unit: readings, message: "One reading is enough. The next is free {wait}." }
`
const LEGACY = '2025-11-25'
const BUDGET =
  'TOOL_CALL_BLOCKED: rate limited (500.00 EUR in 24 hours: this call costs 90.00 EUR, and 30.00 of 500.00 EUR are left). Try again in about 24 hours.'

describe('the unit and the message of a limit in toolgate.yaml', () => {
  let gateway: TestGateway
  beforeEach(async () => {
    const folder = mkdtempSync(join(tmpdir(), 'limit-words-'))
    writeFileSync(join(folder, 'toolgate.yaml'), FILE)
    const { limits, policy } = loadConfig(join(folder, 'toolgate.yaml'), { env: {} })
    rmSync(folder, { recursive: true })
    gateway = await startTestGateway({ servers: [nodeServer('slow', [SLOW])], policy, limits })
  })
  afterEach(() => gateway.close())

  const call = async (tool: string, input: object) =>
    (await gateway.api('/api/call', { key: KEYS.viewer, method: 'POST', body: { tool, input } })).body as AgentCallBody

  it('are in the texts of the API and of MCP, and the exact seconds in their fields', async () => {
    assert.equal((await call('slow:echo', { amount: 470 })).status, 'done')
    const refused = await call('slow:echo', { amount: '90.00' })
    assert.equal(refused.text, BUDGET)
    assert.ok(refused.status === 'refused' && (refused.retryAfterSeconds ?? 0) > 86_000)
    for (const era of [LEGACY, MODERN] as const) {
      const message = toMessage(era, 'tools/call', { name: 'slow__echo', arguments: { amount: 90 } })
      const answer = await send(gateway.mcpUrl, {
        headers: { ...message.headers, authorization: `Bearer ${KEYS.viewer}` },
        body: JSON.stringify(message.body),
      })
      const { result } = answer.json() as RpcAnswer
      assert.deepEqual(result?.['content'], [{ type: 'text', text: BUDGET }], era)
      assert.ok(
        Number((result?.['_meta'] as Record<string, number> | undefined)?.['dev.toolgate/retry-after']) > 86_000,
      )
    }
    assert.equal((await call('slow:long', {})).status, 'done')
    assert.equal(
      (await call('slow:long', {})).text,
      'TOOL_CALL_BLOCKED: One reading is enough. The next is free in 3 minutes.',
    )
    const { limits } = (await gateway.api('/api/limits')).body as LimitsBody
    assert.deepEqual(
      limits.map(({ limit, unit, remaining }) => [limit, unit, remaining]),
      [['500.00 EUR in 24 hours', { name: 'EUR', places: 2 }, 3000]],
    )
  })

  it('say no time to wait for a call that costs more than all of the limit', async () => {
    const refused = await call('slow:echo', { amount: 501 })
    assert.ok(refused.status === 'refused')
    assert.match(refused.text, /501\.00 EUR, and 500\.00 EUR is the whole limit\)\.$/)
    assert.equal(refused.retryAfterSeconds, undefined)
  })
})
