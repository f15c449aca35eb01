import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { strictest, type Reason, reason } from './decision.ts'
import { messageFor } from './message.ts'

const told = (
  reasons: readonly Reason[],
  { asked = 'x', visible = ['a', 'b'] }: { asked?: string; visible?: string[] } = {},
) =>
  messageFor(strictest(reasons.map((one) => ({ outcome: one.outcome, reasons: [one] }))), {
    asked,
    visible: () => visible,
  })

const NOT_AVAILABLE = 'Tool "x" is not available. Available tools: a, b.'
const denied = (message?: string, order = 0) => reason('policy', 'policy_denied', 'why', { message, order })
const unavailable = reason('availability', 'group_unavailable', 'nothing listens', { suggestion: 'Start it.' })
const inactive = reason('step', 'step_inactive', 'not in the step')
const limited = reason('limits', 'rate_limited', 'used up', { limit: '20/60', resetMs: 13_400 })
const asked = reason('policy', 'policy_ask', 'asks')

describe('toldText', () => {
  const hidden: readonly Reason[] = [
    reason('catalog', 'tool_not_found', 'no such'),
    denied(),
    reason('policy', 'policy_not_allowed', 'why'),
    reason('policy', 'policy_tag_missing', 'why'),
    reason('policy', 'policy_error', 'why'),
    reason('scopes', 'scope_missing', 'why'),
    reason('visibility', 'visibility_hidden', 'why'),
    reason('visibility', 'visibility_error', 'why'),
  ]
  for (const one of hidden) {
    it(`reads ${one.code} like a tool that does not exist`, () => assert.equal(told([one]), NOT_AVAILABLE))
    it(`says nothing else about a tool with ${one.code}`, () => {
      assert.equal(told([asked, limited, unavailable, inactive, one]), NOT_AVAILABLE)
    })
  }

  it('has the messages where every denial has one, in the order of the policies', () => {
    assert.equal(told([denied('Second.', 1), denied('First.', 0)]), 'TOOL_CALL_BLOCKED: First. Second.')
    assert.equal(told([denied('Only.'), unavailable]), 'TOOL_CALL_BLOCKED: Only.')
    assert.equal(told([denied('Once.', 0), denied('Once.', 1)]), 'TOOL_CALL_BLOCKED: Once.')
  })

  it('has no message where one denial has none', () => {
    for (const one of hidden) assert.equal(told([denied('Only.'), one]), NOT_AVAILABLE)
  })

  const blocked: readonly (readonly [Reason, string])[] = [
    [reason('input', 'input_denied', 'why'), 'TOOL_CALL_BLOCKED: this input is not allowed'],
    [reason('input', 'input_denied', 'why', { message: 'Too long.' }), 'TOOL_CALL_BLOCKED: Too long.'],
    [reason('input', 'policy_error', 'why'), 'TOOL_CALL_BLOCKED: this input is not allowed'],
    [
      reason('input', 'input_invalid', 'why', { message: 'invalid input at "/a": must be string' }),
      'TOOL_CALL_BLOCKED: invalid input at "/a": must be string',
    ],
    [
      reason('approval', 'approval_rejected', 'why', { message: 'a person rejected this call: no' }),
      'TOOL_CALL_BLOCKED: a person rejected this call: no',
    ],
    [
      reason('door', 'store_failed', 'why', { message: 'the gate cannot decide now' }),
      'TOOL_CALL_BLOCKED: the gate cannot decide now',
    ],
  ]
  for (const [one, text] of blocked)
    it(`says for ${one.layer} ${one.code}: ${text}`, () => assert.equal(told([one]), text))

  it('names a limit and when it is free again, in whole seconds', () => {
    assert.equal(told([limited]), 'TOOL_CALL_BLOCKED: rate limited (20/60). Try again in 14 s.')
    assert.equal(told([{ ...limited, resetMs: 1 }]), 'TOOL_CALL_BLOCKED: rate limited (20/60). Try again in 1 s.')
    assert.equal(told([{ ...limited, resetMs: 0 }]), 'TOOL_CALL_BLOCKED: rate limited (20/60). Try again in 1 s.')
  })

  it('says why a tool is unavailable and what to do', () => {
    assert.equal(told([unavailable]), 'x is unavailable: nothing listens. Start it.')
    assert.equal(told([{ ...unavailable, suggestion: undefined }]), 'x is unavailable: nothing listens.')
    assert.equal(told([unavailable, asked]), 'x is unavailable: nothing listens. Start it.')
  })

  it('says that a tool is not active in this step, and which are', () => {
    assert.equal(told([inactive, unavailable]), 'x is not active in this step. Available tools: a, b.')
  })

  it('says that a person has to approve', () => {
    assert.equal(told([asked]), 'Waiting for approval of x.')
  })

  it('names at most the twenty nearest tools, or none', () => {
    const visible = Array.from({ length: 30 }, (_, i) => `tool-${i}`)
    assert.equal(told([denied()], { asked: 'tool-29', visible }).match(/tool-\d+/g)?.length, 21)
    assert.match(told([denied()], { asked: 'tool-29', visible }), /Available tools: tool-29, /)
    assert.equal(told([denied()], { visible: [] }), 'Tool "x" is not available. Available tools: (none).')
  })

  it('repeats at most 64 characters of what was asked for, and whole characters', () => {
    assert.equal(
      told([denied()], { asked: 'y'.repeat(1_000_000), visible: [] }),
      `Tool "${'y'.repeat(64)}…" is not available. Available tools: (none).`,
    )
    assert.ok(told([denied()], { asked: `${'y'.repeat(63)}😀` }).isWellFormed())
  })
})
