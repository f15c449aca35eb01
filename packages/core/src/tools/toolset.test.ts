import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { defineTool, type Tool } from './tool.ts'
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

describe('Toolset.add, replace and remove', () => {
  const set = createToolset(tools)
  const notes = defineTool({ name: 'notes', description: 'other' })

  it('give a new set in the order of ids, and leave the old one as it is', () => {
    const mail = defineTool({ namespace: 'mail', name: 'send' })
    assert.deepEqual(set.add(mail).ids, ['__proto__', 'files:read', 'mail:send', 'notes', 'web:search'])
    assert.equal(set.replace(notes).get('notes'), notes)
    assert.deepEqual(set.remove('notes', 'web:search').ids, ['__proto__', 'files:read'])
    assert.deepEqual([set.size, set.get('notes')?.description], [4, ''])
  })

  it('give an equal set when there is nothing to do', () => {
    assert.deepEqual([set.add().ids, set.replace().ids, set.remove().ids], [set.ids, set.ids, set.ids])
    assert.equal(set.add().hash(), set.hash())
  })

  const refused: readonly (readonly [what: string, edit: () => unknown, code: string, message: RegExp])[] = [
    ['to add an id that is there', () => set.add(notes), 'tool_duplicate', /"notes"/],
    ['to add one id twice', () => set.remove('notes').add(notes, notes), 'tool_duplicate', /"notes"/],
    ['to replace what is not there', () => set.remove('notes').replace(notes), 'tool_unknown', /Unknown tool "notes"/],
    ['to replace one id twice', () => set.replace(notes, defineTool({ name: 'notes' })), 'tool_duplicate', /"notes"/],
    ['to replace by one tool twice', () => set.replace(notes, notes), 'tool_duplicate', /"notes"/],
    ['to remove what is not there', () => set.remove('note'), 'tool_unknown', /"note". Did you mean "notes"/],
    ['to remove by a glob', () => set.remove('*'), 'tool_unknown', /Unknown tool "\*"/],
    [
      'to add what defineTool did not make',
      () => set.add({ ...notes, id: 'x' }),
      'tool_invalid',
      /add\[0\]: must be a tool that defineTool made/,
    ],
    ['to add nothing', () => set.add(null as unknown as Tool), 'tool_invalid', /^add\[0\]: .*, not null$/],
    [
      'to replace by what defineTool did not make',
      () => set.replace(notes, { ...notes }),
      'tool_invalid',
      /replace\[1\]: must be a tool/,
    ],
    [
      'to replace by nothing',
      () => set.replace(null as unknown as Tool),
      'tool_invalid',
      /^replace\[0\]: .*, not null$/,
    ],
  ]
  for (const [what, edit, code, message] of refused) {
    it(`refuse ${what}`, () => {
      assert.throws(edit, { code, message })
    })
  }
})

describe('Toolset.hash', () => {
  it('is equal for equal definitions in any order, and differs where a definition does', () => {
    const set = createToolset(tools)
    assert.match(set.hash(), /^[0-9a-f]{64}$/)
    assert.equal(createToolset(tools.toReversed()).hash(), set.hash())
    assert.notEqual(set.replace(defineTool({ name: 'notes', description: 'x' })).hash(), set.hash())
  })
})
