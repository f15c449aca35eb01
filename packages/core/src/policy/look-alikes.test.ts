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
})
