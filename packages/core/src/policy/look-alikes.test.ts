import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createGate } from '../gate/gate.ts'
import { lint } from '../gate/lint.ts'
import { defineTool } from '../tools/tool.ts'

const toolsNamed = (...ids: string[]) =>
  ids.map((id) => {
    const [namespace, name] = id.split(':') as [string, string]
    return defineTool({ namespace, name })
  })

describe('names that read like one of a rule', () => {
  const policy = { deny: ['*:exec_shell' as const] }

  for (const id of ['b:exec-shell', 'b:EXEC_SHELL', 'b:execShell', 'b:ex\u0435c_shell', 'b:exec_she11'])
    it(`are warned of in another namespace: ${id}`, () => {
      const tools = toolsNamed('a:exec_shell', id)
      const seen: string[] = []
      createGate({ tools, policy, onWarning: ({ code, path }) => void seen.push(`${code} ${path}`) })
      assert.ok(seen.includes('name_confusable policy[0].deny[0]'), seen.join())
      const found = lint({ tools, policy }).find(
        ({ code, path }) => code === 'name_confusable' && path.startsWith('policy'),
      )
      assert.deepEqual(found?.tools, [id])
    })

  it('are not those that the rule names, or that read otherwise', () => {
    const about = (ids: string[], deny: `${string}*${string}`[]) =>
      lint({ tools: toolsNamed(...ids), policy: { deny } }).filter(
        ({ code, path }) => code === 'name_confusable' && path.startsWith('policy'),
      )
    assert.deepEqual(about(['a:exec_shell', 'b:exec_shell', 'b:exec'], ['*:exec_shell']), [])
    assert.deepEqual(
      about(['a:x', 'ab:X', 'b:X'], ['a*:x']).map(({ tools }) => tools),
      [['ab:X']],
    )
  })

  const found = (options: Omit<Parameters<typeof lint>[0], 'tools'>, ...ids: string[]) =>
    lint({ tools: toolsNamed('a:exec_shell', 'a:delete_all', ...ids), ...options })
      .filter(({ code, path }) => code === 'name_confusable' && path !== 'tools')
      .map(({ path, tools }) => `${path} ${tools?.join()}`)

  it('are found by the names of a group, by an id, and by a pattern', () => {
    const groups = { shells: { tools: ['*:exec_shell'] } }
    assert.deepEqual(found({ groups, policy: { deny: ['group:shells'] } }, 'b:exec-shell'), [
      'policy[0].deny[0] b:exec-shell',
    ])
    assert.deepEqual(found({ policy: { deny: ['a:exec_shell'] } }, 'a:EXEC_SHELL', 'b:exec_shell'), [
      'policy[0].deny[0] a:EXEC_SHELL',
    ])
    assert.deepEqual(found({ policy: { ask: ['a:exec_shell'] } }, '\u0430:exec_shell'), [
      'policy[0].ask[0] \u0430:exec_shell',
    ])
    for (const id of ['b:DELETE_ALL', 'b:delete-all', 'b:deleteAll', 'b:d\u0435lete_all', 'A:Delete_x'])
      assert.deepEqual(found({ policy: { deny: ['*:delete_*'] } }, id), [`policy[0].deny[0] ${id}`])
    assert.deepEqual(found({ policy: { deny: ['a:*'] } }, 'A:x', 'b:x'), ['policy[0].deny[0] A:x'])
    assert.deepEqual(found({ policy: { deny: ['*:delete_*'] } }, 'b:deleted', 'b:Deleted', 'b:undelete_all'), [])
  })

  it('are found by the names of limits, caps and labels', () => {
    const match = '*:exec_shell'
    assert.deepEqual(found({ limits: [`${match}:1/60`] }, 'b:exec-shell'), ['limits[0] b:exec-shell'])
    assert.deepEqual(found({ concurrency: [{ match, max: 1 }] }, 'b:exec-shell'), ['concurrency[0] b:exec-shell'])
    assert.deepEqual(found({ labels: { private: [match] } }, 'b:exec-shell'), ['labels.private[0] b:exec-shell'])
    assert.deepEqual(found({ limits: [`${match}:1/60`, '*:exec-shell:1/60'] }, 'b:exec-shell'), [])
  })

  it('are not reported where another clause does the same to them', () => {
    const deny = ['*:exec_shell', '*:exec-shell'] as const
    assert.deepEqual(found({ policy: { deny } }, 'b:exec-shell'), [])
    assert.deepEqual(found({ policy: { ask: ['*:exec_shell'], deny: ['b:*'] } }, 'b:exec-shell'), [])
    const whenGuest = { match: '*' as const, when: "'guest' in caller.roles" }
    assert.deepEqual(found({ policy: { deny: ['*:exec_shell', whenGuest] } }, 'b:exec-shell'), [
      'policy[0].deny[0] b:exec-shell',
    ])
  })
})
