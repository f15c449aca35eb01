import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import type { ApprovalRow, ApprovalsBody, GatewayConfig, GrantRow, GrantsBody, WhyInputBody } from '@toolgate/gateway'
import { loadConfig } from '@toolgate/gateway'
import { runCommandIn } from './support/command.ts'
import { startTestGateway, tempFolder, type TestGateway } from './support/gateway.ts'
import { KEYS } from './support/keys.ts'
import { type RecordingServer, startRecordingServer } from './support/recording-server.ts'
import { MODERN } from './support/rpc.ts'

/** An approver grants further calls like the approved one, through the real doors of a gateway. */

const FILE = (url: string, grants: string) => `
listen: { port: 0 }
drainMs: 250
servers:
  bank: { url: ${url}, per: shared }
callers:
  - { key: ${KEYS.viewer}, id: a, user: vera, roles: [clerk] }
  - { key: other-agent, user: omar, roles: [clerk] }
  - { key: acme-agent, id: b, user: vera, tenant: acme, roles: [clerk] }
  - { key: vera-console, for: console, user: vera, roles: [approver] }
  - { key: acme-console, for: console, user: olga, tenant: acme, roles: [approver] }
  - { key: ${KEYS.console}, for: console, user: owner, roles: [approver] }
policy:
  - ask: [{ match: "bank:pay", input: "input.amount > 100", message: "More than 100 needs a person." }]
${grants}
audit: { store: memory }
state: { store: sqlite, path: state.db }
`
const GRANTS = 'grants: { max: 8h, by: other, maxUses: 50 }'

let folder: ReturnType<typeof tempFolder>
let gateway: TestGateway
let bank: RecordingServer
let paid = 0
const PAYMENT = {
  type: 'object',
  properties: { to: { type: 'string' }, amount: { type: 'number' }, note: { type: 'string' } },
} as const

before(async () => {
  folder = tempFolder()
  bank = await startRecordingServer(
    [{ name: 'pay', inputSchema: PAYMENT, run: () => ({ content: [], paid: paid++ }) }],
    {
      era: 'modern',
    },
  )
  write(GRANTS)
  const load = () => loadConfig(join(folder.path, 'toolgate.yaml'))
  // The test gateway keeps a section that the file no longer has, unless it is undefined.
  const again = () => ({ grants: undefined, ...load() }) as Partial<GatewayConfig>
  gateway = await startTestGateway(load(), again)
})
after(async () => {
  await gateway?.close()
  await bank?.close()
  folder?.remove()
})

function write(grants: string): void {
  writeFileSync(join(folder.path, 'toolgate.yaml'), FILE(bank.url, grants))
}

const call = async (input: object, key: string = KEYS.viewer) =>
  (await gateway.api('/api/call', { key, method: 'POST', body: { tool: 'bank:pay', input } })).body as {
    readonly status: string
    readonly approval?: { readonly id: string }
  }
const statusOf = async (...given: Parameters<typeof call>) => (await call(...given)).status
async function ask(input: object, key?: string): Promise<string> {
  const { approval } = await call(input, key)
  assert.ok(approval)
  return approval.id
}
const approve = async (id: string, grant: object, key: string = KEYS.console) =>
  gateway.api(`/api/approvals/${id}`, { key, method: 'POST', body: { decision: 'approve', grant } })
const grantsOf = async (query = '', key: string = KEYS.console) =>
  (await gateway.api(`/api/grants${query}`, { key })).body as GrantsBody
const revoke = async (id: string, key: string = KEYS.console, query = '') =>
  gateway.api(`/api/grants/${id}${query}`, { key, method: 'DELETE' })
async function endAll(): Promise<void> {
  for (const { id } of (await grantsOf('?status=live')).grants) await revoke(id)
}

const command = async (...args: readonly string[]) => runCommandIn({ TOOLGATE_URL: gateway.url }, ...args)
const HOUR = { forMs: 3_600_000 }
const UP_TO_200 = { covers: 'fields', fields: { amount: { upTo: 200 } }, uses: 2, ...HOUR }

describe('a grant through the HTTP API', () => {
  it('lets calls within its bounds through, as often as it says, and is listed and recorded', async () => {
    const id = await ask({ to: 'bob@corp', amount: 150 })
    const { approvals } = (await gateway.api('/api/approvals?status=pending')).body as ApprovalsBody
    const row = approvals.find((one) => one.id === id)
    assert.deepEqual(row?.mayGrant, {
      maxMs: 8 * 3_600_000,
      maxUses: 50,
      covers: ['input', 'fields', 'tool'],
      fields: [
        { name: 'to', value: 'bob@corp', type: 'string' },
        { name: 'amount', value: 150, type: 'number', mayBound: true },
        { name: 'note', type: 'string' },
      ],
    })
    assert.ok(!('clauses' in row))
    const { body, status } = await approve(id, UP_TO_200)
    assert.equal(status, 200)
    assert.equal((body as ApprovalRow).grant?.id, id)
    assert.equal(await statusOf({ to: 'bob@corp', amount: 150 }), 'done')
    const why = await gateway.api('/api/why', {
      method: 'POST',
      body: { tool: 'bank:pay', as: 'vera', input: { to: 'bob@corp', amount: 190 } },
    })
    const { outcome, grant } = why.body as WhyInputBody
    assert.deepEqual([outcome, grant?.id, grant?.used], ['allow', id, 0])
    for (const other of [
      { to: 'bob@corp', amount: 201 },
      { to: 'eve@evil', amount: 150 },
      { to: 'bob@corp', amount: 150, note: 'x' },
    ])
      assert.equal(await statusOf(other), 'waiting', JSON.stringify(other))
    assert.equal(await statusOf({ to: 'bob@corp', amount: 150 }, 'other-agent'), 'waiting')
    assert.equal(await statusOf({ to: 'bob@corp', amount: 150 }, 'acme-agent'), 'waiting')
    assert.equal(await statusOf({ amount: 200, to: 'bob@corp' }), 'done')
    const { grants, bounds } = await grantsOf('?status=live&user=vera&tool=bank:pay')
    assert.deepEqual(bounds, { maxMs: 8 * 3_600_000, maxUses: 50, by: 'other' })
    const [listed] = grants
    assert.deepEqual(
      [grants.length, listed?.id, listed?.used, listed?.uses, listed?.grantedBy, listed?.mayRevoke, listed?.input],
      [1, id, 1, 2, 'owner', true, { to: 'bob@corp' }],
    )
    assert.deepEqual(listed?.fields, { '/amount': { from: 0, upTo: 200 } })
    assert.equal(await statusOf({ to: 'bob@corp', amount: 101.5 }), 'done')
    assert.equal(await statusOf({ to: 'bob@corp', amount: 199 }), 'waiting')
    const { records } = (await gateway.api('/api/audit?event=tool_call')).body as {
      readonly records: readonly { readonly grant?: string; readonly approval_id?: string }[]
    }
    assert.equal(records.filter((one) => one.grant === id && one.approval_id === id).length, 2)
  })

  it('reads digits and numbers as they come', async () => {
    await endAll()
    await approve(await ask({ to: 'd', amount: 150 }), { ...UP_TO_200, uses: 50 })
    const { url } = gateway
    for (const [text, expected] of [
      ['200.00000000000000001', 'done'],
      ['2.0e2', 'done'],
      ['200.0000001', 'waiting'],
      ['9007199254740993', 'waiting'],
      ['"200"', 'refused'],
    ] as const) {
      const response = await fetch(`${url}/api/call`, {
        method: 'POST',
        headers: { authorization: `Bearer ${KEYS.viewer}`, 'content-type': 'application/json' },
        body: `{"tool":"bank:pay","input":{"to":"d","amount":${text}}}`,
      })
      assert.equal(((await response.json()) as { status: string }).status, expected, text)
    }
  })

  it('is refused to the asker, for fields that nobody saw, and beyond the bounds', async () => {
    await endAll()
    const id = await ask({ to: 'carl', amount: 150 })
    const mine = await gateway.api('/api/approvals?status=pending', { key: 'vera-console' })
    const row = (mine.body as ApprovalsBody).approvals.find((one) => one.id === id)
    assert.deepEqual([row?.mayDecide, row?.mayGrant], [true, undefined])
    const wrong: readonly (readonly [grant: unknown, status: number, code: string, key?: string])[] = [
      [{ covers: 'tool', ...HOUR }, 403, 'grant_forbidden', 'vera-console'],
      [{ covers: 'tool', forMs: 9 * 3_600_000 }, 400, 'grant_invalid'],
      [{ covers: 'tool', uses: 51, ...HOUR }, 400, 'grant_invalid'],
      [{ covers: 'fields', fields: { amount: { upTo: '200' } }, ...HOUR }, 400, 'grant_invalid'],
      [{ covers: 'tool', usez: 3, ...HOUR }, 400, 'body_invalid'],
      [5, 400, 'body_invalid'],
      [[], 400, 'body_invalid'],
    ]
    for (const [grant, status, code, key] of wrong) {
      const answer = await approve(id, grant as object, key)
      assert.deepEqual([answer.status, (answer.body as { error: { code: string } }).error.code], [status, code])
    }
    assert.equal(await statusOf({ to: 'carl', amount: 150 }), 'waiting')
    assert.deepEqual((await grantsOf('?status=live')).grants, [])
  })

  it('offers only the tool where a part of the input is masked', async () => {
    const id = await ask({ to: 'ghp_0123456789abcdefghijklmnopqrstuvwxyzAB', amount: 150 })
    const { approvals } = (await gateway.api('/api/approvals?status=pending')).body as ApprovalsBody
    const row = approvals.find((one) => one.id === id)
    assert.deepEqual([row?.mayGrant?.covers, row?.mayGrant?.fields], [['tool'], []])
    assert.equal((await approve(id, { covers: 'input', ...HOUR })).status, 403)
  })

  it('belongs to its tenant: nobody else sees or revokes it', async () => {
    await endAll()
    const id = await ask({ to: 'bob', amount: 150 }, 'acme-agent')
    assert.equal((await approve(id, { covers: 'tool', uses: 5, ...HOUR }, 'acme-console')).status, 200)
    const other = await ask({ to: 'bob', amount: 150 })
    await approve(other, { covers: 'tool', uses: 5, ...HOUR })
    const seen = async (query: string, key: string) => (await grantsOf(query, key)).grants.map((one) => one.id)
    assert.deepEqual(await seen('?status=live', 'acme-console'), [id])
    assert.deepEqual(await seen('?status=live&tenant=other', 'acme-console'), [])
    assert.deepEqual(await seen('?status=live&tenant=acme', KEYS.console), [id])
    const unseen = await revoke(other, 'acme-console')
    assert.deepEqual([unseen.status, (unseen.body as { error: { code: string } }).error.code], [404, 'grant_unknown'])
    const agent = await gateway.api('/api/grants', { key: KEYS.viewer })
    assert.equal(agent.status, 403)
    const done = await revoke(id, 'acme-console', '?reason=wrong')
    assert.deepEqual([(done.body as GrantRow).status, (done.body as GrantRow).revokeReason], ['revoked', 'wrong'])
    assert.equal(await statusOf({ to: 'zoe', amount: 150 }, 'acme-agent'), 'waiting')
    assert.equal((await revoke(id, 'acme-console')).status, 409)
  })

  it('is used by calls of an MCP client, and by nobody once the file has no grants', async () => {
    await endAll()
    const id = await ask({ to: 'mcp', amount: 150 })
    await approve(id, { covers: 'fields', fields: { note: { any: true } }, uses: 5, ...HOUR })
    const pay = async (note: string) => gateway.call('viewer', MODERN, 'bank__pay', { to: 'mcp', amount: 150, note })
    const earlier = paid
    await pay('a')
    assert.equal(paid, earlier + 1)
    write('')
    assert.equal((await gateway.reload()).isApplied, true)
    await pay('b')
    assert.equal(paid, earlier + 1)
    assert.equal((await grantsOf()).bounds, undefined)
    write(GRANTS)
    await gateway.reload()
    await pay('c')
    assert.equal(paid, earlier + 2)
  })
})

describe('toolgate approvals approve --for', () => {
  it('grants, lists and revokes', async () => {
    await endAll()
    const id = await ask({ to: 'cli', amount: 150 })
    const options = ['--for', '2h', '--uses', '10', '--field', 'to=cli', '--up-to', 'amount=200', '--any', 'note']
    const { code, out, err } = await command('approvals', 'approve', id, ...options)
    assert.equal(code, 0, err)
    assert.match(out, /granted {2}for vera: this input, but .*\/amount from 0 up to 200.*10 times until/)
    assert.match((await command('grants')).out, new RegExp(`${id}.*live.*bank:pay.*0/10`))
    const why = await command('why', 'bank:pay', '--as', 'vera', '--input', '{"to":"cli","amount":180,"note":"x"}')
    assert.match(why.out, new RegExp(`the grant ${id} of owner covers it: 10 of 10 uses left`))
    assert.match((await command('grants', 'revoke', id, '--reason', 'done')).out, /^revoked {2}bank:pay/)
    assert.equal((await command('grants')).out, 'No grant is live.\n')
    assert.match((await command('grants', '--all')).out, /revoked/)
    assert.equal((await command('grants', 'revoke', id)).code, 2)
  })

  it('refuses what it cannot grant, and approves nothing', async () => {
    const id = await ask({ to: 'cli2', amount: 150 })
    const wrong = [
      ['--uses', '3'],
      ['--for', 'soon'],
      ['--for', '2h', '--field', 'to=other'],
      ['--for', '2h', '--field', 'to'],
      ['--for', '2h', '--up-to', 'amount=many'],
      ['--for', '2h', '--up-to', 'amount=200', '--any', 'amount'],
      ['--for', '9h'],
      ['--for', '2h', '--covers', 'tool', '--any', 'note'],
    ]
    for (const options of wrong)
      assert.equal((await command('approvals', 'approve', id, ...options)).code, 2, options.join(' '))
    assert.equal((await command('approvals', 'reject', id, '--for', '2h')).code, 2)
    assert.equal(await statusOf({ to: 'cli2', amount: 150 }), 'waiting')
  })
})
