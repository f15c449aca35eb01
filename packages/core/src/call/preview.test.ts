import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { memoryAudit } from '../audit/memory.ts'
import { createGate } from '../gate/gate.ts'
import type { GateOptions } from '../gate/options.ts'
import { memoryCounters } from '../memory/counters.ts'
import type { CounterStore } from '../ports/ports.ts'
import { systemClock } from '../memory/clock.ts'
import { defineTool } from '../tools/tool.ts'

const VERA = { user: 'vera', roles: ['clerk'] }
const AMOUNT = { type: 'object', properties: { amount: { type: 'number' } } } as const

function setUp(options: GateOptions = {}) {
  const ran: unknown[] = []
  const audit = memoryAudit()
  const execute = (input: unknown) => {
    ran.push(input)
    return 'ok'
  }
  const named = (name: string) => defineTool({ name, execute, inputSchema: AMOUNT })
  const tools = [...['pay', 'read', 'drop', 'hidden'].map(named), defineTool({ name: 'elsewhere' })]
  const policy = {
    deny: ['hidden', { match: 'read', input: 'input.amount > 5', message: 'Less.' }],
    ask: [{ match: 'pay', input: 'input.amount > 10' }],
  }
  const gate = createGate({ tools, policy, audit, limits: 'pay:1/60', ...options })
  const view = () => gate.view(VERA)
  return { gate, view, ran, audit }
}

describe('view.preview', () => {
  const table = [
    ['runs', 'read', { amount: 1 }, 'allow'],
    ['asks a person', 'pay', { amount: 20 }, 'ask'],
    ['needs nobody with this input', 'pay', { amount: 2 }, 'allow'],
    ['is hidden', 'hidden', {}, 'refused'],
    ['does not exist', 'nothing', {}, 'refused'],
    ['is denied for its input', 'read', { amount: 6 }, 'refused'],
    ['has an input that does not fit', 'read', { amount: 'six' }, 'refused'],
    ['has an input that is no JSON', 'read', { amount: Number.NaN }, 'refused'],
    ['is executed elsewhere', 'elsewhere', {}, 'refused'],
  ] as const
  for (const [what, tool, input, status] of table) {
    it(`says what a call gets that ${what}: ${status}, in the words of the call`, async () => {
      const { view, ran, audit } = setUp()
      const previewed = await (await view()).preview({ tool, input })
      assert.deepEqual([previewed.status, ran, audit.records], [status, [], []])
      const called = await (await view()).call({ tool, input })
      assert.equal(called.status, { allow: 'done', ask: 'waiting', refused: 'refused' }[status])
      if (previewed.status === 'refused') assert.equal(previewed.text, called.status === 'refused' && called.text)
    })
  }

  it('takes no limit, and tells of one that is used up', async () => {
    const { view } = setUp()
    for (let i = 0; i < 3; i++)
      assert.equal((await (await view()).preview({ tool: 'pay', input: { amount: 1 } })).status, 'allow')
    assert.equal((await (await view()).call({ tool: 'pay', input: { amount: 1 } })).status, 'done')
    const after = await (await view()).preview({ tool: 'pay', input: { amount: 1 } })
    assert.match(after.status === 'refused' ? after.text : '', /rate limited \(1\/60\)/)
  })

  it('is decided as things are today', async () => {
    const { gate, view } = setUp()
    const before = await view()
    await gate.halt({ tool: 'read', by: 'ada', reason: 'an incident' })
    assert.equal((await before.preview({ tool: 'read' })).status, 'refused')
  })

  it('refuses where a store fails', async () => {
    const faults: unknown[] = []
    const broken: CounterStore = {
      ...memoryCounters({ clock: systemClock }),
      peek: () => {
        throw new Error('gone')
      },
    }
    const { view } = setUp({ counters: broken, onFault: (error) => void faults.push(error) })
    const previewed = await (await view()).preview({ tool: 'pay', input: { amount: 1 } })
    assert.equal(previewed.status === 'refused' && previewed.decision.reasons[0]?.code, 'store_failed')
    assert.equal(faults.length, 1)
  })

  it('asks no hook and no person, and ends with the gate open', async () => {
    const asked: string[] = []
    const { gate, view } = setUp({ hooks: { beforeToolCall: () => void asked.push('hook') } })
    await (await view()).preview({ tool: 'pay', input: { amount: 20 } })
    assert.deepEqual([asked, await gate.approvals.list({ status: 'pending' })], [[], []])
    await gate.idle()
  })
})
