import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { toField } from './input-form.ts'
import { changesIn, changesOf, toDraft } from './input-edit.ts'

const FIELD = toField({
  type: 'object',
  required: ['to'],
  properties: {
    to: { type: 'string' },
    amount: { type: 'number' },
    note: { type: 'string' },
    kind: { enum: ['one', 'two'] },
    tags: { type: 'array', items: { type: 'string' } },
    order: { type: 'object', properties: { id: { type: 'integer' }, urgent: { type: 'boolean' } } },
    other: {},
  },
})
const INPUT = {
  to: 'bob',
  amount: 12_345_678_901_234_567_890n,
  kind: 'two',
  tags: ['a'],
  order: { id: 7, urgent: true },
  other: [1],
  unknown: 1,
}
const before = toDraft(FIELD, INPUT)

describe('the change of an input', () => {
  it('is empty while nothing is changed, whatever the input has', () => {
    assert.deepEqual(changesOf(FIELD, { input: INPUT, before, after: before }), { patch: {}, changes: [] })
  })

  it('has the changed fields only, with what they were', () => {
    const after = {
      ...(before as object),
      to: '',
      note: 'hi',
      kind: '0',
      tags: ['a', 'b'],
      order: { id: '8', urgent: 'true' },
      other: '',
    }
    const { patch, changes } = changesOf(FIELD, { input: INPUT, before, after })
    assert.deepEqual(patch, { to: '', note: 'hi', kind: 'one', tags: ['a', 'b'], order: { id: 8 }, other: null })
    assert.deepEqual(changes, [
      { pointer: '/to', from: 'bob', to: '' },
      { pointer: '/note', to: 'hi' },
      { pointer: '/kind', from: 'two', to: 'one' },
      { pointer: '/tags', from: ['a'], to: ['a', 'b'] },
      { pointer: '/order/id', from: 7, to: 8 },
      { pointer: '/other', from: [1] },
    ])
    assert.deepEqual(changesIn(patch, INPUT), changes)
  })

  it('leaves a field out that was added and emptied again', () => {
    const after = { ...(before as object), note: '' }
    assert.deepEqual(changesOf(FIELD, { input: INPUT, before, after }).patch, {})
  })
})
