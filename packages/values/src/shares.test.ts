import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import { createShares } from './shares.ts'

describe('createShares', () => {
  it('knows what each owner has, what it had first, and who has most', () => {
    const shares = createShares<string>()
    assert.deepEqual([shares.largest(), shares.sizeOf('vera'), shares.oldestOf('vera')], [undefined, 0, undefined])
    shares.add('vera', 'a')
    shares.add('omar', 'b')
    shares.add('omar', 'c')
    shares.add('omar', 'c')
    assert.deepEqual([shares.largest(), shares.sizeOf('omar'), shares.oldestOf('omar')], ['omar', 2, 'b'])
    shares.delete('omar', 'b')
    assert.deepEqual([shares.sizeOf('omar'), shares.oldestOf('omar'), shares.largest()], [1, 'c', 'vera'])
    shares.delete('vera', 'a')
    shares.delete('omar', 'c')
    shares.delete('omar', 'c')
    assert.deepEqual([shares.largest(), shares.sizeOf('omar')], [undefined, 0])
  })

  it('property: answers as a walk over all owners does', () => {
    const change = fc.record({
      isAdded: fc.boolean(),
      owner: fc.constantFrom('a', 'b', 'c', 'd'),
      item: fc.integer({ min: 0, max: 5 }),
    })
    fc.assert(
      fc.property(fc.array(change, { maxLength: 100 }), (changes) => {
        const shares = createShares<number>()
        const all = new Map<string, Set<number>>()
        for (const { isAdded, owner, item } of changes) {
          const own = all.get(owner) ?? new Set()
          all.set(owner, own)
          if (isAdded) own.add(item)
          else own.delete(item)
          shares[isAdded ? 'add' : 'delete'](owner, item)
          const most = Math.max(...[...all.values()].map(({ size }) => size))
          const largest = shares.largest()
          assert.equal(largest === undefined ? 0 : all.get(largest)?.size, most)
          assert.deepEqual([shares.sizeOf(owner), shares.oldestOf(owner)], [own.size, own.values().next().value])
        }
      }),
    )
  })
})
