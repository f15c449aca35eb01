import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { nearestNames } from './nearest.ts'

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

  it('compares the beginnings of names that are very long', () => {
    const long = 'a'.repeat(1_000_000)
    assert.deepEqual(nearestNames(long, [`b${long}`, long], 1), [long])
  })
})
