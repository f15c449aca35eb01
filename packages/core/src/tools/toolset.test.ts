import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { defineTool } from './tool.ts'
import { createToolset } from './toolset.ts'

const tools = ['web:search', 'notes', 'files:read', '__proto__'].map((id) => {
  const [name = '', namespace] = id.split(':').toReversed()
  return defineTool({ name, namespace })
})

describe('createToolset', () => {
  it('is in the order of ids, whatever the order of the tools', () => {
    const ids = ['__proto__', 'files:read', 'notes', 'web:search']
    assert.deepEqual(createToolset(tools).ids, ids)
    assert.deepEqual(createToolset(tools.toReversed()).ids, ids)
    assert.deepEqual(
      [...createToolset(tools)].map((tool) => tool.id),
      ids,
    )
  })

  it('finds a tool by its exact id only', () => {
    const set = createToolset(tools)
    assert.equal(set.get('files:read')?.name, 'read')
    assert.equal(set.indexOf('files:read'), 1)
    for (const id of ['read', 'Files:read', 'files:read ', 'constructor', 'toString', '']) {
      assert.deepEqual([set.has(id), set.get(id), set.indexOf(id)], [false, undefined, -1])
    }
    assert.equal(set.has('__proto__'), true)
  })

  it('gives a new one when filtered, and stays as it is', () => {
    const set = createToolset(tools)
    assert.deepEqual(set.filter((tool) => tool.namespace === undefined).ids, ['__proto__', 'notes'])
    assert.equal(set.size, 4)
    assert.ok(Object.isFrozen(set) && Object.isFrozen(set.tools) && Object.isFrozen(set.ids))
  })

  it('refuses two tools of one id and names it', () => {
    assert.throws(() => createToolset([...tools, defineTool({ name: 'notes' })]), {
      code: 'tool_duplicate',
      message: 'Two tools have the id "notes".',
    })
  })
})
