import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createKeyHash } from './key-hash.ts'

/** Of large factors that are known, so that sums can be checked. */
function counted(): (words: Uint32Array) => void {
  return (words) => words.forEach((_, i) => (words[i] = 0xffff_fff0 - i * 7919))
}

const PRIME = 4_294_967_291n

/** The definition, in whole numbers of any size. */
function byDefinition(text: string, factors: readonly number[]): readonly [number, number] {
  const sum = (offset: number): number => {
    let total = 0n
    for (let i = 0; i < text.length; i++)
      total += BigInt(text.charCodeAt(i) + 1) * BigInt(factors[2 * i + offset] as number)
    return Number(BigInt.asIntN(32, total % PRIME))
  }
  return [sum(0), sum(1)]
}

describe('createKeyHash', () => {
  it('gives the sums of units and random factors, modulo a prime, exactly', () => {
    const words = new Uint32Array(2 * 513)
    counted()(words)
    const factors = [...words].filter((word) => BigInt(word) < PRIME)
    const hash = createKeyHash(counted())
    for (const text of [
      '',
      'a',
      'a\0',
      'web:search',
      '\uFFFE'.repeat(512),
      'x'.repeat(17),
      '\uD800',
      'é'.repeat(400),
    ]) {
      const { low, high } = hash(text)
      assert.deepEqual([low, high], byDefinition(text, factors), JSON.stringify(text.slice(0, 20)))
    }
  })

  it('differs from one to another: the random numbers are of its own', () => {
    const hashes = Array.from({ length: 20 }, () => createKeyHash()('a key').low)
    assert.ok(new Set(hashes).size > 15)
  })

  it('keeps apart keys that differ anywhere, at the end too', () => {
    const hash = createKeyHash()
    const keys = ['', '\0', 'a', 'a\0', 'a\0\0', 'b', 'ab', 'ba', 'x'.repeat(512), 'x'.repeat(513), 'x'.repeat(5000)]
    const seen = new Set(
      keys.map((key) => {
        const { low, high } = hash(key)
        return `${low},${high}`
      }),
    )
    assert.equal(seen.size, keys.length)
  })

  it('spreads keys that differ little: hardly more of their halves are alike than of random ones', () => {
    const hash = createKeyHash()
    const lows = new Set<number>()
    for (let i = 0; i < 200_000; i++) lows.add(hash(`6:search/60000|tool6:search|tenant4:acme|chat-|user${i}`).low)
    // Of 200,000 random ones about 5 are alike.
    assert.ok(lows.size > 199_900, `${200_000 - lows.size} are alike`)
  })
})
