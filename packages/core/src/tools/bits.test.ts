import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { addBits, bitsWhere, firstOf, hasBit, invertBits, isEmpty, membersOf, noBits, setBit } from './bits.ts'

const sized = fc.nat(130).chain((size) => fc.record({ size: fc.constant(size), a: some(size), b: some(size) }))

function some(size: number): fc.Arbitrary<number[]> {
  return fc.subarray(Array.from({ length: size }, (_, i) => i))
}

function bitsOf(size: number, members: readonly number[]) {
  const bits = noBits(size)
  for (const member of members) setBit(bits, member)
  return bits
}

describe('bits', () => {
  it('are a set: what was put in is in, in ascending order, and nothing else', () => {
    fc.assert(
      fc.property(sized, ({ size, a }) => {
        const bits = bitsOf(size, a)
        assert.deepEqual(membersOf(bits), a)
        assert.equal(isEmpty(bits), a.length === 0)
        assert.equal(firstOf(bits), a[0])
        for (let i = 0; i < size; i++) assert.equal(hasBit(bits, i), a.includes(i))
      }),
    )
  })

  it('unite and invert as sets do, and never hold a member beyond their size', () => {
    fc.assert(
      fc.property(sized, ({ size, a, b }) => {
        const both = bitsOf(size, a)
        addBits(both, bitsOf(size, b))
        assert.deepEqual(new Set(membersOf(both)), new Set(a).union(new Set(b)))
        const rest = Array.from({ length: size }, (_, i) => i).filter((i) => !a.includes(i))
        assert.deepEqual(membersOf(invertBits(bitsOf(size, a), size)), rest)
      }),
    )
  })

  it('are found by a test, of all or of some', () => {
    fc.assert(
      fc.property(sized, ({ size, a }) => {
        const even = (i: number) => i % 2 === 0
        assert.deepEqual(membersOf(bitsWhere(size, even, bitsOf(size, a))), a.filter(even))
        assert.equal(membersOf(bitsWhere(size, even)).length, Math.ceil(size / 2))
      }),
    )
  })
})
