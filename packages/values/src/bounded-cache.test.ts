import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createBoundedCache } from './bounded-cache.ts'

describe('createBoundedCache', () => {
  it('remembers what was put in, the latest value of a key', () => {
    const cache = createBoundedCache<string, number>(10)
    cache.set('a', 1)
    cache.set('a', 2)
    assert.deepEqual([cache.get('a'), cache.get('b')], [2, undefined])
  })

  it('forgets what was not asked for lately, and keeps what was', () => {
    const cache = createBoundedCache<number, number>(10)
    cache.set(-1, -1)
    for (let i = 0; i < 1000; i++) {
      cache.set(i, i)
      assert.equal(cache.get(-1), -1)
    }
    assert.equal(cache.get(0), undefined)
    assert.equal(cache.get(999), 999)
  })

  it('holds at most twice its capacity', () => {
    const cache = createBoundedCache<number, number>(10)
    for (let i = 0; i < 1000; i++) cache.set(i, i)
    const held = Array.from({ length: 1000 }, (_, i) => i).filter((i) => cache.get(i) !== undefined)
    assert.ok(held.length <= 20)
  })
})
