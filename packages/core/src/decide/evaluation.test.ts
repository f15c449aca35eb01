import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { reason } from './decision.ts'
import { outcomeAt } from './decide.ts'
import { type Effect, projectEffects, reasonsAt, evaluate } from './evaluation.ts'
import { bitsWhere, membersOf } from '../tools/bits.ts'
import { defineTool } from '../tools/tool.ts'
import { createToolset } from '../tools/toolset.ts'

const toolset = (...names: string[]) => createToolset(names.map((name) => defineTool({ name })))
const snapshot = toolset('a', 'b', 'c', 'd')
const effect = (outcome: Effect['outcome'], ...ids: string[]): Effect => ({
  outcome,
  bits: bitsWhere(snapshot.size, (i) => ids.includes(snapshot.ids[i] ?? '')),
  reason: (tool) => reason('policy', 'policy_denied', `${outcome} ${tool.id}`),
})

describe('rule', () => {
  it('has the strictest outcome of a tool’s effects', () => {
    const evaluation = evaluate(snapshot, [effect('ask', 'a', 'b', 'c'), effect('wait', 'b', 'c'), effect('deny', 'c')])
    assert.deepEqual(
      [0, 1, 2, 3].map((i) => outcomeAt(evaluation, i)),
      ['ask', 'wait', 'deny', 'allow'],
    )
    assert.deepEqual(membersOf(evaluation.visible.bits), [0, 3])
  })

  it('explains from the same marks', () => {
    const evaluation = evaluate(snapshot, [effect('ask', 'a', 'b'), effect('wait', 'b')])
    assert.deepEqual(
      reasonsAt(evaluation, 1).map(({ text }) => text),
      ['ask b', 'wait b'],
    )
  })

  it('adds to a base without changing it', () => {
    const base = evaluate(snapshot, [effect('ask', 'a')])
    const more = evaluate(snapshot, [effect('deny', 'a', 'd')], base)
    assert.deepEqual([outcomeAt(base, 0), outcomeAt(base, 3)], ['ask', 'allow'])
    assert.deepEqual([outcomeAt(more, 0), outcomeAt(more, 3), more.effects.length], ['deny', 'deny', 2])
    assert.equal(evaluate(snapshot, [], base), base)
  })
})

describe('projectMarks', () => {
  it('keeps the effect on a tool in another snapshot', () => {
    const onto = toolset('aa', 'b', 'd', 'e')
    const projected = evaluate(
      onto,
      projectEffects(evaluate(snapshot, [effect('deny', 'a', 'b'), effect('ask', 'd')]), onto),
    )
    assert.deepEqual(
      onto.ids.map((_, i) => outcomeAt(projected, i)),
      ['allow', 'deny', 'ask', 'allow'],
    )
    assert.deepEqual(
      reasonsAt(projected, 1).map(({ text }) => text),
      ['deny b'],
    )
  })

  it('returns the same effects for the same snapshot', () => {
    const evaluation = evaluate(snapshot, [effect('deny', 'a')])
    assert.equal(projectEffects(evaluation, snapshot), evaluation.effects)
  })
})
