import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { cut, didYouMean, editDistance, nearestNames, nearestOf } from './text.ts'
import { runs } from '../../testing/src/runs.ts'

describe('didYouMean', () => {
  it('names the known word that was meant', () => {
    assert.equal(nearestOf('comand', ['command', 'package']), 'command')
    assert.equal(nearestOf('sevrers', ['servers', 'callers']), 'servers')
    assert.equal(nearestOf('dependson', ['dependsOn']), 'dependsOn')
    assert.equal(nearestOf('unles', ['when', 'unless']), 'unless')
    assert.equal(nearestOf('policies', ['tools', 'policy']), 'policy')
    assert.equal(didYouMean('rolls', ['user', 'roles']), '; did you mean "roles"?')
  })

  it('says nothing when no known word is near', () => {
    assert.equal(didYouMean('frobnicate', ['listen', 'servers']), '')
    assert.equal(didYouMean('x', ['id']), '')
  })
})

describe('cut', () => {
  it('keeps a text that fits, and halves no character', () => {
    assert.deepEqual([cut('abcd', 4), cut('abcde', 4), cut('ab\u{1f600}cd', 4)], ['abcd', 'abc…', 'ab…'])
  })
})

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

  it('counts what must be added, taken away, replaced or swapped', () => {
    const text = fc.string({ unit: fc.constantFrom('a', 'b', 'c'), maxLength: 6 })
    fc.assert(
      fc.property(text, fc.array(text, { minLength: 2, maxLength: 6 }), (asked, names) => {
        const ranked = nearestNames(asked, names, names.length).map((name) => distance(asked, name))
        assert.deepEqual(
          ranked,
          ranked.toSorted((a, b) => a - b),
        )
      }),
      runs(300, 300),
    )
  })
})

describe('editDistance', () => {
  const text = fc.string({ unit: fc.constantFrom('a', 'b', 'c'), maxLength: 6 })

  it('is as it is defined, up to a limit', () => {
    fc.assert(
      fc.property(text, text, fc.nat({ max: 7 }), (a, b, limit) => {
        assert.equal(editDistance(a, b), distance(a, b))
        assert.equal(editDistance(a, b, limit), Math.min(distance(a, b), limit))
      }),
    )
  })

  it('compares long texts, too', () => {
    const long = 'abc'.repeat(100)
    assert.equal(editDistance(`x${long}`, `${long}y`), 2)
  })
})

/** The distance of optimal string alignment, as it is defined. */
function distance(a: string, b: string): number {
  if (a === '' || b === '') return a.length + b.length
  const [restA, restB] = [a.slice(1), b.slice(1)]
  const swapped = a[0] === b[1] && a[1] === b[0] && a.length > 1 ? 1 + distance(a.slice(2), b.slice(2)) : Infinity
  const replaced = (a[0] === b[0] ? 0 : 1) + distance(restA, restB)
  return Math.min(replaced, 1 + distance(restA, b), 1 + distance(a, restB), swapped)
}
