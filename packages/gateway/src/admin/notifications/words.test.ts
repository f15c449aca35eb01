import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { messagesOf, whyOf } from './words.ts'

const POLICY = [
  {
    ask: [
      { match: 'pay:*', message: 'Payments need a person.' },
      { match: 'x:*', message: 'Payments' },
    ],
  },
]

describe('whyOf', () => {
  it('returns what authors wrote, without the text of the rule and without values of the input', () => {
    const why =
      'Payments need a person. amount is 150; more than 100 needs a person policy "team" clause 2: input.amount > 100'
    assert.equal(whyOf({ why }, messagesOf({ policy: POLICY })), 'Payments need a person.')
  })

  it('returns every message in its order, and a shorter one inside another only if it stands alone', () => {
    const why = 'Payments policy "a"; Payments need a person. policy "b"'
    assert.equal(whyOf({ why }, messagesOf({ policy: POLICY })), 'Payments Payments need a person.')
  })

  it('returns a text for rules without a message', () => {
    assert.equal(
      whyOf({ why: 'policy "team" clause 1' }, messagesOf({ policy: POLICY })),
      'A rule asks for approval of it.',
    )
    assert.equal(whyOf({}, []), 'A rule asks for approval of it.')
  })
})
