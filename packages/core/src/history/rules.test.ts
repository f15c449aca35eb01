import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { parseSelector } from '../tools/selector.ts'
import { sha256Hex } from '@toolgate/values'
import { canonicalize } from '@toolgate/values/json'
import type { CallPattern } from './facts.ts'
import { hashOfTuple } from './rules.ts'

describe('hashOfTuple', () => {
  it('is the hash of the canonical JSON of key and values, also when it is asked again', () => {
    fc.assert(
      fc.property(fc.string(), fc.array(fc.jsonValue(), { maxLength: 3 }), (text, values) => {
        const key = JSON.stringify([text])
        const pattern: CallPattern = { event: 'began', selector: parseSelector('*'), fields: [], key }
        const expected = plainly(() => sha256Hex(canonicalize([key, ...values])))
        for (let time = 0; time < 2; time++) assert.equal(hashOfTuple(pattern, values), expected)
        assert.equal(
          hashOfTuple(pattern, ['x'.repeat(1000)]),
          plainly(() => sha256Hex(canonicalize([key, 'x'.repeat(1000)]))),
        )
      }),
    )
  })
})

function plainly(hash: () => string): string | undefined {
  try {
    return hash()
  } catch {
    return undefined
  }
}
