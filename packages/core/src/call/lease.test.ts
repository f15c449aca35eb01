import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { memoryAudit } from '../audit/memory.ts'
import { createGate } from '../gate/gate.ts'
import type { GateOptions } from '../gate/options.ts'
import { type AuditSink, type ReplicaLease, TERMINAL_EVENTS } from '../ports/ports.ts'
import { defineTool } from '../tools/tool.ts'
import { createEmitter } from '@toolgate/values'

const LAPSE = { text: 'the last answer is 2,100 ms old', message: 'the rules cannot be confirmed now' }

function world(options: Omit<GateOptions, 'tools' | 'lease'> = {}) {
  const ends = createEmitter()
  const state = { holds: true, asked: 0, ran: 0 }
  const lease: ReplicaLease = {
    lapse() {
      state.asked++
      return state.holds ? undefined : LAPSE
    },
    onEnd: (listener) => ends.subscribe(listener),
  }
  const audit = memoryAudit()
  const tools = [
    defineTool({ name: 'read', execute: () => ++state.ran }),
    defineTool({ name: 'slow', execute: () => new Promise(() => {}) }),
  ]
  const gate = createGate({ tools, audit, lease, ...options })
  const records = () =>
    audit.records.flatMap(({ event, reason }) => (TERMINAL_EVENTS.has(event) ? [[event, reason]] : []))
  return { gate, state, ends, audit, records }
}

describe('the lease of a replica', () => {
  it('is asked for each call, and starts none once it has lapsed', async () => {
    const { gate, state, records } = world()
    const view = await gate.view({ user: 'vera' })
    assert.equal((await view.call({ tool: 'read' })).status, 'done')
    state.holds = false
    const refused = await view.call({ tool: 'read' })
    assert.equal(refused.text, 'read is unavailable: the rules cannot be confirmed now.')
    assert.ok(refused.status === 'refused')
    assert.deepEqual(
      [refused.decision.outcome, refused.decision.reasons[0]?.code, refused.decision.reasons[0]?.text],
      ['wait', 'replica_unsure', LAPSE.text],
    )
    state.holds = true
    assert.equal((await view.call({ tool: 'read' })).status, 'done')
    assert.equal(state.ran, 2)
    assert.deepEqual(records(), [
      ['tool_result', undefined],
      ['tool_blocked', 'replica_unsure'],
      ['tool_result', undefined],
    ])
  })

  it('is asked once more after the record was waited for: it may lapse meanwhile, and what was taken is given back', async () => {
    const memory = memoryAudit()
    const written = Promise.withResolvers<void>()
    const audit: AuditSink = {
      ...memory,
      write: (entry) => (entry.event === 'tool_call' ? written.promise : memory.write(entry)),
    }
    const { gate, state } = world({ audit, limits: 'read:1/60' })
    const view = await gate.view({ user: 'vera' })
    const call = view.call({ tool: 'read' })
    await new Promise(setImmediate)
    state.holds = false
    written.resolve()
    const outcome = await call
    assert.ok(outcome.status === 'refused')
    assert.deepEqual([outcome.decision.reasons[0]?.code, state.ran], ['replica_unsure', 0])
    state.holds = true
    assert.equal((await view.call({ tool: 'read' })).status, 'done')
  })

  it('refuses before anything is taken, and nobody is asked to approve', async () => {
    const { gate, state } = world({ policy: { ask: ['read'] } })
    const view = await gate.view({ user: 'vera' })
    state.holds = false
    const outcome = await view.call({ tool: 'read' })
    assert.ok(outcome.status === 'refused')
    assert.deepEqual(await gate.approvals.list({}), [])
  })

  it('ends running and waiting calls when they have had their time, on record with the reason', async () => {
    const { gate, state, ends, records } = world({ concurrency: 'slow:1' })
    const view = await gate.view({ user: 'vera' })
    const running = view.call({ tool: 'slow' })
    const waiting = view.call({ tool: 'slow' })
    await new Promise(setImmediate)
    state.holds = false
    ends.emit()
    assert.equal((await running).text, 'slow failed: this replica lost touch with the others')
    const outcome = await waiting
    assert.ok(outcome.status === 'refused')
    assert.equal(outcome.decision.reasons[0]?.code, 'replica_unsure')
    assert.deepEqual(records().toSorted(), [
      ['tool_abandoned', 'replica_unsure'],
      ['tool_blocked', 'replica_unsure'],
    ])
  })

  it('refuses where it fails, and is left alone by a closed gate', async () => {
    const ends = createEmitter()
    const lease: ReplicaLease = {
      lapse() {
        throw new Error('broken')
      },
      onEnd: (listener) => ends.subscribe(listener),
    }
    const gate = createGate({ tools: [defineTool({ name: 'read', execute: () => 1 })], lease })
    const outcome = await (await gate.view({ user: 'vera' })).call({ tool: 'read' })
    assert.ok(outcome.status === 'refused')
    assert.equal(outcome.decision.reasons[0]?.code, 'store_failed')
    await gate.close()
    assert.equal(ends.size, 0)
  })
})
