import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createLater } from './later.ts'

const Part = (): null => null

describe('a part that is loaded on demand', () => {
  it('is loaded once, when it is first asked for, and tells when it is there', async () => {
    let loads = 0
    let told = 0
    const part = createLater(async () => {
      loads++
      return Part
    })
    const stop = part.subscribe(() => told++)
    assert.deepEqual([loads, part.current], [0, {}])
    await Promise.all([part.load(), part.load()])
    assert.deepEqual([loads, told, part.current], [1, 1, { Content: Part }])
    stop()
  })

  it('tells of a failure, and does not throw', async () => {
    const part = createLater<object>(() => Promise.reject(new Error('gone')))
    await part.load()
    assert.deepEqual(part.current, { hasFailed: true })
  })
})
