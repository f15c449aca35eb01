import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type Approval, type Caller, createGate, defineTool, type Gate, memoryAudit } from '@toolgate/core'
import { CountedAudit } from './counted-audit.ts'
import { createListCosts } from './list-costs.ts'
import { createNamedCallers } from '../http/callers.ts'
import { gateWith, heartOf } from '../../testing/heart.ts'
import { overviewRoute } from './routes.ts'
import type { OverviewBody, ServerRow } from '../../model/rows.ts'

const SECRET = 'ghp_0123456789abcdefghijklmnopqrstuvwxyz'
const OWNER: Caller = { user: 'owner', roles: ['operator'] }
const clock = { monotonicMs: () => performance.now(), wallMs: () => Date.now() }

describe('GET /api/overview', () => {
  it('counts by tool and server, with servers that are down first', async () => {
    const { attempts, outcomes, tools, servers, denied } = await ask('period=1h')
    assert.deepEqual([attempts, outcomes.done, outcomes.failed, outcomes.refused], [4, 1, 1, 2])
    assert.deepEqual(
      tools.map(({ tool, attempts: n, latency }) => [tool, n, latency?.p50]),
      [
        ['files:read', 3, 12],
        ['mail:send', 1, undefined],
      ],
    )
    assert.deepEqual(
      servers.map(({ name, status, restarts, attempts: n }) => [name, status, restarts, n]),
      [
        ['web', 'down', 3, 0],
        ['files', 'ready', 0, 3],
      ],
    )
    assert.deepEqual(
      denied.map(({ tool, user, count }) => [tool, user, count]),
      [
        ['files:read', 'vera', 1],
        ['mail:send', 'otto', 1],
      ],
    )
  })

  it('shows the last lines of stderr without secrets, to operators of no tenant', async () => {
    const [web] = (await ask('')).servers
    assert.deepEqual(web?.stderr, ['line 2', 'line 3', 'token=[redacted:token]'])
    for (const person of [{ user: 'reader' }, { ...OWNER, tenant: 'acme' }])
      assert.ok((await ask('', person)).servers.every(({ stderr }) => stderr === undefined))
  })

  it('estimates the tokens of each list, the most expensive first', async () => {
    const { lists, moreLists } = await ask('')
    assert.deepEqual(
      lists.map(({ user, tools, tokens }) => [user, tools, tokens > 10]),
      [
        ['vera', 2, true],
        ['otto', 1, true],
      ],
    )
    assert.ok((lists[0]?.tokens ?? 0) > (lists[1]?.tokens ?? 0))
    assert.equal(moreLists, 0)
  })

  it('keeps the figures, callers and requests of other tenants from a person of a tenant', async () => {
    const { attempts, denied, lists, waiting } = await ask('', { ...OWNER, tenant: 'acme' })
    assert.deepEqual([attempts, denied.length, lists.length, waiting.count], [1, 1, 0, 0])
  })

  it('counts what waits, and since when', async () => {
    assert.deepEqual((await ask('')).waiting, { count: 2, oldestAt: 5 })
  })

  it('rejects another period and another parameter', async () => {
    await assert.rejects(ask('period=2h'), { code: 'query_invalid', message: /must be one of 1h, 24h, 7d/ })
    await assert.rejects(ask('since=1'), { code: 'query_invalid' })
  })
})

async function ask(query: string, person: Caller = OWNER): Promise<OverviewBody> {
  const audit = memoryAudit()
  const common = { wallMs: Date.now(), policy_revision: 1, catalog_revision: 1 }
  const read = { ...common, tool: 'files:read', user_id: 'vera' }
  audit.write({ ...read, event: 'tool_result', duration_ms: 12 })
  audit.write({ ...read, event: 'tool_result', duration_ms: 12, is_error: true })
  audit.write({ ...read, event: 'tool_blocked', reason: 'policy_denied' })
  audit.write({
    ...common,
    event: 'tool_blocked',
    tool: 'mail:send',
    user_id: 'otto',
    tenant: 'acme',
    reason: 'policy_denied',
  })
  const gate = createGate({
    tools: ['read', 'write'].map((name) => defineTool({ namespace: 'files', name, description: 'Does it.' })),
    policy: { allow: ['*'], deny: [{ match: 'files:write', when: "caller.user == 'otto'" }] },
  })
  const callers = ['otto', 'vera'].map((user) => ({ keyHash: Buffer.alloc(32), for: 'mcp' as const, caller: { user } }))
  const fleet = {
    rows: () =>
      [
        { name: 'files', status: 'ready', since: 1, restarts: 0 },
        { name: 'web', status: 'down', since: 1, restarts: 3, reason: 'exited' },
      ] as ServerRow[],
    logs: {
      of: (server: string) =>
        server === 'web'
          ? ['line 1', 'line 2', 'line 3', `token=${SECRET}`].map((text, seq) => ({
              seq,
              wallMs: 0,
              level: 'stderr' as const,
              text,
            }))
          : [],
    },
  }
  const approvals = {
    list: async ({ tenant }: { tenant?: string }) =>
      tenant === undefined ? ([{ requestedAt: 9 }, { requestedAt: 5 }] as Approval[]) : [],
  } as Partial<Gate['approvals']> as Gate['approvals']
  const route = overviewRoute(
    heartOf({ gate: gateWith(gate, { approvals }), audit, clock, fleet }),
    createNamedCallers(() => callers),
    { counted: new CountedAudit({ audit, clock }), costs: createListCosts() },
  )
  try {
    const request = new Request('http://gateway/api/overview')
    const body = await route({ request, query: new URLSearchParams(query), person, loginAt: 0, id: '' })
    return body as OverviewBody
  } finally {
    await gate.close()
  }
}
