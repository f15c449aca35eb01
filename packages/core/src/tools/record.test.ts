import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createGate } from '../gate/gate.ts'
import { type ToolRecord, toolsOfRecord } from './record.ts'
import { defineTool } from './tool.ts'

const search = defineTool({ name: 'search' })

describe('toolsOfRecord', () => {
  it('takes tools, definitions and definitions that the key names', () => {
    const tools = toolsOfRecord({
      search,
      notes: { name: 'notes' },
      'files:read': { tags: ['read'] },
      'files:write': { namespace: 'files', name: 'write' },
    })
    assert.deepEqual(
      tools.map(({ id, namespace, name }) => [id, namespace, name]),
      [
        ['search', undefined, 'search'],
        ['notes', undefined, 'notes'],
        ['files:read', 'files', 'read'],
        ['files:write', 'files', 'write'],
      ],
    )
    assert.equal(tools[0], search)
  })

  const refused: readonly (readonly [record: object, message: RegExp])[] = [
    [{ find: search }, /tools.find: the key must be the id of the tool, which is "search"/],
    [{ read: { namespace: 'files', name: 'read' } }, /tools.read: the key must be .* "files:read"/],
    [{ 'files:read': { name: 'read' } }, /tools.files:read: the key must be .* "read"/],
    [{ 'a b': {} }, /tool "a b": the name must not hold spaces/],
    [{ 'a:b:c': {} }, /tool "b:c": the name must not hold ":"/],
    [{ ':a': {} }, /namespace ""/],
    [{ '': {} }, /must be a string that is not empty/],
    [{ search: null }, /tools.search: a tool must be an object/],
    [{ search: () => 'x' }, /tools.search: a tool must be an object/],
  ]
  for (const [record, message] of refused) {
    it(`refuses the key of ${JSON.stringify(record)}`, () => {
      assert.throws(() => toolsOfRecord(record as ToolRecord), { code: 'tool_invalid', message })
    })
  }
})

describe('createGate with a record of tools', () => {
  const gate = createGate({ tools: { search, remove: { execute: () => 'gone' } } })

  it('has them by their keys', async () => {
    const view = await gate.view({}, { activeTools: ['remove'] })
    assert.deepEqual(view.ids, ['remove'])
    assert.equal((await view.call({ tool: 'remove' })).text, 'gone')
  })

  it('names the nearest tools for a name that got past the compiler', async () => {
    const view = await gate.view({})
    const wrong = ['serach'] as unknown as ['search']
    assert.throws(() => view.narrow({ activeTools: wrong }), {
      name: 'UnknownToolError',
      code: 'tool_unknown',
      message: 'Unknown tool "serach". Did you mean "search", "remove"?',
      nearest: ['search', 'remove'],
    })
    await assert.rejects(gate.view({}, { activeTools: wrong }), { code: 'tool_unknown' })
  })
})
