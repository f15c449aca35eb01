import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { memoryAudit } from '../audit/memory.ts'
import { createGate } from '../gate/gate.ts'
import type { GateOptions } from '../gate/options.ts'
import type { Telemetry } from '../ports/ports.ts'
import { defineTool } from '../tools/tool.ts'

const VERA = { user: 'vera' }

function setUp(options: GateOptions = {}) {
  const ran: unknown[] = []
  const audit = memoryAudit()
  const run = (input: unknown) => {
    ran.push(input)
    return 'ok'
  }
  const tools = ['pay', 'read'].map((name) => defineTool({ name, execute: run }))
  const policy = { ask: [{ match: 'pay', input: 'input.amount > 10' }] }
  const gate = createGate({ tools, policy, audit, limits: 'pay:1/60', ...options })
  const ask = async (tool: string, input: unknown) =>
    (await gate.view(VERA)).requestApproval({ tool, input, callId: 'c' })
  const call = async (tool: string, input: unknown) => (await gate.view(VERA)).call({ tool, input, callId: 'c' })
  const approve = async () => {
    for (const { id } of await gate.approvals.list({ status: 'pending' }))
      await gate.approvals.decide(VERA, id, { decision: 'approve' })
  }
  const events = () => audit.records.map(({ event }) => event).filter((event) => event !== 'approval_decided')
  return { gate, ran, ask, call, approve, events }
}

describe('view.requestApproval', () => {
  it('asks a person, and runs nothing', async () => {
    const { gate, ask, ran, events } = setUp()
    const asked = await ask('pay', { amount: 20 })
    assert.equal(asked?.status, 'waiting')
    assert.equal(asked.text, 'Waiting for approval of pay.')
    assert.deepEqual(
      (await gate.approvals.list({ status: 'pending' })).map(({ id }) => id),
      [asked.approval.id],
    )
    assert.deepEqual([ran, events()], [[], ['tool_approval_required']])
  })

  it('asks the hooks too, and tells them that the call itself comes after', async () => {
    const seen: boolean[] = []
    const { ask, call, approve } = setUp({ hooks: { beforeToolCall: ({ onlyAsks }) => void seen.push(onlyAsks) } })
    await ask('pay', { amount: 20 })
    await approve()
    assert.equal(await ask('pay', { amount: 20 }), undefined)
    assert.equal((await call('pay', { amount: 20 })).status, 'done')
    assert.deepEqual(seen, [true, true, false])
  })

  for (const [what, tool, input] of [
    ['a call that policy lets run by itself', 'read', {}],
    ['an input that needs nobody', 'pay', { amount: 5 }],
    ['a tool that there is not', 'no', {}],
    ['an input that is no JSON', 'pay', { amount: Number.NaN }],
  ] as const) {
    it(`has nothing to ask for ${what}, and leaves no record`, async () => {
      const { ask, ran, events } = setUp()
      assert.equal(await ask(tool, input), undefined)
      assert.deepEqual([ran, events()], [[], []])
    })
  }

  it('has nothing to ask once a person has said yes; the call then runs, once', async () => {
    const { ask, call, approve, ran, events } = setUp()
    await ask('pay', { amount: 20 })
    await approve()
    assert.equal(await ask('pay', { amount: 20 }), undefined)
    assert.deepEqual(ran, [])
    assert.equal((await call('pay', { amount: 20 })).status, 'done')
    assert.deepEqual(events(), ['tool_approval_required', 'tool_call', 'tool_result'])
    assert.equal((await ask('pay', { amount: 20 }))?.status, 'refused', 'the limit is used up')
    assert.equal(ran.length, 1)
  })

  it('takes no place of a cap and no use of a limit', async () => {
    const { ask, call, approve } = setUp({ concurrency: 'pay:1' })
    await ask('pay', { amount: 20 })
    await approve()
    for (let i = 0; i < 3; i++) assert.equal(await ask('pay', { amount: 20 }), undefined)
    assert.equal((await call('pay', { amount: 20 })).status, 'done')
  })

  it('asks the hooks first, and a refusal of theirs is the answer, with its record', async () => {
    const { ask, events } = setUp({ hooks: { beforeToolCall: () => ({ allow: false, reason: 'not today' }) } })
    const asked = await ask('pay', { amount: 20 })
    assert.equal(asked?.status, 'refused')
    assert.equal(asked.text, 'TOOL_CALL_BLOCKED: not today')
    assert.deepEqual(events(), ['tool_blocked'])
  })

  it('leaves the gate free to close', async () => {
    const { gate, ask, approve } = setUp()
    await ask('pay', { amount: 20 })
    await approve()
    await ask('pay', { amount: 20 })
    await gate.close()
  })

  it('binds to the run, unless the run says that approvals hold for any', async () => {
    const { gate, approve } = setUp()
    const view = await gate.view(VERA)
    const input = { amount: 20 }
    for (const bindsApprovals of [true, false]) {
      const first = { id: `first-${bindsApprovals}`, bindsApprovals }
      await view.requestApproval({ tool: 'pay', input, run: first })
      await approve()
      const next = { id: `next-${bindsApprovals}`, bindsApprovals }
      const asked = await view.requestApproval({ tool: 'pay', input, run: next })
      assert.equal(asked?.status, bindsApprovals ? 'waiting' : undefined)
    }
  })

  it('is traced where it was an attempt: one that has nothing to ask ends no call', async () => {
    const ends: string[] = []
    const telemetry: Telemetry = {
      startCall: () => ({ traceId: 'trace', within: (work) => work(), end: ({ status }) => void ends.push(status) }),
    }
    const { gate, ask, call, approve } = setUp({ telemetry })
    await ask('pay', { amount: 20 })
    assert.deepEqual(ends, ['waiting'])
    await approve()
    await ask('pay', { amount: 20 })
    assert.deepEqual(ends, ['waiting'])
    await call('pay', { amount: 20 })
    assert.deepEqual(ends, ['waiting', 'done'])
    await ask('pay', { amount: 20 })
    assert.deepEqual(ends, ['waiting', 'done', 'refused'])
    await gate.close()
  })

  it('writes the trace into its record', async () => {
    const audit = memoryAudit()
    const telemetry: Telemetry = { startCall: () => ({ traceId: 'trace', within: (work) => work(), end() {} }) }
    const { ask } = setUp({ telemetry, audit })
    await ask('pay', { amount: 20 })
    assert.equal(audit.records[0]?.trace_id, 'trace')
  })

  it('rejects what only a host gives and cannot be used, as a call does, also where there is nothing to ask', async () => {
    const view = await setUp().gate.view(VERA)
    for (const request of [
      undefined,
      null,
      'pay',
      { tool: 'read', signal: {} },
      { tool: 'read', deadlineMs: Number.NaN },
    ]) {
      await assert.rejects(view.requestApproval(request as never), { code: 'config_invalid' })
      await assert.rejects(view.call(request as never), { code: 'config_invalid' })
    }
  })

  it('runs a call once, however many ask and call at once', async () => {
    const { gate, approve, ran } = setUp({ limits: 'pay:100/60' })
    const view = await gate.view(VERA)
    const request = { tool: 'pay', input: { amount: 20 } }
    const asked = await Promise.all(Array.from({ length: 100 }, () => view.requestApproval(request)))
    assert.equal(new Set(asked.map((one) => one?.status === 'waiting' && one.approval.id)).size, 1)
    await approve()
    const outcomes = await Promise.all(
      Array.from({ length: 100 }, (_, i) => (i % 2 === 0 ? view.requestApproval(request) : view.call(request))),
    )
    assert.equal(ran.length, 1)
    assert.equal(outcomes.filter((one) => one?.status === 'done').length, 1)
    await gate.close()
  })
})

describe('the context of a call', () => {
  it('reaches the tool as the host gave it', async () => {
    const context = { messages: [] }
    let seen: unknown
    const tool = defineTool({ name: 'look', execute: (_: unknown, call) => void (seen = call.context) })
    const view = await createGate({ tools: [tool] }).view(VERA)
    await view.call({ tool: 'look', context })
    assert.equal(seen, context)
    await view.call({ tool: 'look' })
    assert.equal(seen, undefined)
  })
})

describe('a call that spends an approval', () => {
  const INPUT = { amount: 20 }
  async function begin() {
    const all = setUp({ limits: 'pay:5/60' })
    const asked = await all.ask('pay', INPUT)
    assert.equal(asked?.status, 'waiting')
    const spend = async (input: unknown = INPUT, tool = 'pay') =>
      (await all.gate.view(VERA)).call({ tool, input, callId: 's', spends: asked.approval.id })
    const pending = async () => (await all.gate.approvals.list({ status: 'pending' })).length
    return { ...all, id: asked.approval.id, spend, pending }
  }
  const codeOf = (outcome: Awaited<ReturnType<Awaited<ReturnType<typeof begin>>['spend']>>) =>
    outcome.status === 'refused' ? outcome.decision.reasons[0]?.code : outcome.status

  it('runs once, and asks nobody again', async () => {
    const { approve, spend, pending, ran } = await begin()
    assert.equal(codeOf(await spend()), 'approval_used', 'nobody has decided')
    await approve()
    const both = await Promise.all([spend(), spend()])
    assert.deepEqual(both.map(codeOf).toSorted(), ['approval_used', 'done'])
    assert.deepEqual([ran, await pending()], [[INPUT], 0])
  })

  it('is refused for another input or tool, also where nobody would be asked', async () => {
    const { approve, spend, ran } = await begin()
    await approve()
    assert.equal(codeOf(await spend({ amount: 21 })), 'approval_used')
    assert.equal(codeOf(await spend({ amount: 1 })), 'approval_used')
    assert.equal(codeOf(await spend({}, 'read')), 'approval_used')
    assert.deepEqual(ran, [])
  })

  it('stays rejected, whatever the policy says since', async () => {
    const { gate, id, spend, ran } = await begin()
    await gate.approvals.decide(VERA, id, { decision: 'reject' })
    gate.setPolicy([{ allow: ['pay'] }])
    assert.equal(codeOf(await spend()), 'approval_rejected')
    assert.deepEqual(ran, [])
  })

  it('is refused when the policy has come to want another person', async () => {
    const { gate, approve, spend, pending } = await begin()
    await approve()
    gate.setPolicy([{ ask: [{ match: 'pay', by: 'other' }] }])
    assert.equal(codeOf(await spend()), 'approval_required')
    assert.equal(await pending(), 0)
  })
})

describe('a call that spends any approval there is', () => {
  function begin() {
    const all = setUp({ limits: 'pay:5/60' })
    const spend = async (input: unknown = { amount: 20 }, user = 'vera') =>
      (await all.gate.view({ user })).call({ tool: 'pay', input, callId: 's', spends: true })
    const statuses = async () => (await all.gate.approvals.list()).map(({ status }) => status)
    return { ...all, spend, statuses }
  }

  it('asks nobody: without one it is refused, however often it is made', async () => {
    const { spend, statuses, ran, events } = begin()
    for (let time = 1; time <= 3; time++) {
      const { status, text } = await spend()
      assert.equal(status, 'refused')
      assert.equal(text, 'TOOL_CALL_BLOCKED: its approval is no longer valid; call again to ask for one')
    }
    assert.deepEqual([await statuses(), ran], [[], []])
    assert.deepEqual(events(), ['tool_blocked', 'tool_blocked', 'tool_blocked'])
  })

  it('waits for one that waits, and runs once when it is approved', async () => {
    const { ask, approve, spend, statuses, ran } = begin()
    await ask('pay', { amount: 20 })
    assert.equal((await spend()).status, 'waiting')
    assert.equal((await spend({ amount: 21 })).status, 'refused')
    await approve()
    assert.equal((await spend(undefined, 'bob')).status, 'refused')
    assert.equal((await spend()).status, 'done')
    assert.equal((await spend()).status, 'refused')
    assert.deepEqual(ran, [{ amount: 20 }])
    assert.deepEqual(await statuses(), ['consumed'])
  })

  it('runs without one where nobody has to be asked', async () => {
    const { spend, ran } = begin()
    assert.equal((await spend({ amount: 1 })).status, 'done')
    assert.deepEqual(ran, [{ amount: 1 }])
  })
})
