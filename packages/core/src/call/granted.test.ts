import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { memoryAudit } from '../audit/memory.ts'
import { createGate } from '../gate/gate.ts'
import type { GateOptions } from '../gate/options.ts'
import type { Caller } from '../ports/caller.ts'
import type { GrantRequest } from '../ports/grants.ts'
import { memoryGrants } from '../memory/grants.ts'
import { defineTool } from '../tools/tool.ts'
import { manualClock } from '../../../testing/src/manual-clock.ts'
import type { CallRequest } from './attempt.ts'

const HOUR_MS = 3_600_000
const VERA: Caller = { tenant: 'acme', user: 'vera' }
const OLGA: Caller = { tenant: 'acme', user: 'olga', roles: ['approver'] }
const PAID = { to: 'bob@corp', amount: 150 }
const FIELDS: GrantRequest = { covers: 'fields', fields: { amount: { upTo: 200 } }, uses: 2, forMs: HOUR_MS }
const TOOL: GrantRequest = { covers: 'tool', uses: 2, forMs: HOUR_MS }
const PAYMENT = {
  type: 'object',
  properties: { to: { type: 'string' }, amount: { type: 'number' }, cc: {}, password: { type: 'string' } },
} as const

function pay(description = 'Pays.') {
  return defineTool({ name: 'pay', description, inputSchema: PAYMENT, execute: () => 'paid' })
}

const ASK = { match: 'pay', input: 'input.amount > 100' }

function setUp(options: GateOptions = {}) {
  const clock = manualClock()
  const audit = memoryAudit()
  const grantStore = memoryGrants()
  const gate = createGate({
    tools: [pay()],
    policy: { ask: [ASK] },
    grants: { maxMs: 8 * HOUR_MS },
    grantStore,
    audit,
    clock,
    ...options,
  })
  const call = async (input: unknown = PAID, more: Partial<CallRequest> = {}, caller: Caller = VERA) =>
    (await gate.view(caller)).call({ tool: 'pay', input, ...more })
  const status = async (...given: Parameters<typeof call>) => (await call(...given)).status
  /** Asks with an input, and approves with a grant. */
  const grant = async (
    request: GrantRequest,
    { input = PAID, by = OLGA, more = {}, caller = VERA }: GrantOptions = {},
  ) => {
    const asked = await call(input, more, caller)
    assert.equal(asked.status, 'waiting')
    const id = asked.status === 'waiting' ? asked.approval.id : ''
    const decided = await gate.approvals.decide(by, id, { decision: 'approve', grant: request })
    assert.ok(decided.grant)
    // The approved call itself.
    assert.equal((await call(input, more, caller)).status, 'done')
    return decided.grant
  }
  const uses = () => audit.records.filter(({ event, grant: id }) => event === 'tool_call' && id !== undefined)
  return { gate, clock, audit, grantStore, call, status, grant, uses }
}

interface GrantOptions {
  readonly input?: unknown
  readonly by?: Caller
  readonly more?: Partial<CallRequest>
  readonly caller?: Caller
}

describe('a grant', () => {
  it('lets as many calls through as it says, besides the approved one, and each names it', async () => {
    const { status, grant, uses, audit, gate } = setUp()
    const { id } = await grant(FIELDS)
    assert.deepEqual(uses(), [])
    assert.deepEqual(
      [await status({ ...PAID, amount: 101 }), await status({ ...PAID, amount: 200 }), await status()],
      ['done', 'done', 'waiting'],
    )
    assert.deepEqual(
      uses().map((record) => [record.grant, record.approval_id, record.detail]),
      [
        [id, id, 'granted by olga'],
        [id, id, 'granted by olga'],
      ],
    )
    const made = audit.records.find(({ event }) => event === 'grant_made')
    assert.deepEqual([made?.grant, made?.user_id, made?.tool, made?.tenant], [id, 'olga', 'pay', 'acme'])
    assert.match(made?.detail ?? '', /^for vera: this input, but \/amount from 0 up to 200, 2 times until /)
    assert.equal((await gate.grants.get(id))?.status, 'used')
  })

  it('answers a view that only asks, and a preview, and takes nothing by that', async () => {
    const { gate, grant } = setUp()
    const { id } = await grant(FIELDS)
    const view = await gate.view(VERA)
    const asked = { tool: 'pay', input: { ...PAID, amount: 180 } }
    assert.equal(await view.requestApproval(asked), undefined)
    const previewed = await view.preview(asked)
    assert.deepEqual([previewed.status, previewed.status === 'allow' && previewed.grant?.id], ['allow', id])
    assert.equal((await view.preview({ tool: 'pay', input: { ...PAID, amount: 201 } })).status, 'ask')
    assert.equal((await gate.grants.get(id))?.used, 0)
  })

  const inputs: readonly (readonly [covers: GrantRequest, what: string, input: unknown, status: 'done' | 'waiting'])[] =
    [
      [FIELDS, 'more than the bound', { ...PAID, amount: 200.01 }, 'waiting'],
      [FIELDS, 'an added field', { ...PAID, cc: 'eve@evil' }, 'waiting'],
      [FIELDS, 'an added null', { ...PAID, cc: null }, 'waiting'],
      [FIELDS, 'another addressee', { ...PAID, to: 'eve@evil' }, 'waiting'],
      [FIELDS, 'another order of keys', { amount: 150, to: 'bob@corp' }, 'done'],
      [{ ...FIELDS, covers: 'input', fields: undefined }, 'an equal input', { amount: 150, to: 'bob@corp' }, 'done'],
      [{ ...FIELDS, covers: 'input', fields: undefined }, 'another amount', { ...PAID, amount: 149 }, 'waiting'],
      [TOOL, 'any input', { to: 'eve@evil', amount: 1e9 }, 'done'],
    ]
  for (const [request, what, input, expected] of inputs)
    it(`for ${request.covers} answers ${expected} to ${what}`, async () => {
      const { grant, status } = setUp()
      await grant(request)
      assert.equal(await status(input), expected)
    })

  it('does not take a text for a number, where the schema makes one of it', async () => {
    const tool = defineTool({ name: 'pay', inputSchema: PAYMENT, inputs: 'coerced', execute: () => 'paid' })
    const { grant, status } = setUp({ tools: [tool] })
    await grant(FIELDS)
    assert.equal(await status({ ...PAID, amount: '201' }), 'waiting')
    // The rule, the tool and the grant see the number.
    assert.equal(await status({ ...PAID, amount: '200' }), 'done')
  })

  const callers: readonly (readonly [who: string, caller: Caller])[] = [
    ['another user', { tenant: 'acme', user: 'omar' }],
    ['the same name in another tenant', { tenant: 'other', user: 'vera' }],
    ['the same name without a tenant', { user: 'vera' }],
    ['a caller without a user', { tenant: 'acme' }],
    ['a key that another person made', { ...VERA, keyMadeBy: 'omar' }],
    ['an actor', { ...VERA, actor: 'robot' }],
  ]
  for (const [who, caller] of callers)
    it(`does not answer for ${who}`, async () => {
      const { grant, status } = setUp()
      await grant(TOOL)
      assert.equal(await status(PAID, {}, caller), 'waiting')
      assert.equal(await status(), 'done')
    })

  it('ends with the definition of its tool', async () => {
    const { gate, grant, status } = setUp()
    await grant(TOOL)
    gate.setRules({ tools: [pay('Pays, and tells everybody.')], policy: { ask: [ASK] }, grants: { maxMs: HOUR_MS } })
    assert.equal(await status(), 'waiting')
  })

  it('is for the run of its call, unless the approver chooses any run', async () => {
    const { grant, status } = setUp()
    await grant(TOOL, { more: { run: { id: 'r1' } } })
    assert.equal(await status(PAID, { run: { id: 'r2' } }), 'waiting')
    assert.equal(await status(PAID), 'waiting')
    assert.equal(await status(PAID, { run: { id: 'r1' } }), 'done')
    const other = setUp()
    await other.grant({ ...TOOL, anyRun: true }, { more: { run: { id: 'r1' } } })
    assert.equal(await other.status(PAID, { run: { id: 'r2' } }), 'done')
  })

  it('does not answer another rule that asks, nor one that demands more', async () => {
    const { gate, grant, status } = setUp()
    const rules = (...ask: object[]) =>
      gate.setRules({ tools: [pay()], policy: { ask: ask as (typeof ASK)[] }, grants: { maxMs: HOUR_MS } })
    await grant({ ...TOOL, uses: 50 })
    rules(ASK, { match: 'pay', input: 'input.amount > 120', message: 'The board decides.' })
    assert.equal(await status(), 'waiting')
    assert.equal(await status({ ...PAID, amount: 110 }), 'done')
    for (const stricter of [{ by: 'other' }, { login: '5m' }]) {
      rules({ ...ASK, ...stricter })
      assert.equal(await status(), 'waiting')
    }
    // The same clause in another place is the same clause.
    rules({ match: 'pay', when: "caller.user == 'nobody'" }, ASK)
    assert.equal(await status(), 'done')
  })

  it('does not answer where the run has read worse things than its approver saw', async () => {
    const read = defineTool({ name: 'read', execute: () => 'text' })
    const mail = defineTool({ name: 'mail', execute: () => 'text' })
    const { gate, grant, status, call } = setUp({
      tools: [pay(), read, mail],
      labels: { trusted: ['pay', 'read', 'mail'], private: ['read'], secret: ['mail'] },
      policy: { ask: [{ match: 'pay', when: "'private' in run.labels || 'secret' in run.labels" }] },
    })
    assert.ok(gate)
    const run = { run: { id: 'r1' } }
    await call({}, { ...run, tool: 'read' })
    await grant({ ...TOOL, uses: 50 }, { more: run })
    assert.equal(await status(PAID, run), 'done')
    await call({}, { ...run, tool: 'mail' })
    assert.equal(await status(PAID, run), 'waiting')
  })

  it('loosens neither a denial nor a halt nor a limit', async () => {
    const { gate, grant, status } = setUp({ limits: 'pay:2/60' })
    await grant({ ...TOOL, uses: 50 })
    await gate.halt({ user: 'vera', by: 'ada', reason: 'an incident' })
    assert.equal(await status(), 'refused')
    await gate.release({ user: 'vera' })
    assert.equal(await status(), 'done')
    assert.equal(await status(), 'refused')
    const denying = setUp()
    await denying.grant(TOOL)
    denying.gate.setPolicy({ ask: [ASK], deny: [{ match: 'pay', input: 'input.amount == 150.0' }] })
    assert.equal(await denying.status(), 'refused')
    assert.equal(await denying.status({ ...PAID, amount: 149 }), 'done')
  })

  it('gives its use back when the call does not run', async () => {
    const { gate, grant, status, audit } = setUp()
    const { id } = await grant(TOOL)
    const { write } = audit
    Object.assign(audit, {
      write: (entry: { event: string }) => {
        if (entry.event === 'tool_call') throw new Error('disk')
        return write(entry as Parameters<typeof write>[0])
      },
    })
    assert.equal(await status(), 'refused')
    Object.assign(audit, { write })
    assert.equal((await gate.grants.get(id))?.used, 0)
    assert.deepEqual([await status(), await status(), await status()], ['done', 'done', 'waiting'])
  })

  it('does not run where a rule that nobody saw came to ask while the call waited', async () => {
    const { gate, grant, call, audit } = setUp()
    const { id } = await grant(TOOL)
    const { write } = audit
    Object.assign(audit, {
      write: async (entry: { event: string }) => {
        if (entry.event === 'tool_call') gate.setPolicy({ ask: [ASK, { match: 'pay', message: 'The board decides.' }] })
        return write(entry as Parameters<typeof write>[0])
      },
    })
    const ended = await call()
    assert.equal(ended.status === 'refused' && ended.decision.reasons[0]?.code, 'approval_required')
    assert.equal((await gate.grants.get(id))?.used, 0)
  })

  it('is not used for another caller, whatever a store finds', async () => {
    const store = memoryGrants()
    const { gate, grant, status } = setUp({ grantStore: { ...store, find: (_, nowMs) => store.list({}, nowMs) } })
    await grant(TOOL)
    assert.ok(gate)
    for (const caller of [{ tenant: 'acme', user: 'omar' }, { user: 'vera' }, { tenant: 'other', user: 'vera' }])
      assert.equal(await status(PAID, {}, caller), 'waiting')
    assert.equal(await status(), 'done')
  })

  it('is used exactly as often as it says by calls at once', async () => {
    const { grant, status } = setUp()
    await grant({ ...TOOL, uses: 7 })
    const ended = await Promise.all(Array.from({ length: 30 }, () => status()))
    assert.equal(ended.filter((one) => one === 'done').length, 7)
  })

  it('ends at its end, and stays ended where the clock is set back', async () => {
    const { clock, grant, status } = setUp()
    await grant(TOOL)
    clock.advance(HOUR_MS - 1)
    assert.equal(await status(), 'done')
    clock.advance(1)
    assert.equal(await status(), 'waiting')
    clock.advance(-HOUR_MS / 2)
    assert.equal(await status({ ...PAID, amount: 199 }), 'waiting')
  })

  it('ends at once when a person revokes it, alone or with its approval', async () => {
    const { gate, grant, status, audit } = setUp()
    const { id } = await grant(TOOL)
    assert.equal(await status(), 'done')
    const revoked = await gate.grants.revoke(OLGA, id, { reason: 'wrong one' })
    assert.deepEqual([revoked.status, revoked.revokedBy, revoked.used], ['revoked', 'olga', 1])
    assert.equal(await status(), 'waiting')
    await assert.rejects(gate.grants.revoke(OLGA, id), { code: 'grant_ended' })
    const record = audit.records.find(({ event }) => event === 'grant_revoked')
    assert.deepEqual([record?.grant, record?.detail], [id, 'used 1 of 2 times by vera: wrong one'])
  })

  it('ends with the approval that made it, and that with it', async () => {
    for (const end of ['approval', 'grant'] as const) {
      const { gate, call, status } = setUp()
      const asked = await call()
      const id = asked.status === 'waiting' ? asked.approval.id : ''
      await gate.approvals.decide(OLGA, id, { decision: 'approve', grant: TOOL })
      await (end === 'grant' ? gate.grants.revoke(OLGA, id) : gate.approvals.decide(OLGA, id, { decision: 'revoke' }))
      assert.notEqual(await status(), 'done', end)
      assert.notEqual(await status({ ...PAID, amount: 199 }), 'done', end)
      assert.equal((await gate.grants.get(id))?.status, 'revoked')
    }
  })

  it('may be revoked by whoever may decide for its user', async () => {
    const { gate, grant } = setUp()
    const { id } = await grant(TOOL)
    for (const person of [{ tenant: 'acme', user: 'omar' }, { ...OLGA, tenant: 'other' }, { user: 'olga' }])
      await assert.rejects(gate.grants.revoke(person, id), { code: 'grant_forbidden' })
    await assert.rejects(gate.grants.revoke(OLGA, 'nothing'), { code: 'grant_unknown' })
    assert.equal((await gate.grants.revoke(VERA, id)).revokedBy, 'vera')
  })

  it('follows stricter bounds, and covers nothing while grants are switched off', async () => {
    const { gate, clock, grant, status } = setUp()
    const rules = (grants: GateOptions['grants']) =>
      gate.setRules({ tools: [pay()], policy: { ask: [ASK] }, ...(grants && { grants }) })
    await grant({ ...TOOL, uses: 50 }, { by: { ...VERA, roles: ['approver'] } })
    rules(undefined)
    assert.equal(await status(), 'waiting')
    rules({ maxMs: HOUR_MS, by: 'other' })
    assert.equal(await status(), 'waiting')
    rules({ maxMs: HOUR_MS })
    assert.equal(await status(), 'done')
    rules({ maxMs: HOUR_MS, maxUses: 1 })
    assert.equal(await status(), 'waiting')
    rules({ maxMs: HOUR_MS / 2 })
    clock.advance(HOUR_MS / 2)
    assert.equal(await status(), 'waiting')
  })
})

describe('approvals.decide with a grant', () => {
  async function refused(
    request: GrantRequest,
    { by = OLGA, input = PAID, options = {}, caller = VERA }: GrantOptions & { readonly options?: GateOptions } = {},
  ): Promise<unknown> {
    const { gate, call } = setUp(options)
    const asked = await call(input, {}, caller)
    const id = asked.status === 'waiting' ? asked.approval.id : ''
    const code = await gate.approvals
      .decide(by, id, { decision: 'approve', grant: request })
      .then(() => 'granted')
      .catch((error: { code: unknown }) => error.code)
    // A refused grant approves nothing.
    assert.equal((await gate.approvals.get(id))?.status, code === 'granted' ? 'approved' : 'pending')
    return code
  }

  it('makes none where the host allows none', async () => {
    assert.equal(await refused(TOOL, { options: { grants: undefined } as unknown as GateOptions }), 'grant_forbidden')
  })

  it('makes none for the one who asked, where another person must grant', async () => {
    const options: GateOptions = { grants: { maxMs: HOUR_MS, by: 'other' } }
    assert.equal(await refused(TOOL, { options, by: { ...VERA, roles: ['approver'] } }), 'grant_forbidden')
    const made = { ...VERA, keyMadeBy: 'olga' }
    assert.equal(await refused(TOOL, { options, caller: made }), 'grant_forbidden')
    assert.equal(await refused(TOOL, { options, by: { ...OLGA, user: 'otto', keyMadeBy: 'vera' } }), 'grant_forbidden')
    assert.equal(await refused(TOOL, { options }), 'granted')
  })

  it('makes none of parts that nobody saw, nor for a caller without a user', async () => {
    const input = { ...PAID, password: 'hunter2hunter2' }
    for (const request of [FIELDS, { ...FIELDS, covers: 'input', fields: undefined } as const])
      assert.equal(await refused(request, { input }), 'grant_forbidden')
    assert.equal(await refused(TOOL, { input }), 'granted')
    assert.equal(await refused(TOOL, { caller: { tenant: 'acme' } }), 'grant_forbidden')
  })

  const wrong: readonly (readonly [what: string, request: GrantRequest])[] = [
    ['a longer time than the bound', { ...TOOL, forMs: 8 * HOUR_MS + 1 }],
    ['no time', { covers: 'tool' }],
    ['two times', { ...TOOL, untilMs: 5 }],
    ['a time that is over', { covers: 'tool', untilMs: 5 }],
    ['an endless time', { covers: 'tool', forMs: Infinity }],
    ['no uses', { ...TOOL, uses: 0 }],
    ['more uses than the bound', { ...TOOL, uses: 101 }],
    ['half a use', { ...TOOL, uses: 1.5 }],
    ['fields of the whole tool', { ...TOOL, fields: { to: { any: true } } }],
    ['fields without names', { ...FIELDS, fields: undefined }],
    ['a bound below the approved value', { ...FIELDS, fields: { amount: { upTo: 1 } } }],
    ['anyRun: false', { ...TOOL, anyRun: false as unknown as true }],
  ]
  for (const [what, request] of wrong)
    it(`refuses ${what}`, async () => {
      assert.equal(await refused(request), 'grant_invalid')
    })

  it('refuses an unknown cover and an unknown field, naming it', async () => {
    assert.equal(await refused({ ...TOOL, covers: 'all' as 'tool' }), 'grant_forbidden')
    assert.equal(await refused({ ...TOOL, use: 3 } as GrantRequest), 'config_invalid')
  })

  it('makes no grant with another decision, and none of a decided approval', async () => {
    const { gate, call } = setUp()
    const asked = await call()
    const id = asked.status === 'waiting' ? asked.approval.id : ''
    await assert.rejects(gate.approvals.decide(OLGA, id, { decision: 'reject', grant: TOOL }), {
      code: 'grant_invalid',
    })
    await gate.approvals.decide(OLGA, id, { decision: 'approve' })
    await assert.rejects(gate.approvals.decide(OLGA, id, { decision: 'approve', grant: TOOL }), {
      code: 'approval_decided',
    })
    assert.deepEqual(await gate.grants.list(), [])
  })

  it('counts a clause with a login, under which it was given', async () => {
    const { gate, clock, call, status } = setUp({ policy: { ask: [{ ...ASK, login: '5m' }] } })
    const asked = await call()
    const id = asked.status === 'waiting' ? asked.approval.id : ''
    const approve = (loginAt: number) => gate.approvals.decide(OLGA, id, { decision: 'approve', grant: TOOL, loginAt })
    await assert.rejects(approve(clock.wallMs() - 301_000), { code: 'approval_needs_login' })
    assert.deepEqual(await gate.grants.list(), [])
    await approve(clock.wallMs())
    assert.deepEqual([await status({ ...PAID, amount: 180 }), await status({ ...PAID, amount: 190 })], ['done', 'done'])
  })
})
