import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { matchesGlob, parseGlob } from './glob.ts'
import { certainlyHas, HINTS, matchesSelector, parseSelector, possiblyHas, selectorsOverlap } from './selector.ts'
import { parsePolicies } from '../policy/parse.ts'
import type { Policy } from '../policy/policy.ts'
import { parseGroups } from './groups.ts'
import { definePrompt, defineResource, defineTemplate } from './items.ts'
import { defineTool, type ToolAnnotations } from './tool.ts'
import { runs } from '../../../testing/src/runs.ts'

const groups = new Map([['web', [parseSelector('browser:*'), parseSelector('tag:net')]]])
const tool = (id: string, more: object = {}) => {
  const [name = '', namespace] = id.split(':').toReversed()
  return defineTool({ name, namespace, ...more })
}
const names = (selector: string, id: string, more: object = {}) =>
  matchesSelector(parseSelector(selector, groups), tool(id, more), 'possible')

describe('matchesSelector', () => {
  const table: readonly (readonly [selector: string, yes: readonly string[], no: readonly string[]])[] = [
    ['files:read_file', ['files:read_file'], ['read_file', 'files:read_files', 'file:read_file', 'Files:read_file']],
    ['search', ['search'], ['web:search', 'search2']],
    ['files:*', ['files:read', 'files:x'], ['read', 'files2:read']],
    ['files:read_*', ['files:read_', 'files:read_a'], ['files:read', 'read_a']],
    ['files:*_*', ['files:a_b', 'files:_'], ['files:ab']],
    ['*:delete_*', ['delete_all', 'files:delete_all'], ['files:undelete_all']],
    ['*:*', ['a', 'a:b'], []],
    ['**:a', ['a', 'x:a'], ['b']],
    ['f*:read', ['files:read', 'f:read'], ['read', 'web:read']],
    ['*', ['a', 'a:b'], []],
    ['**', ['a', 'a:b'], []],
    ['read_*', ['read_a'], ['files:read_a']],
    ['*a*b', ['ab', 'xaxb'], ['ba', 'x:ab']],
    ['group:web', ['browser:open'], ['files:read', 'browser']],
  ]
  for (const [selector, yes, no] of table) {
    it(`${selector} names ${yes.join(', ')}${no.length > 0 ? ` and not ${no.join(', ')}` : ''}`, () => {
      for (const id of yes) assert.ok(names(selector, id), id)
      for (const id of no) assert.ok(!names(selector, id), id)
    })
  }

  it('names tools by what they are marked with', () => {
    assert.ok(names('tag:net', 'a', { tags: ['net'] }))
    assert.ok(names('group:web', 'a', { tags: ['net'] }))
    assert.ok(!names('tag:ne', 'a', { tags: ['net'] }))
    assert.ok(names('category:search', 'a', { category: 'search' }))
    assert.ok(!names('category:search', 'a'))
    assert.ok(names('hint:destructive', 'a'))
    assert.ok(!names('hint:read-only', 'a'))
  })

  it('counts only certain hints in a clause that grants', () => {
    const claimed = tool('a', { annotations: { readOnlyHint: true }, hintsTrusted: false })
    const selector = parseSelector('hint:read-only')
    assert.equal(matchesSelector(selector, claimed, 'possible'), true)
    assert.equal(matchesSelector(selector, claimed, 'certain'), false)
  })
})

const server = { namespace: 'files' }
const ITEMS = {
  tool: defineTool({ name: 'read', ...server, tags: ['x'], category: 'x' }),
  resource: defineResource({ uri: 'file:///docs/a.md', ...server, tags: ['x'], category: 'x' }),
  template: defineTemplate({ uriTemplate: 'file:///{+path}', ...server, tags: ['x'] }),
  prompt: definePrompt({ name: 'git:commit', ...server, tags: ['x'] }),
}

describe('selectors of items', () => {
  const table: readonly (readonly [selector: string, named: readonly (keyof typeof ITEMS)[]])[] = [
    ['*', ['tool']],
    ['**', ['tool']],
    ['*:*', ['tool']],
    ['files:*', ['tool']],
    ['tag:x', ['tool']],
    ['category:x', ['tool']],
    ['hint:destructive', ['tool']],
    ['group:all', ['tool']],
    ['resource:files:*', ['resource', 'template']],
    ['resource:*:file:///*', ['resource', 'template']],
    ['resource:files:file:///docs/*', ['resource']],
    ['resource:files:file:///docs/a.md', ['resource']],
    ['resource:files:file:///{+path}', ['template']],
    ['resource:web:*', []],
    ['prompt:files:*', ['prompt']],
    ['prompt:files:git:*', ['prompt']],
    ['prompt:files:commit', []],
    ['server:files', ['tool', 'resource', 'template', 'prompt']],
    ['server:file', []],
  ]
  const all = new Map([['all', [parseSelector('*'), parseSelector('tag:x')]]])
  for (const [text, named] of table)
    it(`${text} names ${named.join(', ') || 'nothing'}`, () => {
      const selector = parseSelector(text, all, 'servers')
      const found = Object.entries(ITEMS).flatMap(([kind, item]) =>
        matchesSelector(selector, item, 'possible') ? [kind] : [],
      )
      assert.deepEqual(found, named)
    })

  const refused = [
    ['resource:files', undefined, /must be written resource:<server>:<uri>/],
    ['resource:files:', undefined, /must be written resource:<server>:<uri>/],
    ['prompt::a', undefined, /must be written prompt:<server>:<name>/],
    ['Resource:files:*', undefined, /"Resource" must be written "resource"/],
    ['SERVER:files', 'servers', /"SERVER" must be written "server"/],
    ['server:f*', 'servers', /names one server/],
    ['server:files', 'items', /names everything of a server, which only deny, ask and halts can/],
    ['resource:files:*', 'tools', /names resources, and only tools can be named here/],
    ['prompt:files:*', 'tools', /names prompts, and only tools can be named here/],
  ] as const
  for (const [text, scope, problem] of refused)
    it(`refuse ${text} for ${scope ?? 'items'}`, () => {
      assert.throws(() => parseSelector(text, undefined, scope), { code: 'selector_invalid', problem })
    })

  it('of servers are refused in an allow', () => {
    const parse = (policy: Policy) => parsePolicies(policy, new Map())
    assert.ok(parse({ deny: ['server:files'], ask: ['server:files'] }))
    assert.throws(() => parse({ allow: ['server:files'] }), { path: 'policy[0].allow[0].match' })
  })

  it('cannot be members of a group', () => {
    const tools = ['resource:files:*']
    assert.throws(() => parseGroups({ g: { tools } }), { path: 'groups.g.tools[0]', problem: /only tools/ })
  })
})

describe('parseSelector', () => {
  const refused: readonly (readonly [selector: unknown, problem: RegExp])[] = [
    ['', /must be a string that is not empty/],
    [undefined, /must be a string/],
    [7, /must be a string/],
    ['x'.repeat(301), /has more than 300 characters/],
    ['files: read', /must not hold spaces/],
    ['files:\u00a0read', /must not hold spaces/],
    [':read', /has nothing on one side of its ":"/],
    ['files:', /has nothing on one side of its ":"/],
    ['a:b:c', /has more than one ":"/],
    ['tag:*', /names one tag; "\*" is not read there/],
    ['category:s*', /names one category/],
    ['hint:Destructive', /names no hint; the hints are read-only, destructive, idempotent, open-world/],
    ['group:wbe', /names no group; the groups are web/],
    ['group:toString', /names no group/],
  ]
  for (const [selector, problem] of refused) {
    it(`refuses ${JSON.stringify(selector)?.slice(0, 30)} and says why`, () => {
      assert.throws(() => parseSelector(selector, groups), { code: 'selector_invalid', problem })
    })
  }

  it('says that there are no groups where there are none', () => {
    assert.throws(() => parseSelector('group:web'), /the groups are \(none\)/)
  })
})

describe('matchesGlob', () => {
  it('agrees with the regular expression of the same meaning', () => {
    const text = fc.string({ unit: fc.constantFrom('a', 'b', '.'), maxLength: 12 })
    const pattern = fc.string({ unit: fc.constantFrom('a', 'b', '.', '*'), maxLength: 8 })
    fc.assert(
      fc.property(pattern, text, (glob, subject) => {
        const regExp = new RegExp(`^${glob.replaceAll('.', String.raw`\.`).replaceAll('*', '.*')}$`)
        assert.equal(matchesGlob(parseGlob(glob), subject), regExp.test(subject))
      }),
      runs(1000, 1000),
    )
  })

  it('does not let the ends of a pattern overlap', () => {
    assert.equal(matchesGlob(parseGlob('ab*ba'), 'aba'), false)
    assert.equal(matchesGlob(parseGlob('ab*ba'), 'abba'), true)
  })

  it('answers for patterns that would make a backtracking matcher hang', () => {
    const hostile = parseGlob(`${'*a'.repeat(140)}*b`)
    assert.equal(matchesGlob(hostile, 'a'.repeat(200_000)), false)
  })
})

const hintsOf = (has: typeof certainlyHas, annotations: ToolAnnotations, hintsTrusted: boolean) =>
  HINTS.filter((hint) => has(defineTool({ name: 'a', annotations, hintsTrusted }), hint))

describe('hints', () => {
  const table: readonly (readonly [ToolAnnotations, trusted: readonly string[], possible: readonly string[]])[] = [
    [{}, ['destructive', 'open-world'], ['destructive', 'open-world']],
    [{ readOnlyHint: true }, ['read-only', 'open-world'], ['read-only', 'destructive', 'open-world']],
    [{ destructiveHint: false }, ['open-world'], ['destructive', 'open-world']],
    [
      { destructiveHint: true, readOnlyHint: true },
      ['read-only', 'open-world'],
      ['read-only', 'destructive', 'open-world'],
    ],
    [{ openWorldHint: false }, ['destructive'], ['destructive', 'open-world']],
    [
      { idempotentHint: true },
      ['destructive', 'idempotent', 'open-world'],
      ['destructive', 'idempotent', 'open-world'],
    ],
  ]
  for (const [annotations, trusted, possible] of table) {
    it(`of ${JSON.stringify(annotations)} are taken at their word where trusted, and as a warning where not`, () => {
      assert.deepEqual(hintsOf(certainlyHas, annotations, true), trusted)
      assert.deepEqual(hintsOf(possiblyHas, annotations, true), trusted)
      assert.deepEqual(hintsOf(certainlyHas, annotations, false), [])
      assert.deepEqual(hintsOf(possiblyHas, annotations, false), possible)
    })
  }

  it('take only true and false: an upstream that says something else has said nothing', () => {
    const odd = { readOnlyHint: 'true', destructiveHint: 'false' } as object
    assert.deepEqual(hintsOf(certainlyHas, odd, true), ['destructive', 'open-world'])
  })
})

const ALIASES = Object.assign(new Map(), { aliases: new Map([['exec', 'sh:bash']]) })
const overlap = (a: string, b: string): boolean =>
  selectorsOverlap(parseSelector(a, ALIASES), parseSelector(b, ALIASES))

describe('selectorsOverlap', () => {
  for (const [a, b, expected] of [
    ['files:read', 'files:read', true],
    ['files:read', 'files:*', true],
    ['files:read', 'web:*', false],
    ['files:read_*', 'files:*', true],
    ['files:read_*', 'files:write_*', false],
    ['files:*_file', 'files:read_*', true],
    ['files:*_file', 'files:*_folder', false],
    ['files:a*b*c', 'files:*x*', true],
    ['*:delete_*', 'files:*', true],
    ['*:delete_*', 'files:read', false],
    ['*', 'files:*', true],
    ['*', 'search', true],
    ['search', 'files:*', false],
    ['search', 'sea*', true],
    ['fi*:read', 'files:*', true],
    ['fi*:read', 'web:*', false],
    ['exec', 'sh:*', true],
    ['tag:read', 'tag:read', true],
    ['tag:read', 'tag:write', false],
    ['tag:read', '*', false],
  ] as const)
    it(`says that some tool ${expected ? 'can match' : 'cannot match'} both ${a} and ${b}`, () => {
      assert.equal(overlap(a, b), expected)
      assert.equal(overlap(b, a), expected)
    })
})
