import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { parseDigits, writeDigits } from './digits.ts'
import { toJsonParts } from './exact-text.ts'

const TEXT = '{"id":1915883588174806058,"n":5,"d":0.5,"e":1e+30}'

describe('an integer beyond 2^53 in the console', () => {
  it('is parsed, shown and sent with its digits', () => {
    assert.equal(writeDigits(parseDigits(TEXT)), TEXT)
    const shown = toJsonParts(parseDigits(TEXT)).map((part) => ('text' in part ? part.text : ''))
    assert.match(shown.join(''), /"id": 1915883588174806058,/)
  })
})
