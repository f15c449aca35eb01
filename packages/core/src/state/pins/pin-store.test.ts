import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type MemoryState, memoryState } from '../../memory/state.ts'
import type { StateEntry } from '../../ports/ports.ts'
import { definitionHash, definitionOf } from '../../tools/definition-hash.ts'
import { defineTool } from '../../tools/tool.ts'
import { createPinStore, type ReadPins, type PinnedDefinition } from './pin-store.ts'

const versions = ['One.', 'Another.'].map((description) => defineTool({ name: 'read', description }))
const [one, another] = versions.map((tool, since) => ({
  pin: { hash: definitionHash(tool), since },
  definition: definitionOf(tool),
})) as [PinnedDefinition, PinnedDefinition]

describe('createPinStore', () => {
  const readAll = (state: MemoryState): ReadPins =>
    createPinStore(state, 1000).read(state.list('pin:') as readonly StateEntry[])

  it('reads the pin of the process that saw the tool first, whoever wrote first', () => {
    const state = memoryState()
    const stores = [createPinStore(state, 1000), createPinStore(state, 1000)] as const
    stores[0].addAll([['read', another]], () => {})
    stores[1].addAll([['read', one]], () => {})
    assert.deepEqual([...readAll(state).pins], [['read', one.pin]])
  })

  it('reads an accepted pin before one that was seen', async () => {
    const state = memoryState()
    const store = createPinStore(state, 1000)
    store.addAll([['read', one]], () => {})
    await store.replace('read', { ...another.pin, by: 'vera' }, another.definition, one.pin)
    store.read(state.list('pin:') as readonly StateEntry[])
    assert.deepEqual([...readAll(state).pins], [['read', { ...another.pin, by: 'vera' }]])
    assert.deepEqual(await store.definition(one.pin.hash), one.definition)
    assert.deepEqual(await store.definition(another.pin.hash), another.definition)
  })

  it('writes a thousand tools in a few writes', () => {
    const state = memoryState()
    const store = createPinStore(state, 1000)
    const pinned = Array.from({ length: 1000 }, (_, i): readonly [string, PinnedDefinition] => {
      const tool = defineTool({ name: `tool${i}`, description: 'x'.repeat(1000) })
      return [tool.id, { pin: { hash: definitionHash(tool), since: 1 }, definition: definitionOf(tool) }]
    })
    store.addAll(pinned, () => {})
    assert.equal(readAll(state).pins.size, 1000)
    assert.ok(state.size <= 8, `${state.size} entries`)
  })

  for (const value of ['x', [1], [['read']], [['read', 'x', 1]], [[1, one.pin.hash, 1]]]) {
    it(`takes no tool for a new one where what was seen is ${JSON.stringify(value).slice(0, 30)}`, async () => {
      const state = memoryState()
      await state.set('pin:seen:x', value)
      assert.equal(readAll(state).isBroken, true)
    })
  }
})
