import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { answerOf, Failure } from '../decide/layers/clauses.ts'
import { defineTool } from '../tools/tool.ts'
import { parsePolicies } from './parse.ts'
import { type KnownParts, type Leaning, NOTHING_KNOWN, takeUnknownRead, uncertainValue } from './uncertain.ts'
import type { ClauseKind } from './parse.ts'

const tool = defineTool({ name: 'send', execute: () => 1 })
const known: KnownParts = {
  parts: new Map<string, unknown>([
    ['to', 'vera'],
    ['absent', undefined],
  ]),
  partly: new Map([['order', { parts: new Map([['id', 7]]), partly: new Map() }]]),
}

function ask(kind: ClauseKind, input: string, value: unknown, more: object = {}): boolean | 'failed' {
  const [policy] = parsePolicies(
    { [kind]: [{ match: 'send', input, ...more }] },
    Object.assign(new Map(), { aliases: new Map() }),
  )
  const answer = answerOf(policy?.[kind]?.[0] as never, { caller: {}, tool, input: value })
  return answer instanceof Failure ? 'failed' : answer
}

function both(kind: ClauseKind, condition: string, more?: object): readonly (boolean | 'failed')[] {
  return (['strict', 'lax'] as const).map((leaning: Leaning) =>
    ask(kind, condition, uncertainValue(known, leaning), more),
  )
}

describe('uncertainValue', () => {
  it('answers what is known, as a value of which all is known does', () => {
    for (const [condition, answer] of [
      ["input.to == 'vera'", true],
      ["input.to == 'otto'", false],
      ['input.order.id == 7.0', true],
      ['has(input.absent)', false],
      ['has(input.to)', true],
    ] as const)
      for (const kind of ['deny', 'ask', 'allow'] as const)
        assert.deepEqual(both(kind, condition), [answer, answer], condition)
  })

  it('counts against the call and for it where a condition reads something unknown', () => {
    for (const condition of [
      "input.subject == 'x'",
      'has(input.subject)',
      "'subject' in input",
      'size(input) > 0',
      "input.order.name == 'x'",
    ]) {
      assert.deepEqual(both('deny', condition), ['failed', false], condition)
      assert.deepEqual(both('ask', condition), ['failed', false], condition)
      assert.deepEqual(both('allow', condition), [false, true], condition)
    }
  })

  it('does not matter where another part of the clause decides', () => {
    assert.deepEqual(both('deny', "input.to == 'otto' && input.subject == 'x'"), [false, false])
    assert.deepEqual(both('deny', "input.subject == 'x'", { when: "caller.user == 'otto'" }), ['failed', 'failed'])
  })

  it('is nothing that a later decision sees', () => {
    const unknown = uncertainValue(NOTHING_KNOWN, 'lax') as Record<string, unknown>
    assert.equal(unknown['to'], undefined)
    // Read outside a condition: a real call that is decided next must not be let through by it.
    assert.equal(ask('deny', "input.to == 'vera'", { to: 'vera' }), true)
    assert.equal(ask('allow', "input.to == 'otto'", { to: 'vera' }), false)
    assert.equal(takeUnknownRead(), undefined)
  })
})
