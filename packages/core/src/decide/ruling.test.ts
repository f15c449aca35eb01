import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { reason } from '../decision/reason.ts'
import type { Mark } from '../layers/mark.ts'
import { bitsWhere, membersOf } from '../tools/bits.ts'
import { defineTool } from '../tools/tool.ts'
import { createToolset } from '../tools/toolset.ts'
import { outcomeAt, projectMarks, reasonsAt, rule } from './ruling.ts'

const toolset = (...names: string[]) => createToolset(names.map((name) => defineTool({ name })))
const snapshot = toolset('a', 'b', 'c', 'd')
const mark = (outcome: Mark['outcome'], ...ids: string[]): Mark => ({
  outcome,
  bits: bitsWhere(snapshot.size, (i) => ids.includes(snapshot.ids[i] ?? '')),
  reason: (tool) => reason('policy', 'policy_denied', `${outcome} ${tool.id}`),
})

describe('rule', () => {
  it('gives each tool the strictest outcome of its marks', () => {
    const ruling = rule(snapshot, [mark('ask', 'a', 'b', 'c'), mark('wait', 'b', 'c'), mark('deny', 'c')])
    assert.deepEqual(
      [0, 1, 2, 3].map((i) => outcomeAt(ruling, i)),
      ['ask', 'wait', 'deny', 'allow'],
    )
    assert.deepEqual(membersOf(ruling.listing.visible), [0, 3])
  })

  it('explains from the same marks', () => {
    const ruling = rule(snapshot, [mark('ask', 'a', 'b'), mark('wait', 'b')])
    assert.deepEqual(
      reasonsAt(ruling, 1).map(({ text }) => text),
      ['ask b', 'wait b'],
    )
  })

  it('adds to a base without changing it', () => {
    const base = rule(snapshot, [mark('ask', 'a')])
    const more = rule(snapshot, [mark('deny', 'a', 'd')], base)
    assert.deepEqual([outcomeAt(base, 0), outcomeAt(base, 3)], ['ask', 'allow'])
    assert.deepEqual([outcomeAt(more, 0), outcomeAt(more, 3), more.marks.length], ['deny', 'deny', 2])
    assert.equal(rule(snapshot, [], base), base)
  })
})

describe('projectMarks', () => {
  it('keeps what a mark says of a tool where it is in another snapshot', () => {
    const onto = toolset('aa', 'b', 'd', 'e')
    const projected = rule(onto, projectMarks(rule(snapshot, [mark('deny', 'a', 'b'), mark('ask', 'd')]), onto))
    assert.deepEqual(
      onto.ids.map((_, i) => outcomeAt(projected, i)),
      ['allow', 'deny', 'ask', 'allow'],
    )
    assert.deepEqual(
      reasonsAt(projected, 1).map(({ text }) => text),
      ['deny b'],
    )
  })

  it('gives the marks themselves for the same snapshot', () => {
    const ruling = rule(snapshot, [mark('deny', 'a')])
    assert.equal(projectMarks(ruling, snapshot), ruling.marks)
  })
})
