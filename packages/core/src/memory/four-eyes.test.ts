import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createGate } from '../gate/gate.ts'
import type { Caller } from '../ports/caller.ts'
import { defineTool } from '../tools/tool.ts'
import { behindOf, notOther } from './four-eyes.ts'

const OTHER = { by: 'other' } as const
const CHAIN: Caller = { user: 'vera', keyMadeBy: 'runner', makerChain: ['runner', 'ann', 'root'], actor: 'bot' }

describe('behindOf', () => {
  it('has everyone who made a credential and its actor once, and not the user', () => {
    assert.deepEqual(behindOf(CHAIN), { keyMadeBy: 'runner', behind: ['ann', 'bot', 'root'] })
    assert.deepEqual(behindOf({ user: 'ann', makerChain: ['ann'], actor: 'ann' }), {})
    assert.deepEqual(behindOf({ user: 'vera', keyMadeBy: 'ann' }), { keyMadeBy: 'ann' })
  })
})

describe('notOther', () => {
  const approval = { user: 'vera', approver: OTHER, ...behindOf(CHAIN) }

  for (const user of ['vera', 'runner', 'ann', 'root', 'bot', undefined])
    it(`refuses ${user ?? 'nobody'} as the other person`, () => {
      assert.match(notOther(approval, { user }) ?? '', /Another person/)
    })

  it('refuses a person whose credential somebody behind the call has made', () => {
    assert.match(notOther(approval, { user: 'olga', keyMadeBy: 'ann' }) ?? '', /Another person/)
    assert.match(notOther(approval, { user: 'olga', keyMadeBy: 'otto', makerChain: ['otto', 'vera'] }) ?? '', /Another/)
    assert.equal(notOther(approval, { user: 'olga', keyMadeBy: 'otto' }), undefined)
  })

  it('takes anyone where nothing is demanded', () => {
    assert.equal(notOther({ ...approval, approver: { loginMs: 1 } }, { user: 'vera' }), undefined)
  })
})

describe('an approval of a gate', () => {
  const ran: unknown[] = []
  const pay = defineTool({ name: 'pay', execute: (input) => void ran.push(input) })
  const gate = createGate({ tools: [pay], policy: { ask: [{ match: 'pay', by: 'other' }] } })
  const ask = async (caller: Caller) => {
    const outcome = await (await gate.view(caller)).call({ tool: 'pay' })
    assert.equal(outcome.status, 'waiting')
    return outcome.approval.id
  }
  const approve = (user: string, id: string, more: Caller = {}) =>
    gate.approvals.decide({ user, roles: ['approver'], ...more }, id, { decision: 'approve' })
  const isRefused = { code: 'approval_needs_other' }

  it('is refused to everyone behind the call, and allowed to another person', async () => {
    const id = await ask(CHAIN)
    for (const user of ['vera', 'runner', 'ann', 'root', 'bot']) await assert.rejects(approve(user, id), isRefused)
    await assert.rejects(approve('olga', id, { keyMadeBy: 'root' }), isRefused)
    assert.equal((await approve('olga', id)).status, 'approved')
  })

  it('does not let a call run that others stand behind', async () => {
    await approve('olga', await ask({ user: 'nora', keyMadeBy: 'runner' }))
    const outcome = await (
      await gate.view({ user: 'nora', keyMadeBy: 'runner', makerChain: ['runner', 'ann'] })
    ).call({
      tool: 'pay',
    })
    assert.equal(outcome.status, 'waiting')
    assert.deepEqual(ran, [])
  })
})
