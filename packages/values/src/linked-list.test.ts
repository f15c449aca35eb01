import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { LinkedList } from './linked-list.ts'

describe('LinkedList', () => {
  it('has its items in the order in which they came', () => {
    const list = new LinkedList<{ name: string }>()
    assert.ok(list.isEmpty)
    const [a, b, c] = ['a', 'b', 'c'].map((name) => list.add({ name }))
    assert.ok(a && b && c)
    list.remove(b)
    assert.deepEqual(list.items(), [{ name: 'a' }, { name: 'c' }])
    assert.ok(!list.isEmpty)
    list.remove(a)
    list.remove(c)
    assert.deepEqual(list.items(), [])
    assert.ok(list.isEmpty)
  })

  it('keeps nothing of an item in its link, nor of its neighbours, once it is removed', () => {
    const list = new LinkedList<object>()
    const links = [{}, {}, {}].map((item) => list.add(item))
    for (const link of links) list.remove(link)
    const empty = { item: undefined, before: undefined, after: undefined }
    assert.deepEqual(links, [empty, empty, empty])
  })

  it('has what a Set would have, whatever comes and goes', () =>
    fc.assert(
      fc.property(fc.array(fc.nat(20)), (numbers) => {
        const list = new LinkedList<object>()
        const set = new Set<object>()
        const links = new Map<number, { item: object; link: ReturnType<typeof list.add> }>()
        for (const number of numbers) {
          const known = links.get(number)
          if (known) {
            // Every second time an item is removed twice.
            for (let times = 0; times <= number % 2; times++) list.remove(known.link)
            set.delete(known.item)
            links.delete(number)
          } else {
            const item = { number }
            links.set(number, { item, link: list.add(item) })
            set.add(item)
          }
          assert.deepEqual(list.items(), [...set])
          assert.equal(list.isEmpty, set.size === 0)
        }
      }),
    ))
})
