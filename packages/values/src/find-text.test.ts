import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { createFind, findLast, findText } from './find-text.ts'

/** Texts of few letters, so that they stand in each other, and repeat themselves. */
const text = fc.string({ unit: fc.constantFrom('a', 'b'), maxLength: 200 })
const wanted = fc.oneof(
  fc.string({ unit: fc.constantFrom('a', 'b'), maxLength: 5 }),
  fc
    .tuple(fc.constantFrom('a', 'ab', 'aab', ''), fc.nat(60), fc.constantFrom('', 'b'))
    .map(([one, n, end]) => one.repeat(n) + end),
)

describe('createFind and findText', () => {
  it('find the same places as the engine', () => {
    fc.assert(
      fc.property(text, wanted, fc.nat(200), (one, other, from) => {
        for (const where of [one, one + other + one, other.slice(1) + other]) {
          const at = Math.min(from, where.length)
          assert.equal(createFind(other)(where, at), where.indexOf(other, at))
          assert.equal(findText(where, other, at), where.indexOf(other, at))
        }
      }),
    )
  })

  it('end soon for texts for which the engine goes back at each character', () => {
    const long = 'a'.repeat(1_000_000)
    const piece = `${'a'.repeat(1000)}b${'a'.repeat(400_000)}`
    assert.equal(findText(long, piece, 0), -1)
    assert.equal(findLast(long, piece, long.length), -1)
  })
})

describe('findLast', () => {
  it('finds the same places as the engine', () => {
    fc.assert(
      fc.property(text, wanted, fc.nat(300), (one, other, to) => {
        for (const where of [one, one + other + one, other + other])
          assert.equal(findLast(where, other, to), where.lastIndexOf(other, to))
      }),
    )
  })
})
