import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { memoryAudit } from '../audit/memory.ts'
import { createGate } from '../gate/gate.ts'
import type { GateOptions } from '../gate/options.ts'
import type { AuditSink } from '../ports/ports.ts'
import { defineTool } from '../tools/tool.ts'

function world(limits: NonNullable<GateOptions['limits']> = 'run:2/60', options: Partial<GateOptions> = {}) {
  const state = { ran: 0 }
  const tools = [
    defineTool({ name: 'run', execute: () => ++state.ran }),
    defineTool({ name: 'other', execute: () => 1 }),
  ]
  const gate = createGate({ tools, limits, ...options })
  return { gate, state }
}

describe('the idempotency key of a call', () => {
  it('has the limits taken once, however often the host makes the call', async () => {
    const { gate, state } = world()
    const view = await gate.view({ user: 'vera' })
    for (let i = 0; i < 5; i++)
      assert.equal((await view.call({ tool: 'run', idempotencyKey: 'step-1' })).status, 'done')
    assert.equal((await view.call({ tool: 'run' })).status, 'done')
    const full = await view.call({ tool: 'run', idempotencyKey: 'step-2' })
    assert.equal(full.text, 'TOOL_CALL_BLOCKED: rate limited (2/60). Try again in 60 s.')
    assert.equal((await view.call({ tool: 'run', idempotencyKey: 'step-1' })).status, 'done')
    assert.equal(state.ran, 7)
  })

  it('is of one user and one tool', async () => {
    const { gate } = world([{ match: '*', max: 2, windowMs: 60_000, per: [] }])
    const call = async (user: string, tool: string, tenant?: string) => {
      const view = await gate.view({ user, ...(tenant !== undefined && { tenant }) })
      return (await view.call({ tool, idempotencyKey: 'key' })).status
    }
    assert.equal(await call('vera', 'run'), 'done')
    assert.equal(await call('vera', 'run'), 'done')
    assert.equal(await call('ada', 'run'), 'done')
    assert.equal(await call('ada', 'other'), 'refused')
    assert.equal(await call('vera', 'run', 'acme'), 'refused')
  })

  it('is free again where the call did not go ahead, and a repetition that does not leaves what was taken', async () => {
    const memory = memoryAudit()
    let fails = true
    const write: AuditSink['write'] = (entry) => {
      if (fails && entry.event === 'tool_call') throw new Error('the disk is full')
      return memory.write(entry)
    }
    const { gate } = world('run:1/60', { audit: { ...memory, write }, onFault: () => {} })
    const view = await gate.view({ user: 'vera' })
    const call = async (idempotencyKey?: string) => (await view.call({ tool: 'run', idempotencyKey })).status
    assert.equal(await call('step'), 'refused')
    fails = false
    assert.equal(await call('step'), 'done')
    fails = true
    assert.equal(await call('step'), 'refused')
    fails = false
    assert.equal(await call(), 'refused')
    assert.equal(await call('step'), 'done')
  })

  it('spends no approval a second time', async () => {
    const { gate } = world('run:9/60', { policy: { ask: ['run'] } })
    const view = await gate.view({ user: 'vera' })
    const key = { tool: 'run', idempotencyKey: 'step' } as const
    const asked = await view.call(key)
    assert.ok(asked.status === 'waiting')
    await gate.approvals.decide({ user: 'vera' }, asked.approval.id, { decision: 'approve' })
    assert.equal((await view.call(key)).status, 'done')
    assert.equal((await view.call(key)).status, 'waiting')
  })

  it('is a text that is not empty', async () => {
    const view = await world().gate.view({ user: 'vera' })
    for (const wrong of ['', 5, null])
      await assert.rejects(view.call({ tool: 'run', idempotencyKey: wrong as string }), {
        message: 'call.idempotencyKey: must be a text that is not empty',
      })
  })
})
