import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createToolset } from '../../tools/toolset.ts'
import { defineTool } from '../../tools/tool.ts'
import { findNearNames } from './near-names.ts'

const toolsetOf = (ids: readonly string[]) =>
  createToolset(
    ids.map((id) => {
      const [namespace, name] = id.split(':') as [string, string]
      return defineTool({ namespace, name })
    }),
  )
const codesIn = (...ids: readonly string[]) =>
  new Set([...findNearNames(toolsetOf(ids)).values()].flat().map(({ code }) => code))

describe('findNearNames', () => {
  const near: readonly (readonly [what: string, a: string, b: string])[] = [
    ['a plural', 'mail:send_email', 'evil:send_emails'],
    ['a plural of y', 'a:list_queries', 'b:list_query'],
    ['another join of words', 'mail:send_email', 'evil:send-email'],
    ['capitals', 'mail:send_email', 'evil:sendEmail'],
    ['words that are not joined', 'mail:send_email', 'evil:sendemail'],
    ['an underscore at the end', 'mail:send_email', 'evil:send_email_'],
    ['a doubled letter', 'git:search_commits', 'evil:search_committs'],
    ['two letters exchanged', 'git:search', 'evil:serach'],
    ['a letter that is missing', 'git:create_request', 'evil:create_reqest'],
    ['another letter', 'git:organization', 'evil:organisation'],
  ]
  for (const [what, a, b] of near) {
    it(`finds ${what}`, () => assert.deepEqual([...codesIn(a, b)], ['name_near_duplicate']))
  }

  it('finds what looks alike, in one namespace too', () => {
    assert.deepEqual([...codesIn('files:list1', 'files:listl')], ['name_lookalike'])
    assert.deepEqual([...codesIn('files:copy', 'evil:\u0441\u043e\u0440\u0443')], ['name_lookalike'])
  })

  it('leaves alone what honest servers have', () => {
    const ids = [
      ...['read_file', 'read_files', 'read_multiple_files', 'write_file', 'edit_file', 'list_directory'].map(
        (name) => `files:${name}`,
      ),
      ...['search', 'get_user', 'create_issue', 'list_issues', 'get_issue', 'update_issue', 'add_comment'].map(
        (name) => `github:${name}`,
      ),
      ...['search', 'set_user', 'create_note', 'list_notes', 'get_note', 'update_note', 'add_content'].map(
        (name) => `notes:${name}`,
      ),
      ...['import', 'export', 'activate', 'deactivate', 'enable', 'unable', 'tool_1', 'tool_2', 'v2_search'].map(
        (name) => `misc:${name}`,
      ),
      ...['put', 'pet', 'list', 'lint', 'move', 'love', 'insert', 'assert', 'search2', 'v1_search', 'import_all'].map(
        (name) => `other:${name}`,
      ),
    ]
    assert.deepEqual([...findNearNames(toolsetOf(ids))], [])
  })

  it('tells each of the others, spelt out', () => {
    const found = findNearNames(toolsetOf(['mail:send', 'evil:\u0455\u0435nd', 'other:send']))
    assert.deepEqual(
      found.get('mail:send')?.map(({ text }) => text),
      ['/name "mail:send" looks like "evil:\u0455\u0435nd" (with U+0455 U+0435)'],
    )
    assert.deepEqual(
      found.get('evil:\u0455\u0435nd')?.map(({ text }) => text),
      ['/name "evil:\u0455\u0435nd" (with U+0455 U+0435) looks like "mail:send", "other:send"'],
    )
  })

  it('does not compare every name with every other', () => {
    const ids = Array.from({ length: 3000 }, (_, i) => `n${i % 7}:organization${'xyz'[i % 3]}${i}`)
    assert.ok(findNearNames(toolsetOf([...new Set(ids)])).size >= 0)
    const alike = Array.from({ length: 2000 }, (_, i) => `n${i}:send${'_'.repeat(i % 100)}email`)
    for (const findings of findNearNames(toolsetOf(alike)).values()) {
      for (const { text } of findings) assert.ok(text.length < 1500)
    }
  })
})
