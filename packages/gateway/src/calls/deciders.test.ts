import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type Approval, createGate } from '@toolgate/core'
import type { CallerConfig } from '../config/config.ts'
import { whoDecides } from './deciders.ts'

const { approvals } = createGate({})
const APPROVAL = { id: 'a1', user: 'vera', tenant: 'acme' } as Approval
const publicUrl = 'https://tools.example.com'

function approver(user: string, tenant = 'acme', use: CallerConfig['for'] = 'console'): CallerConfig {
  return { keyHash: Buffer.from(user), for: use, caller: { user, tenant, roles: ['approver'] } }
}

describe('whoDecides', () => {
  it('names people who may decide, and the page', () => {
    assert.equal(
      whoDecides(APPROVAL, { approvals, callers: [approver('ada')], publicUrl }),
      'ada or somebody with the role approver can decide at https://tools.example.com/approvals/a1.',
    )
  })

  it('names nobody of another tenant, and no agent', () => {
    const callers = [approver('eve', 'globex'), approver('bot', 'acme', 'mcp')]
    assert.equal(
      whoDecides(APPROVAL, { approvals, callers, publicUrl: undefined }),
      'Somebody with the role approver can decide.',
    )
  })

  it('names three people at most, each on one line', () => {
    const callers = ['a\nb', 'c'.repeat(100), 'd', 'e'].map((user) => approver(user))
    assert.equal(
      whoDecides(APPROVAL, { approvals, callers, publicUrl: undefined }),
      `a b, ${'c'.repeat(64)}…, d or somebody with the role approver can decide.`,
    )
  })

  it('names another person than the one who asked where the rule demands one', () => {
    const asked: Approval = { ...APPROVAL, approver: { by: 'other' } }
    const callers = [approver('vera'), approver('ada')]
    assert.equal(
      whoDecides(asked, { approvals, callers, publicUrl: undefined }),
      'ada or another person with the role approver can decide.',
    )
  })
})
