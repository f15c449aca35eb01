import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { stateOfGroup, stateOfTool, notesOf, pinOf, wordsOfNote } from './states.ts'
import type { GroupRow, Reason, PinRow } from './wire.ts'

describe('stateOfGroup', () => {
  it('is the badge that the gateway sends', () => {
    assert.equal(stateOfGroup(group({ badge: 'unknown', available: false })), 'unknown')
    assert.equal(stateOfGroup(group({ badge: 'locked' })), 'locked')
  })

  it('is derived if the gateway sends none', () => {
    assert.equal(stateOfGroup(group({ visibility: 'always' })), 'always')
    assert.equal(stateOfGroup(group({})), 'available')
    assert.equal(stateOfGroup(group({ available: false })), 'unavailable')
    assert.equal(stateOfGroup(group({ visibility: 'always', available: false })), 'unavailable')
  })
})

describe('stateOfTool', () => {
  it('is the most serious state besides the policy', () => {
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

const PIN: PinRow = { tool: 'files:read', status: 'pinned', hash: 'h', findings: [], quarantined: false }
const FINDING: PinRow['findings'][number] = { code: 'invisible', pointer: '/title', text: '/title holds U+200B' }

describe('notesOf', () => {
  it('reports a changed definition, and one with hidden content', () => {
    assert.deepEqual(notesOf(PIN), [])
    assert.deepEqual(notesOf({ ...PIN, status: 'changed' }), ['changed'])
    assert.deepEqual(notesOf({ ...PIN, findings: [FINDING] }), ['flagged'])
    assert.deepEqual(notesOf({ ...PIN, status: 'changed', findings: [FINDING] }), ['changed', 'flagged'])
  })

  it('reports nothing that a person has accepted, until it changes again', () => {
    assert.deepEqual(notesOf({ ...PIN, by: 'olga', findings: [FINDING] }), [])
    assert.deepEqual(notesOf({ ...PIN, by: 'olga', status: 'suspended', findings: [FINDING] }), ['flagged'])
  })
})

describe('pinOf', () => {
  it('returns the pin of the definition that is shown, where users have lists of their own', () => {
    const pins = [PIN, { ...PIN, hash: 'of-otto', users: [{ user: 'otto' }] }]
    assert.equal(pinOf(pins, { id: 'files:read' }), pins[0])
    assert.equal(pinOf(pins, { id: 'files:read', hash: 'of-otto' }), pins[1])
    assert.equal(pinOf(pins, { id: 'files:read', hash: 'of-zoe' }), undefined)
    assert.deepEqual(notesOf({ ...PIN, status: 'differs' }), ['differs'])
  })
})

describe('wordsOfNote', () => {
  it('lists the changes and the findings', () => {
    const diff = { changes: [{ pointer: '/title', kind: 'added' as const, text: '"Read"' }], more: 2, text: '' }
    assert.equal(wordsOfNote('changed', { ...PIN, diff }), '/title: "Read"; 2 more')
    const hostile = { ...FINDING, text: 'a\u202eb' }
    assert.equal(wordsOfNote('flagged', { ...PIN, findings: [hostile] }), 'aU+202Eb')
  })
})
