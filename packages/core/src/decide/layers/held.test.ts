import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { membersOf } from '../../tools/bits.ts'
import { defineTool } from '../../tools/tool.ts'
import { createToolset } from '../../tools/toolset.ts'
import { pinEffects } from './held.ts'

const snapshot = createToolset(['a', 'b', 'c'].map((name) => defineTool({ name })))

describe('pinMarks', () => {
  it('suspends with a wait and hides with a deny, each with its own words', () => {
    const effects = pinEffects(snapshot, {
      suspended: ({ name }) =>
        name === 'a' ? undefined : { text: `${name} changed`, message: 'it changed', since: 1 },
      quarantined: ({ name }) => (name === 'c' ? { text: 'c has a tag' } : undefined),
    })
    assert.deepEqual(
      effects.map(({ outcome, bits }) => [outcome, membersOf(bits)]),
      [
        ['deny', [2]],
        ['wait', [1, 2]],
      ],
    )
    const reasons = effects.map((effect) => effect.reason(snapshot.get('c') ?? assert.fail()))
    assert.deepEqual(reasons, [
      { layer: 'pins', code: 'tool_quarantined', outcome: 'deny', order: 0, text: 'c has a tag' },
      {
        layer: 'pins',
        code: 'tool_suspended',
        outcome: 'wait',
        order: 0,
        text: 'c changed',
        message: 'it changed',
        since: 1,
      },
    ])
  })

  it('has no effect on tools that it lets pass', () => {
    assert.deepEqual(pinEffects(snapshot, { suspended: () => undefined, quarantined: () => undefined }), [])
  })
})
