import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type Reason, reason } from '../decide/decision.ts'
import type { FactRead } from '../ports/fact-read.ts'
import { coversDemand, demandOf, whyAsked } from './approval-demand.ts'

const TAINTED: FactRead = { kind: 'label', of: 'untrusted', tools: ['web:fetch'] }
const originOf = (origin: FactRead['origin'] & string): FactRead => ({ kind: 'origin', of: 'addressees', origin })
const ask = (clause: string, read?: readonly FactRead[]): Reason =>
  reason('input', 'policy_ask', `policy "p" asks for approval of ${clause}`, {
    policy: 'p',
    clause: { policy: 'p', kind: 'ask', index: 0, match: clause },
    ...(read && { read }),
  })
const covers = (given: readonly Reason[], wanted: readonly Reason[]) => coversDemand(demandOf(given), demandOf(wanted))

describe('what an approval is for', () => {
  it('is nothing but the input, where no clause that asks reads the run', () => {
    assert.deepEqual(demandOf([ask('a'), ask('b')]), { approver: undefined })
  })

  it('is the clauses that ask, and what they read', () => {
    assert.deepEqual(demandOf([ask('b'), ask('a', [TAINTED, originOf('unknown')])]).asked, [
      'clause p, a',
      'clause p, b',
      'label untrusted',
      'origin addressees unknown',
    ])
  })

  it('does not cover another clause, or another label', () => {
    assert.equal(covers([ask('a', [TAINTED])], [ask('a', [TAINTED])]), true)
    assert.equal(covers([ask('a', [TAINTED])], [ask('a', [TAINTED]), ask('b')]), false)
    assert.equal(covers([ask('a')], [ask('a', [TAINTED])]), false)
    assert.equal(covers([ask('a', [TAINTED])], [ask('a', [TAINTED, { ...TAINTED, of: 'private' }])]), false)
    assert.equal(coversDemand(undefined, demandOf([ask('a', [TAINTED])])), false)
  })

  it('covers what has become better, and not what has become worse', () => {
    const better = [ask('a', [originOf('unknown')])]
    const worse = [ask('a', [originOf('untrusted')])]
    assert.equal(covers(worse, better), true)
    assert.equal(covers(better, worse), false)
    assert.equal(covers([ask('a', [TAINTED, originOf('unknown')])], better), true)
  })

  it('covers a known run only where the person saw what it has done', () => {
    const unknown: Reason = { ...ask('a'), code: 'history_unknown' }
    assert.equal(covers([ask('a', [TAINTED])], [unknown]), false)
    assert.equal(covers([unknown], [ask('a', [TAINTED])]), false)
  })

  it('does not cover an approver of a weaker rule', () => {
    const strict: Reason = { ...ask('a', [TAINTED]), approver: { by: 'other' } }
    assert.equal(covers([ask('a', [TAINTED])], [strict]), false)
    assert.equal(covers([strict], [ask('a', [TAINTED])]), true)
  })
})

describe('whyAsked', () => {
  it('begins with the message of the clause, and names what was read', () => {
    assert.equal(
      whyAsked({ ...ask('a', [TAINTED]), message: 'Look at the address.' }),
      'Look at the address. This run has read web:fetch, whose output is untrusted. policy "p" asks for approval of a',
    )
    assert.equal(whyAsked(ask('a')), 'policy "p" asks for approval of a')
  })
})
