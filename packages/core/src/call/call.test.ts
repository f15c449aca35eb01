import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createSealer } from '../audit/chain.ts'
import { memoryAudit } from '../audit/memory.ts'
import { createGate } from '../gate/gate.ts'
import type { GateOptions } from '../gate/options.ts'
import { memoryApprovals } from '../memory/approvals.ts'
import { memoryCounters } from '../memory/counters.ts'
import type { ApprovalStore, AuditEntry, AuditSink, CounterStore, MaybePromise } from '../ports/ports.ts'
import { manualClock } from '../../../testing/src/manual-clock.ts'
import { type CallContext, defineTool } from '../tools/tool.ts'

interface Setup extends GateOptions {
  readonly execute?: (input: unknown, call: CallContext) => unknown
}

/** One tool `pay`, and a log of everything that its gate asks and does, in order. */
function setup({ execute = () => 'paid', ...options }: Setup = {}) {
  const clock = manualClock()
  const log: string[] = []
  const entries: AuditEntry[] = []
  const faults: unknown[] = []
  const counters = memoryCounters({ clock })
  let lastId = 0
  const approvals = memoryApprovals({ randomId: () => `id-${++lastId}` })
  const audit = memoryAudit()
  const logged =
    <Args extends readonly unknown[], R>(step: string, ask: (...args: Args) => R) =>
    (...args: Args): R => {
      log.push(step)
      return ask(...args)
    }
  const ports: Required<Pick<GateOptions, 'counters' | 'approvals' | 'audit'>> = {
    counters: {
      peek: logged('peek', counters.peek),
      take: logged('take', counters.take),
      giveBack: logged('give back limit', counters.giveBack),
      settle: logged('settle limit', counters.settle),
    },
    approvals: {
      ...approvals,
      request: logged('request', approvals.request),
      consume: logged('consume', approvals.consume),
      giveBack: logged('give back approval', approvals.giveBack),
    },
    audit: {
      ...audit,
      write(entry) {
        // What a person or the host did meanwhile is no part of the attempt.
        if (entry.tool_call_id !== undefined) {
          log.push(entry.event)
          entries.push(entry)
        }
        audit.write(entry)
      },
    },
  }
  const pay = defineTool({
    name: 'pay',
    inputSchema: { type: 'object', properties: { amount: { type: 'number' } } },
    execute(input: unknown, call) {
      log.push('execute')
      return execute(input, call)
    },
  })
  const gate = createGate({
    tools: [pay],
    clock,
    ...ports,
    validateInput(_, input) {
      log.push('validate')
      return (input as { bad?: true }).bad ? { pointer: '/bad', message: 'must not be' } : undefined
    },
    onFault: (fault) => faults.push(fault),
    ...options,
  })
  const call = async (request: object = {}) =>
    (await gate.view(VERA)).call({ tool: 'pay', callId: 'call-1', ...request })
  return { gate, clock, log, entries, faults, call, ports, counters, approvals }
}

const VERA = { user: 'vera', tenant: 'acme', session: 's', agent: 'bot', chat: { id: 'c' } }
const ASK = { policy: { ask: ['pay'] } } as const

describe('call', () => {
  it('asks the checks in one order', async () => {
    const { call, log } = setup({ limits: 'pay:1/60' })
    const outcome = await call({ input: { amount: 1 } })
    assert.equal(outcome.status, 'done')
    assert.deepEqual(log, ['validate', 'take', 'tool_call', 'execute', 'tool_result'])
  })

  it('looks at the limit and asks before it takes anything', async () => {
    const { call, log, gate } = setup({ ...ASK, limits: 'pay:1/60' })
    const waiting = await call()
    assert.equal(waiting.status, 'waiting')
    assert.deepEqual(log.splice(0), ['validate', 'peek', 'request', 'tool_approval_required'])
    await gate.approvals.decide(VERA, waiting.approval.id, { decision: 'approve' })
    assert.equal((await call()).status, 'done')
    assert.deepEqual(log.splice(0), [
      'validate',
      'peek',
      'request',
      'take',
      'consume',
      'tool_call',
      'execute',
      'tool_result',
    ])
  })

  it('decides a hidden tool before anything of it is looked at', async () => {
    const { call, log } = setup({ policy: { deny: ['pay'] }, limits: 'pay:1/60' })
    assert.equal((await call({ input: { bad: true } })).status, 'refused')
    assert.deepEqual(log, ['tool_blocked'])
  })

  it('stops at an input that its schema refuses', async () => {
    const { call, log } = setup({ ...ASK, limits: 'pay:1/60' })
    const outcome = await call({ input: { bad: true } })
    assert.equal(outcome.text, 'TOOL_CALL_BLOCKED: invalid input at "/bad": must not be')
    assert.deepEqual(log, ['validate', 'tool_blocked'])
  })

  it('stops at an input that is no plain JSON, before its schema is asked', async () => {
    const { call, log } = setup()
    const outcome = await call({ input: { when: new Date(0) } })
    assert.equal(outcome.text, 'TOOL_CALL_BLOCKED: invalid input at "/when": is not a plain object')
    assert.deepEqual(log, ['tool_blocked'])
  })

  it('costs nothing where the input is denied', async () => {
    const { call, log } = setup({ policy: { deny: [{ match: 'pay', input: 'input.amount > 5' }] }, limits: 'pay:1/60' })
    assert.equal((await call({ input: { amount: 6 } })).status, 'refused')
    assert.deepEqual(log, ['validate', 'tool_blocked'])
    assert.equal((await call({ input: { amount: 5 } })).status, 'done')
  })

  it('asks nobody to approve what the limit would refuse', async () => {
    const { call, log, counters } = setup({ ...ASK, limits: 'pay:1/60' })
    void counters.take([{ key: '3:pay/60000|4:acme|3:pay|1:c|4:vera', max: 1, windowMs: 60_000 }])
    const outcome = await call()
    assert.equal(outcome.text, 'TOOL_CALL_BLOCKED: rate limited (1/60). Try again in 60 s.')
    assert.deepEqual(log, ['validate', 'peek', 'tool_rate_limited'])
  })

  it('gives the tool the input that was decided, frozen, even if the caller changes theirs', async () => {
    let seen: unknown
    const { gate } = setup({
      execute(input) {
        seen = input
        assert.throws(() => Object.assign(input as object, { amount: 9 }), TypeError)
      },
    })
    const input = { amount: 1 }
    const view = await gate.view(VERA)
    const running = view.call({ tool: 'pay', input })
    input.amount = 1_000_000
    assert.equal((await running).status, 'done')
    assert.deepEqual(seen, { amount: 1 })
  })

  it('records a refusal in the turn of the call, before a call made after it', async () => {
    const { gate, log } = setup({ limits: 'pay:1/60', hooks: { beforeToolCall: () => undefined } })
    const view = await gate.view(VERA)
    const refused = view.call({ tool: 'pay', input: { bad: true } })
    assert.deepEqual(log.splice(0), ['validate', 'tool_blocked'])
    const done = view.call({ tool: 'pay' })
    assert.deepEqual(log.splice(0), ['validate', 'take', 'tool_call', 'execute', 'tool_result'])
    const limited = view.call({ tool: 'pay' })
    assert.deepEqual(log.splice(0), ['validate', 'take', 'tool_rate_limited'])
    const outcomes = await Promise.all([refused, done, limited])
    assert.deepEqual(
      outcomes.map(({ status }) => status),
      ['refused', 'done', 'refused'],
    )
  })

  it('takes no input for an empty one', async () => {
    const { call, entries } = setup({ execute: (input) => assert.deepEqual(input, {}) })
    assert.equal((await call()).status, 'done')
    assert.deepEqual(entries[0]?.input, {})
  })

  it('does not run what is described here and executed elsewhere, and says so', async () => {
    const gate = createGate({ tools: [defineTool({ name: 'pay' })] })
    const outcome = await (await gate.view({})).call({ tool: 'pay' })
    assert.equal(outcome.text, 'pay is unavailable: it is described here and executed elsewhere.')
  })

  it('answers for a name that maps to no tool as for one that does not exist', async () => {
    const { call } = setup()
    const unmapped = await call({ tool: undefined, calledAs: 'web__search' })
    assert.equal(unmapped.text, 'Tool "web__search" is not available. Available tools: pay.')
  })

  it('uses the names that the client knows in texts for the model', async () => {
    const { call } = setup()
    const outcome = await call({ tool: 'nothing', calledAs: 'x__nothing', nameOf: (id: string) => `x__${id}` })
    assert.equal(outcome.text, 'Tool "x__nothing" is not available. Available tools: x__pay.')
  })
})

describe('the outcome of a call', () => {
  const texts: readonly (readonly [output: unknown, text: string])[] = [
    ['paid', 'paid'],
    [{ paid: true }, '{"paid":true}'],
    [undefined, ''],
    [null, 'null'],
    [5, '5'],
    [5n, '5'],
  ]
  for (const [output, text] of texts) {
    it(`done has the output as it is, and as text: ${text}`, async () => {
      const outcome = await setup({ execute: () => output }).call()
      assert.ok(outcome.status === 'done')
      assert.equal(outcome.output, output)
      assert.equal(outcome.text, text)
      assert.equal(outcome.callId, 'call-1')
    })
  }

  it('done has a copy of an output that holds itself', async () => {
    const outcome = await setup({ execute: circle }).call()
    assert.ok(outcome.status === 'done')
    assert.doesNotThrow(() => JSON.stringify(outcome.output))
    assert.ok(outcome.text.length > 0)
  })

  it('failed has what was thrown, and its message as text', async () => {
    const error = new Error('no money')
    const outcome = await setup({ execute: () => Promise.reject(error) }).call({ calledAs: 'x__pay' })
    assert.ok(outcome.status === 'failed')
    assert.deepEqual([outcome.code, outcome.error, outcome.text], ['tool_failed', error, 'x__pay failed: no money'])
  })

  const oddities: readonly unknown[] = [
    null,
    undefined,
    Object.create(null),
    Object.assign(new Error('x'), { message: 7 }),
    Object.defineProperty(new Error('x'), 'message', { get: () => assert.fail('a trap') }),
  ]
  for (const [i, oddity] of oddities.entries()) {
    it(`failed is a value, whatever was thrown (${i + 1})`, async () => {
      const { call, entries } = setup({ execute: () => Promise.reject(oddity) })
      const outcome = await call()
      assert.ok(outcome.status === 'failed' && typeof outcome.text === 'string')
      assert.deepEqual(
        entries.map(({ event, error }) => [event, typeof error]),
        [
          ['tool_call', 'undefined'],
          ['tool_result', 'string'],
        ],
      )
    })
  }

  it('makes an id for a call that has none', async () => {
    const outcome = await setup().call({ callId: undefined })
    assert.match(outcome.callId, /^[0-9a-f-]{36}$/)
  })
})

describe('an attempt leaves one terminal record', () => {
  const never = () => new Promise(() => {})
  interface TestAttempt {
    readonly what: string
    readonly options?: Setup
    readonly request?: () => object
    readonly events: string
    readonly reason?: string
  }
  const attempts: readonly TestAttempt[] = [
    { what: 'done', events: 'tool_call tool_result' },
    {
      what: 'failed',
      options: { execute: () => Promise.reject(new Error('x')) },
      events: 'tool_call tool_result',
      reason: 'tool_failed',
    },
    {
      what: 'out of time',
      options: { execute: never, clock: realClock() },
      request: () => ({ deadlineMs: 1 }),
      events: 'tool_call tool_result',
      reason: 'tool_timeout',
    },
    { what: 'denied', options: { policy: { deny: ['pay'] } }, events: 'tool_blocked', reason: 'policy_denied' },
    { what: 'not found', request: () => ({ tool: 'nothing' }), events: 'tool_blocked', reason: 'tool_not_found' },
    { what: 'invalid', request: () => ({ input: { bad: true } }), events: 'tool_blocked', reason: 'input_invalid' },
    {
      what: 'limited',
      options: { limits: 'pay:1/60', counters: full() },
      events: 'tool_rate_limited',
      reason: 'rate_limited',
    },
    { what: 'asked for', options: ASK, events: 'tool_approval_required', reason: 'approval_required' },
    {
      what: 'gone before',
      request: () => ({ signal: AbortSignal.abort() }),
      events: 'tool_abandoned',
      reason: 'caller_gone',
    },
    {
      what: 'gone meanwhile',
      options: { execute: never },
      request: () => ({ signal: AbortSignal.timeout(5) }),
      events: 'tool_call tool_abandoned',
      reason: 'tool_aborted',
    },
  ]
  for (const { what, options, request = () => ({}), events, reason } of attempts) {
    it(`when it is ${what}`, async () => {
      const { call, entries } = setup(options)
      await call(request())
      assert.equal(entries.map(({ event }) => event).join(' '), events)
      assert.equal(entries.at(-1)?.reason, reason)
    })
  }

  it('with who called, what and when', async () => {
    const { call, entries, clock, gate } = setup()
    gate.setPolicy([])
    await call({ input: { amount: 1 } })
    // What decided is for the sink alone.
    const { asked, ...rest } = entries[0] ?? assert.fail()
    assert.equal(asked?.caller.user, 'vera')
    const said = Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== undefined))
    assert.deepEqual(said, {
      event: 'tool_call',
      wallMs: clock.wallMs(),
      tool: 'pay',
      tool_call_id: 'call-1',
      chat_id: 'c',
      user_id: 'vera',
      session_id: 's',
      tenant: 'acme',
      agent: 'bot',
      policy_revision: 2,
      in_force: entries[1]?.in_force,
      catalog_revision: 1,
      input: { amount: 1 },
    })
    assert.match(entries[0]?.in_force?.hash ?? '', /^[0-9a-f]{64}$/)
    assert.equal(entries[1]?.duration_ms, 0)
  })

  it('with the run that it belongs to, in the memory of a process and in chained text', async () => {
    const audit = memoryAudit()
    const gate = createGate({ tools: [defineTool({ name: 'pay', execute: () => 'paid' })], audit })
    const run = { id: 'r1', step: 2, model: 'm', app: 'shop' }
    await (await gate.view(VERA)).call({ tool: 'pay', run })
    for (const { run_id, step, model, app } of audit.records)
      assert.deepEqual([run_id, step, model, app], ['r1', 2, 'm', 'shop'])
    const text = createSealer().seal({ event: 'tool_call', wallMs: 0, policy_revision: 1, catalog_revision: 1, run })
    assert.match(text, /"model":"m",.*"run_id":"r1",.*"step":2/)
  })

  it('with the limit and its rest', async () => {
    const { call, entries } = setup({ limits: 'pay:1/60' })
    await call()
    await call()
    assert.deepEqual(
      [entries.at(-1)?.limit, entries.at(-1)?.reset_ms, entries.at(-1)?.detail],
      ['1/60', 60_000, 'the limit pay:1/60 is used up'],
    )
  })
})

describe('a limit', () => {
  it('is not charged for calls that are refused', async () => {
    const { call, clock } = setup({ limits: 'pay:2/60' })
    for (let i = 0; i < 10; i++) await call({ input: { bad: true } })
    assert.equal((await call()).status, 'done')
    clock.advance(59_999)
    assert.equal((await call()).status, 'done')
    assert.equal((await call()).text, 'TOOL_CALL_BLOCKED: rate limited (2/60). Try again in 1 s.')
    clock.advance(1)
    assert.equal((await call()).status, 'done')
  })

  it('is charged for a call that fails', async () => {
    const { call } = setup({ limits: 'pay:1/60', execute: () => Promise.reject(new Error('x')) })
    assert.equal((await call()).status, 'failed')
    assert.equal((await call()).status, 'refused')
  })

  it('gives back its own slot, and not that of a call that came later', async () => {
    const world = setup()
    const written: PromiseWithResolvers<void>[] = []
    const slow: AuditSink = {
      ...world.ports.audit,
      write(entry) {
        if (entry.event !== 'tool_call') return undefined
        const one = Promise.withResolvers<void>()
        written.push(one)
        return one.promise
      },
    }
    const { call, clock } = setup({ limits: 'pay:2/60', audit: slow })
    const first = call()
    await turn()
    clock.advance(30_000)
    const second = call()
    await turn()
    written[0]?.reject(new Error('disk full'))
    assert.equal((await first).status, 'refused')
    written[1]?.resolve()
    assert.equal((await second).status, 'done')
    clock.advance(30_000)
    const again = [call(), call()]
    await turn()
    for (const one of written) one.resolve()
    assert.deepEqual(
      (await Promise.all(again)).map(({ status }) => status),
      ['done', 'refused'],
      'the second call is half a minute old, and still counts',
    )
  })
})

describe('an approval', () => {
  it('is good for one call of the same tool with the same input by the same user', async () => {
    const { call, gate } = setup(ASK)
    const input = { amount: 1, to: 'omar' }
    const waiting = await call({ input })
    assert.ok(waiting.status === 'waiting')
    await gate.approvals.decide(VERA, waiting.approval.id, { decision: 'approve' })
    assert.equal((await call({ input: { amount: 2, to: 'omar' } })).status, 'waiting')
    assert.equal((await (await gate.view({ ...VERA, user: 'omar' })).call({ tool: 'pay', input })).status, 'waiting')
    assert.equal((await call({ input: { to: 'omar', amount: 1 } })).status, 'done')
    assert.equal((await call({ input })).status, 'waiting')
  })

  it('is good for one of two calls at once', async () => {
    const { call, gate } = setup(ASK)
    const waiting = await call()
    assert.ok(waiting.status === 'waiting')
    await gate.approvals.decide(VERA, waiting.approval.id, { decision: 'approve' })
    const [one, other] = await Promise.all([call(), call()])
    assert.deepEqual([one.status, other.status], ['done', 'refused'])
    assert.equal(other.text, 'TOOL_CALL_BLOCKED: its approval is no longer valid; call again to ask for one')
  })

  it('that was rejected refuses with the reason', async () => {
    const { call, gate, log } = setup(ASK)
    const waiting = await call()
    assert.ok(waiting.status === 'waiting')
    await gate.approvals.decide(VERA, waiting.approval.id, { decision: 'reject', reason: 'too much' })
    assert.equal((await call()).text, 'TOOL_CALL_BLOCKED: a person rejected this call: too much')
    assert.ok(!log.includes('execute'))
  })

  it('that was revoked refuses with the reason', async () => {
    const audit = memoryAudit()
    const { call, gate, log } = setup({ ...ASK, audit })
    const waiting = await call()
    assert.ok(waiting.status === 'waiting')
    await gate.approvals.decide(VERA, waiting.approval.id, { decision: 'approve' })
    const revoked = await gate.approvals.decide(VERA, waiting.approval.id, { decision: 'revoke', reason: 'wrong one' })
    assert.equal(revoked.status, 'revoked')
    assert.equal((await call()).text, 'TOOL_CALL_BLOCKED: a person revoked the approval of this call: wrong one')
    const decided = audit.records.filter(({ event }) => event === 'approval_decided')
    assert.deepEqual(
      decided.map(({ detail }) => detail),
      ['approved', 'revoked: wrong one'],
    )
    assert.equal(audit.records.at(-1)?.reason, 'approval_revoked')
    assert.ok(!log.includes('execute'))
  })

  it('cannot be revoked once its call runs', async () => {
    const { call, gate, log } = setup(ASK)
    const waiting = await call()
    assert.ok(waiting.status === 'waiting')
    await gate.approvals.decide(VERA, waiting.approval.id, { decision: 'approve' })
    const running = call()
    await assert.rejects(
      running.then(async () => gate.approvals.decide(VERA, waiting.approval.id, { decision: 'revoke' })),
      { code: 'approval_not_revocable' },
    )
    assert.ok(log.includes('execute'))
  })

  it('says so when too many of its user are pending, which is no fault of a store', async () => {
    const { call, faults, entries } = setup(ASK)
    for (let amount = 0; amount < 100; amount++) await call({ input: { amount } })
    const outcome = await call({ input: { amount: 100 } })
    assert.equal(outcome.status, 'refused')
    assert.match(outcome.text, /^pay is busy: too many approvals are waiting for a person\. Try again later\.$/)
    assert.deepEqual([entries.at(-1)?.reason, faults], ['approvals_full', []])
  })

  it('is recorded with the call that it let pass', async () => {
    const { call, gate, entries } = setup(ASK)
    await call()
    await gate.approvals.decide(VERA, 'id-1', { decision: 'approve' })
    await call()
    assert.deepEqual(
      entries.map(({ event, approval_id }) => [event, approval_id]),
      [
        ['tool_approval_required', 'id-1'],
        ['tool_call', 'id-1'],
        ['tool_result', undefined],
      ],
    )
    assert.equal(entries[1]?.detail, 'approved by vera')
  })
})

describe('failure refuses', () => {
  const failing = (): never => {
    throw new Error('no connection')
  }
  const later = async (): Promise<never> => failing()
  const { counters, approvals } = setup()
  const stores: readonly (readonly [what: string, options: Setup])[] = [
    ['the counters', { limits: 'pay:1/60', counters: { ...counters, take: failing } }],
    ['the counters, later', { limits: 'pay:1/60', counters: { ...counters, take: later } }],
    ['the counters at a peek', { ...ASK, limits: 'pay:1/60', counters: { ...counters, peek: later } }],
    ['the approvals', { ...ASK, approvals: { ...approvals, request: failing } }],
    ['the approvals, later', { ...ASK, approvals: { ...approvals, request: later } }],
    ['the validator', { validateInput: failing }],
  ]
  for (const [what, options] of stores) {
    it(`where ${what} fail: one record, no run, and a fault for the host`, async () => {
      const { call, entries, faults, log } = setup(options)
      const outcome = await call()
      assert.equal(outcome.status, 'refused')
      assert.equal(outcome.text, 'TOOL_CALL_BLOCKED: the gate cannot decide now')
      assert.deepEqual(
        entries.map(({ event, reason }) => [event, reason]),
        [['tool_blocked', 'store_failed']],
      )
      assert.match(String(faults[0]), /no connection/)
      assert.ok(!log.includes('execute'))
    })
  }

  it('where an approval cannot be consumed, and gives the limit back', async () => {
    const shared = memoryApprovals({ randomId: () => 'id-1' })
    const { call, gate, log } = setup({
      ...ASK,
      limits: 'pay:1/60',
      approvals: { ...shared, consume: later },
    })
    await call()
    await gate.approvals.decide(VERA, 'id-1', { decision: 'approve' })
    assert.equal((await call()).text, 'TOOL_CALL_BLOCKED: the gate cannot decide now')
    assert.deepEqual(log.slice(-3), ['take', 'give back limit', 'tool_blocked'])
  })

  const nonsense: readonly (readonly [what: string, options: Setup])[] = [
    ['the counters', { limits: 'pay:1/60', counters: { ...counters, take: () => ({ allowed: 'yes' }) as never } }],
    ['the counters, with nothing', { limits: 'pay:1/60', counters: { ...counters, take: () => undefined as never } }],
    ['the approvals', { ...ASK, approvals: { ...approvals, request: () => ({ status: 'sure' }) as never } }],
  ]
  for (const [what, options] of nonsense) {
    it(`where ${what} answer nonsense`, async () => {
      const { call, log, entries } = setup(options)
      assert.notEqual((await call()).status, 'done')
      assert.ok(!log.includes('execute'))
      assert.equal(entries.length, 1)
    })
  }

  it('where an approval is consumed by nonsense', async () => {
    const shared: ApprovalStore = { ...memoryApprovals({ randomId: () => 'id-1' }), consume: () => 'yes' as never }
    const { call, gate, log } = setup({ ...ASK, approvals: shared })
    await call()
    await gate.approvals.decide(VERA, 'id-1', { decision: 'approve' })
    assert.equal((await call()).status, 'refused')
    assert.ok(!log.includes('execute'))
  })

  const sinks: readonly (readonly [what: string, write: () => MaybePromise<void>])[] = [
    ['throws', failing],
    ['rejects', later],
  ]
  for (const [what, write] of sinks) {
    it(`where the audit ${what}: the tool never ran, limit and approval are given back`, async () => {
      const written: string[] = []
      const audit: AuditSink = {
        ...memoryAudit(),
        write(entry) {
          written.push(entry.event)
          return entry.event === 'tool_call' ? write() : undefined
        },
      }
      const { call, gate, log, faults } = setup({ ...ASK, limits: 'pay:1/60', audit })
      await call()
      await gate.approvals.decide(VERA, 'id-1', { decision: 'approve' })
      const outcome = await call()
      assert.equal(outcome.text, 'TOOL_CALL_BLOCKED: the call cannot be recorded now')
      assert.deepEqual(log.slice(-4), ['take', 'consume', 'give back limit', 'give back approval'])
      assert.deepEqual(written, ['tool_approval_required', 'approval_decided', 'tool_call', 'tool_blocked'])
      assert.match(String(faults[0]), /no connection/)
      assert.equal((await gate.approvals.get('id-1'))?.status, 'approved')
    })
  }

  it('and each store gives back by itself, though the other cannot', async () => {
    const shared = memoryApprovals({ randomId: () => 'id-1' })
    const audit: AuditSink = { ...memoryAudit(), write: ({ event }) => (event === 'tool_call' ? failing() : undefined) }
    const stuck: CounterStore = { ...counters, giveBack: later }
    const { call, gate, faults } = setup({ ...ASK, limits: 'pay:1/60', audit, approvals: shared, counters: stuck })
    await call()
    await gate.approvals.decide(VERA, 'id-1', { decision: 'approve' })
    assert.equal((await call()).status, 'refused')
    assert.equal((await gate.approvals.get('id-1'))?.status, 'approved')
    assert.equal(faults.length, 2)
  })

  it('but an answer stands when its last record cannot be written, and the host gets the fault', async () => {
    for (const write of [failing, later]) {
      const audit: AuditSink = {
        ...memoryAudit(),
        write: ({ event }) => (event === 'tool_result' ? write() : undefined),
      }
      const { call, faults } = setup({ audit })
      assert.equal((await call()).status, 'done')
      assert.match(String(faults[0]), /no connection/)
    }
  })

  it('and a fault listener that throws changes nothing', async () => {
    const audit: AuditSink = { ...memoryAudit(), write: failing }
    const { call } = setup({ audit, onFault: failing })
    assert.equal((await call()).status, 'refused')
  })

  it('nor does a progress listener that throws, whenever the tool reports progress', async () => {
    for (const onProgress of [failing, later]) {
      const { call, faults } = setup({ execute: (_, { onProgress: tell }) => tell?.({ progress: 1 }) })
      assert.equal((await call({ onProgress })).status, 'done')
      await turn()
      assert.match(String(faults[0]), /no connection/)
    }
  })
})

function circle(): object {
  const one: { self?: unknown } = {}
  one.self = one
  return one
}

function full(): CounterStore {
  const answer = { allowed: false, refused: 0, remaining: 0, resetMs: 1 }
  return { peek: () => answer, take: () => answer, giveBack: () => {}, settle: () => {} }
}

function realClock() {
  return { monotonicMs: () => performance.now(), wallMs: () => Date.now() }
}

async function turn(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve))
}
