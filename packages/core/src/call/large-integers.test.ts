import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createGate } from '../index.ts'
import { memoryAudit } from '../audit/memory.ts'
import { defineCaller, callerKey } from '../ports/caller.ts'

const ID = 1915883588174806058n

describe('a call with a bigint', () => {
  const setUp = async (policy: object) => {
    const ran: unknown[] = []
    const audit = memoryAudit()
    const inputSchema = { type: 'object', properties: { id: { type: 'integer' } } }
    const execute = async (input: unknown) => {
      ran.push(input)
      return input
    }
    const gate = createGate({
      tools: { remove: { description: 'Removes a record', inputSchema, execute } },
      policy,
      audit,
    })
    return { ran, audit, gate, view: await gate.view({ user: 'ada' }) }
  }

  it('delivers it to the tool, and records its digits', async () => {
    const { ran, audit, view } = await setUp({ allow: ['*'] })
    const done = await view.call({ tool: 'remove', input: { id: ID } })
    assert.equal(done.status, 'done')
    assert.equal(done.text, `{"id":${ID}}`)
    assert.deepEqual(ran, [{ id: ID }])
    const records = audit.query({})
    assert.ok(records.some(({ input_preview: preview }) => preview === `{"id":${ID}}`))
  })

  it('makes a small one the same number, and refuses a rounded number for an integer', async () => {
    const { ran, view } = await setUp({ allow: ['*'] })
    await view.call({ tool: 'remove', input: { id: 5n } })
    assert.deepEqual(ran, [{ id: 5 }])
    const refused = await view.call({ tool: 'remove', input: { id: Number(ID) } })
    assert.equal(refused.status, 'refused')
    assert.match(refused.text, /send it as text/)
  })

  it('runs after an approval of this integer alone, which is shown with its digits', async () => {
    const { ran, gate, view } = await setUp({ allow: ['*'], ask: ['remove'] })
    const waiting = await view.call({ tool: 'remove', input: { id: ID } })
    assert.ok(waiting.status === 'waiting')
    assert.deepEqual(waiting.approval.input, { id: ID })
    await gate.approvals.decide({ user: 'vera', roles: ['approver'] }, waiting.approval.id, { decision: 'approve' })
    assert.equal((await view.call({ tool: 'remove', input: { id: ID + 1n } })).status, 'waiting')
    assert.deepEqual(ran, [])
    assert.equal((await view.call({ tool: 'remove', input: { id: ID } })).status, 'done')
  })

  it('may have a caller whose attributes hold one', () => {
    const key = (account: bigint) => callerKey(defineCaller({ user: 'ada', attributes: { account } }))
    assert.notEqual(key(ID), key(ID + 1n))
  })
})
