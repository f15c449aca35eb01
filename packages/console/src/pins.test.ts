import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { notesOf, wordsOfNote } from './pins.ts'
import type { PinRow } from './wire.ts'

const PIN: PinRow = { tool: 'files:read', status: 'pinned', hash: 'h', findings: [], quarantined: false }
const FINDING: PinRow['findings'][number] = { code: 'invisible', pointer: '/title', text: '/title holds U+200B' }

describe('notesOf', () => {
  it('says that a definition changed, and that it holds what nobody sees', () => {
    assert.deepEqual(notesOf(PIN), [])
    assert.deepEqual(notesOf({ ...PIN, status: 'changed' }), ['changed'])
    assert.deepEqual(notesOf({ ...PIN, findings: [FINDING] }), ['flagged'])
    assert.deepEqual(notesOf({ ...PIN, status: 'changed', findings: [FINDING] }), ['changed', 'flagged'])
  })

  it('says nothing of what a person has accepted, until it changes again', () => {
    assert.deepEqual(notesOf({ ...PIN, by: 'olga', findings: [FINDING] }), [])
    assert.deepEqual(notesOf({ ...PIN, by: 'olga', status: 'suspended', findings: [FINDING] }), ['flagged'])
  })
})

describe('wordsOfNote', () => {
  it('says what changed and what was found', () => {
    const diff = { changes: [{ pointer: '/title', kind: 'added' as const, text: '"Read"' }], more: 2, text: '' }
    assert.equal(wordsOfNote('changed', { ...PIN, diff }), '/title: "Read"; 2 more')
    const hostile = { ...FINDING, text: 'a\u202eb' }
    assert.equal(wordsOfNote('flagged', { ...PIN, findings: [hostile] }), 'aU+202Eb')
  })
})
