import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { defineTool, type Tool } from './tool.ts'
import { createToolset, type Toolset } from './toolset.ts'

const four = ['web:search', 'notes', 'files:read', '__proto__'].map((id) => {
  const [name = '', namespace] = id.split(':').toReversed()
  return defineTool({ name, namespace })
})

describe('createToolset', () => {
  it('is in the order of ids, whatever the order of the tools', () => {
    const ids = ['__proto__', 'files:read', 'notes', 'web:search']
    assert.deepEqual(createToolset(four).ids, ids)
    assert.deepEqual(createToolset(four.toReversed()).ids, ids)
    assert.deepEqual(
      [...createToolset(four)].map((tool) => tool.id),
      ids,
    )
  })

  it('finds a tool by its exact id only', () => {
    const set = createToolset(four)
    assert.equal(set.get('files:read')?.name, 'read')
    assert.equal(set.indexOf('files:read'), 1)
    for (const id of ['read', 'Files:read', 'files:read ', 'constructor', 'toString', '']) {
      assert.deepEqual([set.has(id), set.get(id), set.indexOf(id)], [false, undefined, -1])
    }
    assert.equal(set.has('__proto__'), true)
  })

  it('gives a new one when filtered, and stays as it is', () => {
    const set = createToolset(four)
    assert.deepEqual(set.filter((tool) => tool.namespace === undefined).ids, ['__proto__', 'notes'])
    assert.equal(set.size, 4)
    assert.ok(Object.isFrozen(set) && Object.isFrozen(set.tools) && Object.isFrozen(set.ids))
  })

  it('refuses two tools of one id and names it', () => {
    assert.throws(() => createToolset([...four, defineTool({ name: 'notes' })]), {
      code: 'tool_duplicate',
      message: 'Two tools have the id "notes".',
    })
  })
})

describe('Toolset.add, replace and remove', () => {
  const set = createToolset(four)
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
    const set = createToolset(four)
    assert.match(set.hash(), /^[0-9a-f]{64}$/)
    assert.equal(createToolset(four.toReversed()).hash(), set.hash())
    assert.notEqual(set.replace(defineTool({ name: 'notes', description: 'x' })).hash(), set.hash())
  })
})

const numbered = (count: number, description = '') =>
  createToolset(
    Array.from({ length: count }, (_, i) => defineTool({ name: `t${String(i).padStart(3, '0')}`, description })),
  )

describe('Toolset.namespaces', () => {
  const tools = ['b:x', 'a:x', 'alone', 'a:y', 'ü:x'].map((id) => {
    const [name, namespace] = id.split(':').toReversed() as [string, string | undefined]
    return defineTool({ name, namespace })
  })

  it('gives each namespace once, with the number of its tools, in pages', () => {
    const set = createToolset(tools)
    const first = set.namespaces({ limit: 2 })
    assert.deepEqual(first.namespaces, [
      { namespace: undefined, size: 1 },
      { namespace: 'a', size: 2 },
    ])
    const { namespaces, nextCursor } = set.namespaces({ limit: 2, cursor: first.nextCursor })
    assert.deepEqual(namespaces, [
      { namespace: 'b', size: 1 },
      { namespace: 'ü', size: 1 },
    ])
    assert.equal(nextCursor, undefined)
  })

  it('refuses a cursor of tools, and one of another set', () => {
    const set = createToolset(tools)
    assert.throws(() => set.namespaces({ cursor: set.page({ limit: 1 }).nextCursor }), { code: 'cursor_stale' })
    const { nextCursor: cursor } = set.namespaces({ limit: 1 })
    assert.throws(() => set.page({ cursor }), { code: 'cursor_stale' })
    assert.throws(() => set.remove('alone').namespaces({ cursor }), { code: 'cursor_stale' })
  })
})

describe('Toolset.page', () => {
  it('gives every tool once and in order, whatever the size of the pages', () => {
    fc.assert(
      fc.property(fc.nat(40), fc.integer({ min: 1, max: 12 }), (count, limit) => {
        const set = numbered(count)
        assert.deepEqual(walk(set, limit), set.ids)
      }),
    )
  })

  it('gives 100 tools where no limit is asked for', () => {
    const { tools, nextCursor } = numbered(101).page()
    assert.deepEqual([tools.length, typeof nextCursor], [100, 'string'])
    assert.deepEqual(numbered(100).page().nextCursor, undefined)
    assert.deepEqual(numbered(0).page(), { tools: [], nextCursor: undefined })
  })

  it('gives equal sets equal cursors, so that any process can give the next page', () => {
    const [one, other] = [numbered(5), createToolset([...numbered(5)].toReversed())]
    const { nextCursor } = one.page({ limit: 2 })
    assert.equal(other.page({ limit: 2 }).nextCursor, nextCursor)
    assert.deepEqual(
      other.page({ limit: 2, cursor: nextCursor }).tools.map(({ id }) => id),
      ['t002', 't003'],
    )
  })

  const changes: readonly (readonly [what: string, change: (set: Toolset) => Toolset])[] = [
    ['lost a tool', (set) => set.remove('t004')],
    ['got a tool', (set) => set.add(defineTool({ name: 'zzz' }))],
    ['has a tool with another description', (set) => set.replace(defineTool({ name: 't004', description: 'new' }))],
  ]
  for (const [what, change] of changes) {
    it(`refuses a cursor of before, when the set ${what}`, () => {
      const set = numbered(5)
      const { nextCursor } = set.page({ limit: 2 })
      assert.throws(() => change(set).page({ limit: 2, cursor: nextCursor }), { code: 'cursor_stale' })
    })
  }

  it('refuses a cursor that no page gave', () => {
    const set = numbered(5)
    const cursor = set.page({ limit: 2 }).nextCursor ?? ''
    const encode = (text: string) => Buffer.from(text).toString('base64url')
    const hash = set.hash().slice(0, 24)
    const made = ['', 'x', ' ', '2', `${cursor}=`, ` ${cursor}`, cursor.toUpperCase(), 'A'.repeat(1_000_000)]
    const forged = [`${hash}.5`, `${hash}.0`, `${hash}.-1`, `${hash}.02`, `${hash}.1e1`, `${hash}.2 `].map(encode)
    for (const wrong of [...made, ...forged, 7, {}] as string[]) {
      assert.throws(() => set.page({ cursor: wrong }), { code: 'cursor_invalid' }, JSON.stringify(wrong).slice(0, 80))
    }
  })

  it('refuses a limit that is no count', () => {
    for (const limit of [0, -1, 1.5, 1001, Number.NaN, '2' as unknown as number]) {
      assert.throws(() => numbered(3).page({ limit }), { code: 'query_invalid', message: /limit must be/ })
    }
  })
})

function walk(set: Toolset, limit: number): readonly string[] {
  const ids: string[] = []
  let cursor: string | undefined
  do {
    const { tools, nextCursor } = set.page({ limit, cursor })
    ids.push(...tools.map(({ id }) => id))
    cursor = nextCursor
  } while (cursor !== undefined)
  return ids
}
