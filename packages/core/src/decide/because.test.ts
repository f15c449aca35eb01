import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { FactRead } from '../ports/fact-read.ts'
import { reason } from './decision.ts'
import { messageFor } from './message.ts'

const SEEN = new Map([
  ['web:fetch', 'web_fetch'],
  ['fraud:check', 'fraud_check'],
])
const NAMES = { asked: 'mail:send', nameOf: (id: string) => SEEN.get(id), visible: () => [] }
const textOf = (kind: 'deny' | 'ask', read: readonly FactRead[], message?: string) => {
  const why = reason('input', kind === 'deny' ? 'input_denied' : 'policy_ask', 'why', { read, message })
  return messageFor({ outcome: kind, reasons: [why] }, NAMES)
}

describe('a refusal because of what the run has done', () => {
  const cases: readonly (readonly [read: readonly FactRead[], text: string])[] = [
    [
      [{ kind: 'label', of: 'untrusted', tools: ['web:fetch'] }],
      'This run has read web_fetch, whose output is untrusted. Ask the user, or continue without it.',
    ],
    [
      [{ kind: 'label', of: 'private', tools: ['crm:hidden'] }],
      'This run has read something whose output is labelled private. Ask the user, or continue without it.',
    ],
    [
      [
        { kind: 'label', of: 'untrusted', tools: ['crm:hidden', 'web:fetch'] },
        { kind: 'origin', of: 'addressees', origin: 'untrusted' },
      ],
      'This run has read web_fetch, whose output is untrusted, and the addressee may come from untrusted output. Ask the user, or continue without it.',
    ],
    [
      [{ kind: 'called', of: 'fraud:check', fields: ['input.order', 'output.ok'], tools: ['fraud:check'] }],
      'This run has no successful call of fraud_check with this order and the required ok in its result. Make that call first, or ask the user.',
    ],
    [
      [{ kind: 'began', of: 'pay:*', fields: ['input.order'], tools: ['pay:refund'] }],
      'This run has already called it or another tool with this order. Ask the user, or continue without it.',
    ],
    [
      [{ kind: 'origin', of: 'input.to', origin: 'unknown' }],
      'The value of to comes neither from the user nor from a trusted tool. Ask the user, or continue without it.',
    ],
  ]
  for (const [read, text] of cases) {
    it(`reads: ${text}`, () => assert.equal(textOf('deny', read), `TOOL_CALL_BLOCKED: ${text}`))
  }

  it('begins with the message of its author', () => {
    const read: readonly FactRead[] = [{ kind: 'label', of: 'untrusted', tools: ['web:fetch'] }]
    const because = 'This run has read web_fetch, whose output is untrusted.'
    assert.equal(textOf('deny', read, 'No mail now.'), `TOOL_CALL_BLOCKED: No mail now. ${because}`)
    assert.equal(textOf('ask', read, 'Read first.'), `Waiting for approval of mail:send. Read first. ${because}`)
    assert.equal(textOf('ask', read), `Waiting for approval of mail:send. ${because}`)
  })

  it('is not told of a tool that is hidden for another reason', () => {
    const read: readonly FactRead[] = [{ kind: 'label', of: 'untrusted', tools: ['web:fetch'] }]
    const reasons = [reason('input', 'input_denied', 'why', { read }), reason('policy', 'policy_denied', 'hidden')]
    assert.equal(
      messageFor({ outcome: 'deny', reasons }, NAMES),
      'Tool "mail:send" is not available. Available tools: (none).',
    )
  })
})
