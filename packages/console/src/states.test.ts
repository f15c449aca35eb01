import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { stateOfGroup, stateOfTool } from './states.ts'
import type { GroupRow, Reason } from './wire.ts'

describe('stateOfGroup', () => {
  it('is what the gateway says', () => {
    assert.equal(stateOfGroup(group({ badge: 'unknown', available: false })), 'unknown')
    assert.equal(stateOfGroup(group({ badge: 'locked' })), 'locked')
  })

  it('is concluded where the gateway does not say', () => {
    assert.equal(stateOfGroup(group({ visibility: 'always' })), 'always')
    assert.equal(stateOfGroup(group({})), 'available')
    assert.equal(stateOfGroup(group({ available: false })), 'unavailable')
    assert.equal(stateOfGroup(group({ visibility: 'always', available: false })), 'unavailable')
  })
})

describe('stateOfTool', () => {
  it('is the gravest thing that holds it back besides the policy', () => {
    assert.equal(stateOfTool({ reasons: [reason('policy_denied')] }), undefined)
    assert.equal(stateOfTool({ reasons: [reason('policy_denied'), reason('group_locked')] }), 'locked')
    assert.equal(stateOfTool({ reasons: [reason('group_locked'), reason('group_unavailable')] }), 'unavailable')
    assert.equal(stateOfTool({ reasons: [reason('tool_suspended'), reason('halted')] }), 'halted')
    assert.equal(stateOfTool({ reasons: [reason('tool_quarantined')] }), 'quarantined')
  })
})

function group(more: Partial<GroupRow>): GroupRow {
  return { name: 'web', visibility: 'conditional', available: true, tools: [], ...more }
}

function reason(code: Reason['code']): Reason {
  return { layer: 'policy', code, outcome: 'deny', order: 0, text: '' }
}
