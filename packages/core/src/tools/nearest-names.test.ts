import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { nearestNames } from './nearest-names.ts'

describe('nearestNames', () => {
  it('puts the most alike first', () => {
    assert.deepEqual(nearestNames('serach', ['read', 'search', 'sarch'], 2), ['search', 'sarch'])
  })

  it('keeps the order of names that are equally alike', () => {
    assert.deepEqual(nearestNames('x', ['a', 'b', 'c'], 3), ['a', 'b', 'c'])
  })

  it('gives what there is', () => {
    assert.deepEqual(nearestNames('x', [], 3), [])
    assert.deepEqual(nearestNames('x', ['long-name'], 3), ['long-name'])
    assert.deepEqual(nearestNames('x', ['a', 'b'], 0), [])
  })

  it('finds a misspelt name among very many, at the beginning, in the middle and at the end', () => {
    const names = Array.from({ length: 10_000 }, (_, i) => `server_${i % 50}__some_tool_of_it_${i}`)
    for (const asked of ['sever_7__some_tool_of_it_57', 'server_7__sme_tool_of_it_57', 'server_7__some_tool_of_it_57x'])
      assert.equal(nearestNames(asked, names, 20)[0], 'server_7__some_tool_of_it_57', asked)
  })

  it('gives as many as it is asked for, in the order of the names, where none of very many is alike', () => {
    const names = Array.from({ length: 1000 }, (_, i) => `tool_${i + 1000}`)
    assert.deepEqual(nearestNames('?', names, 20), names.slice(0, 20))
  })

  it('compares the beginnings of names that are very long', () => {
    const long = 'a'.repeat(1_000_000)
    assert.deepEqual(nearestNames(long, [`b${long}`, long], 1), [long])
  })

  it('counts what must be added, taken away or replaced', () => {
    const text = fc.string({ unit: fc.constantFrom('a', 'b', 'c'), maxLength: 6 })
    fc.assert(
      fc.property(text, fc.array(text, { minLength: 2, maxLength: 6 }), (asked, names) => {
        const ranked = nearestNames(asked, names, names.length).map((name) => distance(asked, name))
        assert.deepEqual(
          ranked,
          ranked.toSorted((a, b) => a - b),
        )
      }),
      { numRuns: 300 },
    )
  })
})

/** Levenshtein's distance as it is defined. */
function distance(a: string, b: string): number {
  if (a === '' || b === '') return a.length + b.length
  if (a[0] === b[0]) return distance(a.slice(1), b.slice(1))
  return 1 + Math.min(distance(a.slice(1), b), distance(a, b.slice(1)), distance(a.slice(1), b.slice(1)))
}
