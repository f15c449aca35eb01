import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { parseSelector } from '../tools/selector.ts'
import { combinePolicies } from './combine.ts'
import { parsePolicies } from './parse.ts'
import type { Policy } from './policy.ts'

const groups = new Map([['web', [parseSelector('web:*')]]])
const parse = (policy: unknown) => parsePolicies(policy as Policy, groups)

describe('parsePolicies', () => {
  it('takes one policy, several or none', () => {
    assert.equal(parse(undefined).length, 0)
    assert.equal(parse({}).length, 1)
    assert.equal(parse([{}, {}]).length, 2)
  })

  it('names what has no name by its place', () => {
    assert.deepEqual(
      parse([{}, { name: 'baseline' }, {}]).map(({ name }) => name),
      ['policy 1', 'baseline', 'policy 3'],
    )
  })

  it('tells no allowlist from one that allows nothing', () => {
    assert.deepEqual([parse({})[0]?.allow, parse({ allow: [] })[0]?.allow], [undefined, []])
  })

  it('labels a clause by its id, or by what it matches', () => {
    const [policy] = parse({ deny: ['web:*', { match: ['a', 'b'] }, { id: 'no-c', match: 'c' }] })
    assert.deepEqual(
      policy?.deny.map(({ label, index }) => [label, index]),
      [
        ['web:*', 0],
        ['a, b', 1],
        ['no-c', 2],
      ],
    )
  })

  const refused: readonly (readonly [policy: unknown, path: string, problem: RegExp])[] = [
    [null, 'policy[0]', /must be an object/],
    [[[]], 'policy[0]', /must be an object/],
    ['deny all', 'policy[0]', /must be an object/],
    [() => true, 'policy[0]', /must be an object/],
    [{ alow: [] }, 'policy[0].alow', /unknown key; did you mean "allow"\? The keys are name, allow/],
    [JSON.parse('{"__proto__":[]}'), 'policy[0].__proto__', /unknown key/],
    [{ name: '' }, 'policy[0].name', /must be a string that is not empty/],
    [{ deny: {} }, 'policy[0].deny', /must be a list/],
    [{ deny: null }, 'policy[0].deny', /must be a list/],
    [{ requireTags: 'read' }, 'policy[0].requireTags', /must be a list/],
    [{ requireTags: [''] }, 'policy[0].requireTags[0]', /must be a string that is not empty/],
    [{ deny: [null] }, 'policy[0].deny[0]', /must be an object/],
    [{ deny: ['a', {}] }, 'policy[0].deny[1].match', /must match something/],
    [{ deny: [{ match: [] }] }, 'policy[0].deny[0].match', /must match something/],
    [{ deny: [{ match: 7 }] }, 'policy[0].deny[0].match', /must be a list/],
    [{ deny: [{ match: ['a', 7] }] }, 'policy[0].deny[0].match[1]', /must be a string/],
    [{ deny: [{ match: 'a', id: 7 }] }, 'policy[0].deny[0].id', /must be a string/],
    [{ deny: [{ match: 'a', message: '' }] }, 'policy[0].deny[0].message', /must be a string that is not empty/],
    [{ deny: [{ match: 'a', if: 'true' }] }, 'policy[0].deny[0].if', /unknown key; .* The keys are id, match/],
    [[{}, { ask: ['group:wbe'] }], 'policy[1].ask[0].match', /names no group; the groups are web/],
    [{ allow: [{ match: 'a', when: 'caller.rolez' }] }, 'policy[0].allow[0].when', /No such key: rolez/],
    [{ deny: [{ match: 'a', unless: 'input.x' }] }, 'policy[0].deny[0].unless', /Unknown variable: input/],
    [{ deny: [{ match: 'a', input: 'inptu.x' }] }, 'policy[0].deny[0].input', /Unknown variable: inptu/],
    [{ deny: [{ match: 'a', when: null }] }, 'policy[0].deny[0].when', /must be CEL text/],
  ]
  for (const [policy, path, problem] of refused) {
    it(`refuses ${JSON.stringify(policy) ?? 'a function'} at ${path}`, () => {
      assert.throws(() => parse(policy), { name: 'ConfigError', path, problem })
    })
  }
})

describe('combinePolicies', () => {
  it('gives a list in which each policy answers for itself', () => {
    const [a, b, c] = [{ name: 'a' }, { name: 'b' }, { name: 'c' }] as const
    assert.deepEqual(combinePolicies(a, [b, c], undefined), [a, b, c])
    assert.deepEqual(combinePolicies(), [])
  })
})
