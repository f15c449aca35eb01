import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { defineTool } from '@toolgate/core'
import { createToolset } from '@toolgate/core/toolset'
import { createWireNames, toWireName } from './names.ts'
import { runs } from '../../testing/src/runs.ts'

const part = fc.oneof(
  fc.string({ unit: fc.constantFrom('a', 'b', '_', '-', 'A', '1'), minLength: 1, maxLength: 40 }),
  fc.string({ unit: fc.constantFrom('a', '_', '.', '/', 'é', '読', '😀'), minLength: 1, maxLength: 20 }),
)
const toolArbitrary = fc
  .record({ namespace: fc.option(part, { nil: undefined }), name: part })
  .map((definition) => defineTool(definition))
const wireName = (id: string) => {
  const [name = '', namespace] = id.split(':').toReversed()
  return toWireName(defineTool({ name, namespace }))
}

describe('toWireName', () => {
  const plain: readonly (readonly [id: string, name: string])[] = [
    ['search', 'search'],
    ['files:read_file', 'files__read_file'],
    ['my-server:do-it', 'my-server__do-it'],
    ['a_b:c_d', 'a_b__c_d'],
    ['constructor', 'constructor'],
    [`${'a'.repeat(31)}:${'b'.repeat(31)}`, `${'a'.repeat(31)}__${'b'.repeat(31)}`],
  ]
  for (const [id, name] of plain) it(`of ${id} is ${name}`, () => assert.equal(wireName(id), name))

  const hashed: readonly (readonly [id: string, name: RegExp])[] = [
    ['a__b', /^a_b__[0-9a-f]{10}_$/],
    ['a_:b', /^a_b__[0-9a-f]{10}_$/],
    ['a:_b', /^a_b__[0-9a-f]{10}_$/],
    ['__proto__', /^_proto___[0-9a-f]{10}_$/],
    ['files:read.file', /^files_read_file__[0-9a-f]{10}_$/],
    ['読む', /^___[0-9a-f]{10}_$/],
    [`${'a'.repeat(32)}:${'b'.repeat(31)}`, /^a{32}_b{18}__[0-9a-f]{10}_$/],
  ]
  for (const [id, name] of hashed) it(`of ${id} ends in a hash`, () => assert.match(wireName(id), name))

  it('is at most 64 of [A-Za-z0-9_-], for every tool', () => {
    fc.assert(fc.property(toolArbitrary, (tool) => assert.match(toWireName(tool), /^[A-Za-z0-9_-]{1,64}$/)))
  })

  it('is another for another tool', () => {
    fc.assert(
      fc.property(toolArbitrary, toolArbitrary, (a, b) => {
        assert.equal(toWireName(a) === toWireName(b), a.id === b.id)
      }),
      runs(3000, 3000),
    )
  })

  it('depends on the id alone', () => {
    fc.assert(
      fc.property(toolArbitrary, ({ id, namespace, name }) => {
        const other = defineTool({ namespace, name, description: 'other', tags: ['x'], inputSchema: { title: 'y' } })
        assert.equal(toWireName(other), toWireName({ id, namespace, name }))
      }),
    )
  })
})

describe('createWireNames', () => {
  it('maps names back to ids, and knows no other spelling', () => {
    fc.assert(
      fc.property(fc.uniqueArray(toolArbitrary, { selector: (tool) => tool.id, maxLength: 12 }), (tools) => {
        const snapshot = createToolset(tools)
        const names = createWireNames(snapshot)
        assert.deepEqual(names.collisions, [])
        for (const id of snapshot.ids) {
          const name = names.toName(id) as string
          assert.equal(names.toId(name), id)
          assert.equal(names.toId(`${name} `), undefined)
        }
      }),
    )
  })

  it('knows nothing that only objects have', () => {
    const names = createWireNames(createToolset([defineTool({ name: 'search' })]))
    for (const name of ['constructor', '__proto__', 'toString', 'Search', 'search ', '']) {
      assert.equal(names.toId(name), undefined)
      assert.equal(names.toName(name), undefined)
    }
  })

  it('gives a name that two tools share to neither, and names both', () => {
    const tools = ['a', 'b', 'c', 'd'].map((name) => defineTool({ name }))
    const names = createWireNames(tools, ({ id }) => (id === 'd' ? 'd' : 'same'))
    assert.deepEqual(names.collisions, [{ name: 'same', ids: ['a', 'b', 'c'] }])
    assert.equal(names.toId('same'), undefined)
    assert.deepEqual(
      tools.map(({ id }) => names.toName(id)),
      [undefined, undefined, undefined, 'd'],
    )
  })
})
