import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { findMetadata } from './metadata-places.ts'

const take = (body: object) => ('good' in body ? body : 'is something else')

describe('findMetadata', () => {
  it('returns the first body that is taken, and asks no place after it', async () => {
    const asked: string[] = []
    const ask = async (place: string) => {
      asked.push(place)
      return { status: 200, body: place === 'b' ? { good: 1, none: null } : {} }
    }
    assert.deepEqual(await findMetadata(['a', 'b', 'c'], ask, take), { found: { good: 1 } })
    assert.deepEqual(asked, ['a', 'b'])
  })

  it('returns what each place answered, and what kept it from answering', async () => {
    const ask = async (place: string) => {
      if (place === 'a') throw new Error('a cannot be reached')
      return { status: place === 'b' ? 403 : 200, body: place === 'c' ? 'text' : {} }
    }
    assert.deepEqual(await findMetadata(['a', 'b', 'c', 'd'], ask, take), {
      answers: ['a cannot be reached', 'b answered 403', 'c answered 200 without a JSON object', 'd is something else'],
    })
  })

  it('asks no further place after its time', async () => {
    let now = 0
    const ask = async () => {
      now += 600
      return { status: 500 }
    }
    const read = await findMetadata(['a', 'b', 'c'], ask, take, { totalMs: 1000, nowMs: () => now })
    assert.deepEqual(read, {
      answers: ['a answered 500', 'b answered 500', 'c was not asked, as the others took long'],
    })
  })
})
