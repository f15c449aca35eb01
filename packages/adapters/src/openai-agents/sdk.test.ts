import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { readArguments } from './sdk.ts'

describe('readArguments', () => {
  it('reads a key with an escape as it is written, after any earlier text', () => {
    JSON.parse(String.raw`{"zz":1,"pat\\":1}`)
    assert.deepEqual(readArguments(String.raw`{"zz":1,"pat\u0068":1}`), {
      input: { zz: 1, path: 1 },
      malformed: undefined,
    })
  })

  it('refuses a key that stays escaped in the text that the SDK parses again', () => {
    for (const text of [String.raw`{"a":{"pat\\":1}}`, String.raw`{"a\"b":1}`, String.raw`{"a\n":1}`])
      assert.match(readArguments(text).malformed ?? '', /a key with a quote, a backslash/, text)
  })

  it('refuses a key that occurs twice, and any value but an object', () => {
    assert.match(readArguments(String.raw`{"a":1,"\u0061":2}`).malformed ?? '', /occurs twice/)
    assert.equal(readArguments('[]').malformed, 'must be a JSON object')
    assert.equal(readArguments('{').malformed, 'is not valid JSON')
  })
})
