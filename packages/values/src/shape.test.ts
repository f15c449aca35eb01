import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ConfigError } from './errors.ts'
import { checkShape, shapeOf } from './shape.ts'

interface Options {
  readonly policy?: string
  readonly limits?: string
}
const OPTIONS = shapeOf<Options>({ policy: true, limits: true })

describe('checkShape', () => {
  it('accepts known keys, in any number', () => {
    checkShape('createGate', {}, OPTIONS)
    checkShape('createGate', { policy: 'p', limits: undefined }, OPTIONS)
  })

  it('names an unknown key with its path and the nearest known one', () => {
    assert.throws(
      () => checkShape('createGate', { polices: 'p' }, OPTIONS),
      (error) =>
        error instanceof ConfigError &&
        error.path === 'createGate.polices' &&
        error.message === 'createGate.polices: unknown option; did you mean "policy"? The options are policy, limits',
    )
    assert.throws(
      () => checkShape('', { frobnicate: 1 }, OPTIONS),
      /^ConfigError: frobnicate: unknown option; the options are/,
    )
  })

  it('sees keys of a prototype, and __proto__ as a key of its own', () => {
    assert.throws(() => checkShape('o', Object.create({ polcy: 1 }), OPTIONS), /o\.polcy: unknown option/)
    assert.throws(() => checkShape('o', JSON.parse('{"__proto__":1}'), OPTIONS), /o\.__proto__: unknown option/)
  })

  it('refuses what is not an object', () => {
    for (const value of [null, [], 'policy', 1, undefined])
      assert.throws(() => checkShape('createGate', value, OPTIONS), /createGate: must be an object/)
  })

  it('refuses what keeps its values elsewhere: a promise, a Map, a Set', () => {
    for (const value of [new Map([['polcy', 'p']]), new Set(['polcy']), new URLSearchParams('polcy=p')])
      assert.throws(() => checkShape('createGate', value, OPTIONS), /createGate: must be an object/)
    assert.throws(
      () => checkShape('createGate', Promise.resolve({ policy: 'p' }), OPTIONS),
      /createGate: is a promise: await it first/,
    )
  })
})
