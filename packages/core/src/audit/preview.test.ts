import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { createRedactor, type Redactor } from '@toolgate/values/redact'
import { canonicalize } from '@toolgate/values/json'
import { cut } from '@toolgate/values'
import { MAX_PREVIEW, previewInput } from './preview.ts'

const redactor = createRedactor()
const inputs = fc.dictionary(fc.constantFrom('b', 'a', 'password', 'path'), fc.jsonValue({ maxDepth: 2 }))

function preview(input: unknown, redact: Redactor): string {
  return previewInput(input, canonicalize(input), redact)
}

describe('previewInput', () => {
  it('returns the beginning of the RFC 8785 form of what the redactor returns, frozen or not', () =>
    fc.assert(
      fc.property(inputs, fc.boolean(), (input, isFrozen) => {
        const expected = cut(canonicalize(redactor.redactValue(input)), MAX_PREVIEW)
        assert.equal(preview(isFrozen ? Object.freeze(input) : input, redactor), expected)
      }),
    ))

  it('shows what a redactor returns that masks an input in place', () => {
    const redactValue = (value: unknown) => Object.assign(value as object, { path: '[redacted]' })
    assert.equal(preview({ path: 'a' }, { ...redactor, redactValue }), '{"path":"[redacted]"}')
  })
})
