import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createHeldRejections, type HeldRejections } from './held-rejections.ts'
import type { Approval } from './wire.ts'

describe('held rejections', () => {
  it('are sent after the time to undo them, once', () => {
    const { held, sent, pass } = make()
    held.hold(request('a'), 'odd')
    held.hold(request('a'), 'twice')
    assert.deepEqual([...held.current.keys()], ['a'])
    assert.equal(held.current.get('a')?.sentAtMs, 1005)
    assert.deepEqual(sent, [])
    pass()
    assert.deepEqual(sent, [['a', 'odd']])
    assert.equal(held.current.size, 0)
    held.sendAll()
    assert.equal(sent.length, 1)
  })

  it('are never sent once undone', () => {
    const { held, sent, pass } = make()
    held.hold(request('a'), '')
    held.undo('a')
    held.undo('a')
    assert.equal(held.current.size, 0)
    pass()
    held.sendAll()
    assert.deepEqual(sent, [])
  })

  it('are all sent at once when the page goes', () => {
    const { held, sent, pass } = make()
    held.hold(request('a'), '')
    held.hold(request('b'), '')
    held.sendAll()
    pass()
    assert.deepEqual(
      sent.map(([id]) => id),
      ['a', 'b'],
    )
  })
})

function make(): { held: HeldRejections; sent: string[][]; pass: () => void } {
  const sent: string[][] = []
  const due = new Set<() => void>()
  const held = createHeldRejections({
    holdMs: 5,
    nowMs: () => 1000,
    send: ({ approval, reason }) => sent.push([approval.id, reason]),
    later(work) {
      due.add(work)
      return () => due.delete(work)
    },
  })
  return { held, sent, pass: () => due.forEach((work) => work()) }
}

function request(id: string): Approval {
  return {
    id,
    requestedAt: 1,
    status: 'pending',
    tool: 'files:write_file',
    user: 'viewer',
    tenant: undefined,
    run: undefined,
    definitionHash: 'd',
    inputHash: 'i',
    input: {},
    expiresAt: 60_000,
  }
}
