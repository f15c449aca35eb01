import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { memoryState } from '../memory/state.ts'
import { definitionHash, definitionOf } from '../tools/definition-hash.ts'
import { defineTool } from '../tools/tool.ts'
import type { Answer } from './ask.ts'
import { createPinStore, type Pin } from './pin-store.ts'

const versions = ['One.', 'Another.'].map((description) => defineTool({ name: 'read', description }))
const [one, another] = versions.map((tool, since) => ({
  pin: { hash: definitionHash(tool), since },
  definition: definitionOf(tool),
})) as [Sight, Sight]
type Sight = { readonly pin: Pin; readonly definition: ReturnType<typeof definitionOf> }

describe('createPinStore', () => {
  it('gives who pins second the pin of the first', () => {
    const store = createPinStore(memoryState(), 1000)
    const answers: Answer<Pin | undefined>[] = []
    store.add('read', one.pin, one.definition, (answer) => answers.push(answer))
    store.add('read', another.pin, another.definition, (answer) => answers.push(answer))
    assert.deepEqual(answers, [{ value: one.pin }, { value: one.pin }])
  })

  it('keeps the definition of a pin, and not that of the one before it', async () => {
    const store = createPinStore(memoryState(), 1000)
    store.add('read', one.pin, one.definition, () => {})
    await store.replace('read', { ...another.pin, by: 'vera' }, another.definition, one.pin)
    assert.equal(await store.definition(one.pin.hash), undefined)
    assert.deepEqual(await store.definition(another.pin.hash), another.definition)
    store.readAll((answer) => {
      assert.ok('value' in answer)
      assert.deepEqual([...answer.value.pins], [['read', { ...another.pin, by: 'vera' }]])
    })
  })
})
