import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { byNamespace, byTagsAny, byTagsNone } from '../tools/filters.ts'
import { defineTool, type Tool } from '../tools/tool.ts'
import { createToolset } from '../tools/toolset.ts'
import { buildToolset, type BuildToolsetOptions } from './build-toolset.ts'

const tool = (namespace: string, name: string, tags: readonly string[] = []) => defineTool({ namespace, name, tags })
const tools = [
  tool('web', 'search', ['read']),
  tool('files', 'write', ['danger']),
  tool('files', 'read', ['read']),
  tool('files', 'list', ['read', 'slow']),
]

describe('buildToolset', () => {
  it('keeps what every filter keeps and no policy denies, in the order of ids', () => {
    const set = buildToolset({
      from: tools,
      filters: [byNamespace('files'), byTagsAny('read')],
      policy: { deny: ['*:list'] },
    })
    assert.deepEqual(set.ids, ['files:read'])
  })

  it('keeps everything without filters and policy', () => {
    assert.deepEqual(buildToolset({ from: tools }).ids, ['files:list', 'files:read', 'files:write', 'web:search'])
    assert.equal(buildToolset({ from: tools, filters: [], policy: [] }).size, 4)
  })

  it('asks the policy after all filters: what they left out, it is not asked about', () => {
    const asked: string[] = []
    const decide = ({ id }: Tool) => (asked.push(id), 'allow' as const)
    buildToolset({ from: tools, filters: [byTagsNone('read')], policy: { decide } })
    assert.deepEqual(asked, ['files:write'])
  })

  it('cannot get back by a filter or a policy what another left out', () => {
    const policy = [{ allow: ['*'] }, { deny: ['files:*'] }]
    assert.deepEqual(buildToolset({ from: tools, filters: [byTagsAny('read')], policy }).ids, ['web:search'])
  })

  it('keeps what needs approval, and leaves out what a condition on an unknown caller denies', () => {
    const asking = buildToolset({ from: tools, policy: { ask: ['*'] } })
    assert.equal(asking.size, 4)
    const policy = { deny: [{ match: 'web:*', when: "caller.user != 'vera'" }] }
    assert.equal(buildToolset({ from: tools, policy }).has('web:search'), false)
    assert.equal(buildToolset({ from: tools, policy, caller: { user: 'vera' } }).has('web:search'), true)
  })

  it('takes groups for its policy', () => {
    const groups = { web: { tools: ['web:*'] } }
    assert.deepEqual(buildToolset({ from: tools, groups, policy: { allow: ['group:web'] } }).ids, ['web:search'])
  })

  it('is a snapshot: what the source does later does not reach it', () => {
    const offered = [...tools]
    const set = buildToolset({ from: { tools: () => offered } })
    offered.length = 0
    assert.equal(set.size, 4)
    assert.ok(Object.isFrozen(set.tools))
  })

  it('takes a list, a Toolset, a generator and a source, also empty ones', () => {
    const empty: readonly BuildToolsetOptions['from'][] = [[], createToolset([]), new Set<Tool>(), { tools: () => [] }]
    for (const from of empty) assert.deepEqual(buildToolset({ from, filters: [byNamespace('x')] }).ids, [])
    assert.equal(buildToolset({ from: createToolset(tools) }).size, 4)
    assert.equal(buildToolset({ from: new Set(tools).values() }).size, 4)
  })

  const refused: readonly (readonly [what: string, options: unknown, code: string, message: RegExp])[] = [
    ['no source', {}, 'source_invalid', /needs a source/],
    ['null for a source', { from: null }, 'source_invalid', /needs a source/],
    ['a name for a source', { from: 'files' }, 'source_invalid', /needs a source/],
    ['an object without tools()', { from: {} }, 'source_invalid', /has no tools\(\)/],
    ['a source that promises', { from: { tools: () => Promise.resolve([]) } }, 'source_invalid', /synchronously/],
    ['what is no tool', { from: [{ name: 'a b' }] }, 'tool_invalid', /must not hold spaces/],
    ['two tools of one id', { from: [...tools, tools[0]] }, 'tool_duplicate', /"web:search"/],
    ['a missing filter', { from: tools, filters: [undefined] }, 'filter_invalid', /filters\[0\]: must be a filter/],
    ['a misspelt name', { from: tools, policy: { deny: ['web:serach'] } }, 'selector_invalid', /"web:search"/],
    ['an unknown group', { from: tools, policy: { deny: ['group:x'] } }, 'selector_invalid', /names no group/],
    ['a caller that is none', { from: tools, caller: { name: 'v' } }, 'caller_invalid', /caller.name/],
  ]
  for (const [what, options, code, message] of refused) {
    it(`refuses ${what}`, () => {
      assert.throws(() => buildToolset(options as BuildToolsetOptions), { code, message })
    })
  }

  it('lets a policy name what the filters have left out', () => {
    const options = { from: tools, filters: [byNamespace('files')], policy: { deny: ['web:search'] } }
    assert.equal(buildToolset(options).size, 3)
  })
})
