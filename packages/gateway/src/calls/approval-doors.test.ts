import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Approval } from '@toolgate/core'
import { createCanceller, createEmitter } from '@toolgate/values'
import type { McpRequest } from './request.ts'
import { DecisionWaits } from './decision-waits.ts'
import { ApprovalDoors, type ApprovalDoorsOptions } from './approval-doors.ts'

function setUp(options: Partial<ApprovalDoorsOptions> = {}) {
  const approval = { id: 'a 1/2', status: 'pending' }
  const notices = createEmitter<[{ readonly event: string; readonly approval: object }]>()
  const gate = {
    approvals: { get: async () => approval as Approval },
    subscribe: notices.subscribe,
  } as unknown as ApprovalDoorsOptions['gate']
  const { isStopping = () => false } = options
  const doors = new ApprovalDoors({
    gate,
    publicUrl: 'https://tools.example.com',
    waits: new DecisionWaits({ gate, isStopping }),
    waitMs: 60_000,
    ...options,
    isStopping,
  })
  const decide = (status: string) => {
    approval.status = status
    notices.emit({ event: 'approval-decided', approval })
  }
  return { approval, doors, decide }
}

describe('waitForDecision', () => {
  it('ends at once when a person decides', async () => {
    const { doors, decide } = setUp()
    const waiting = doors.waitForDecision('a', createCanceller())
    setImmediate(() => decide('rejected'))
    await waiting
  })

  it('ends when the client goes away', async () => {
    const { doors } = setUp()
    const gone = createCanceller()
    const waiting = doors.waitForDecision('a', gone)
    setImmediate(() => gone.abort(new Error('gone')))
    await waiting
  })

  it('ends after a moment without a decision', async () => {
    await setUp({ waitMs: 20 }).doors.waitForDecision('a', createCanceller())
  })

  it('does not wait in a gateway that stops', async () => {
    await setUp({ isStopping: () => true }).doors.waitForDecision('a', createCanceller())
  })

  it('sees the decision of another process', async () => {
    const { approval, doors } = setUp()
    setTimeout(() => (approval.status = 'approved'), 10)
    await doors.waitForDecision('a', createCanceller())
  })
})

describe('urlRequired', () => {
  it('has the client told once that a person is done, also where another process has decided', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const told: unknown[] = []
    const { approval, doors, decide } = setUp({ notify: (...sent) => void told.push(sent) })
    const show = () => {
      const elicitation = doors.elicitationOf(approval as Approval, 'pay')
      assert.ok(elicitation)
      doors.urlRequired(elicitation, { caller: { session: 's1' } } as McpRequest)
    }
    const pass = async () => {
      t.mock.timers.tick(1000)
      await new Promise((resolve) => setImmediate(resolve))
    }
    show()
    await pass()
    assert.deepEqual(told, [])
    approval.status = 'approved'
    await pass()
    const complete = ['s1', 'notifications/elicitation/complete', { elicitationId: 'a 1/2' }]
    assert.deepEqual(told, [complete])
    await pass()
    approval.status = 'pending'
    show()
    decide('rejected')
    await pass()
    assert.deepEqual(told, [complete, complete])
  })
})

describe('elicitationOf', () => {
  it('makes the link from the public URL, and puts nothing but the id into it', () => {
    const { approval, doors } = setUp()
    const { url } = doors.elicitationOf(approval as Approval, 'pay') ?? {}
    assert.equal(url, 'https://tools.example.com/approvals/a%201%2F2')
  })

  it('makes none without a public URL', () => {
    const { approval, doors } = setUp({ publicUrl: undefined })
    assert.equal(doors.elicitationOf(approval as Approval, 'pay'), undefined)
  })
})
