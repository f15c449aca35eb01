import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { parseSelector } from '../tools/selector.ts'
import { defineTool } from '../tools/tool.ts'
import { createToolset } from '../tools/toolset.ts'
import { parsePolicies } from './parse.ts'
import type { Policy } from './policy.ts'
import { checkKnown, findUnknown, selectorsOfPolicies } from './unknown-names.ts'

const snapshot = createToolset([
  defineTool({ namespace: 'web', name: 'search', tags: ['read'] }),
  defineTool({ namespace: 'files', name: 'read_file' }),
])
const parse = (policy: Policy) =>
  selectorsOfPolicies(parsePolicies(policy, new Map([['none', [parseSelector('x:*')]]])))

describe('findUnknown', () => {
  it('has nothing to say of selectors that name something', () => {
    assert.deepEqual(
      findUnknown(parse({ allow: ['web:search', 'tag:read', '*'], deny: ['hint:destructive'] }), snapshot),
      [],
    )
  })

  it('finds each selector that names nothing, with its path', () => {
    const warnings = findUnknown(
      parse({ allow: ['web:*', 'tag:raed'], ask: [{ match: ['group:none', 'mail:*'] }] }),
      snapshot,
    )
    assert.deepEqual(
      warnings.map(({ path, text }) => [path, text]),
      [
        ['policy[0].allow[1]', 'no tool has the tag "raed"; did you mean "read"?'],
        ['policy[0].ask[0]', '"group:none" names no tool'],
        ['policy[0].ask[0]', '"mail:*" names no tool'],
      ],
    )
  })
})

describe('checkKnown', () => {
  it('lets globs, tags and groups name nothing', () => {
    checkKnown(parse({ deny: ['mail:*', 'tag:danger', 'category:x', 'group:none'] }), snapshot)
  })

  const refused: readonly (readonly [selector: string, problem: string])[] = [
    ['search', '"search" names no tool; "web:search" has that name, "*:search" would name it in any namespace'],
    ['web:serach', '"web:serach" names no tool; the nearest are "web:search", "files:read_file"'],
    ['constructor', '"constructor" names no tool; the nearest are "web:search", "files:read_file"'],
  ]
  for (const [selector, problem] of refused) {
    it(`refuses ${selector} and suggests what may be meant`, () => {
      assert.throws(() => checkKnown(parse({ deny: ['web:*', selector] }), snapshot), {
        code: 'selector_invalid',
        path: 'policy[0].deny[1]',
        problem,
      })
    })
  }
})
