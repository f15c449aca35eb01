import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { fromStoredText, toStoredText } from './stored-text.ts'

describe('toStoredText', () => {
  it('keeps all JSON, whatever its keys', () => {
    const key = fc.oneof(fc.string(), fc.constantFrom('~', '~bytes', '~url', '__proto__', 'constructor'))
    const { json } = fc.letrec((tie) => ({
      json: fc.oneof(
        { maxDepth: 4 },
        fc.jsonValue(),
        fc.array(tie('json'), { maxLength: 3 }),
        fc.array(fc.tuple(key, tie('json')), { maxLength: 2 }).map((entries) => Object.fromEntries(entries)),
      ),
    }))
    fc.assert(
      fc.property(json, (value) =>
        assert.deepEqual(fromStoredText(toStoredText(value)), JSON.parse(JSON.stringify(value))),
      ),
      { numRuns: 500 },
    )
  })

  it('keeps bytes and addresses', () => {
    const bytes = Buffer.from('xäy').subarray(1)
    const value = { data: bytes, more: [new Uint8Array([1, 2]).buffer], at: new URL('https://example.com/?q=1') }
    assert.deepEqual(fromStoredText(toStoredText(value)), {
      data: new Uint8Array(bytes),
      more: [new Uint8Array([1, 2])],
      at: new URL('https://example.com/?q=1'),
    })
  })

  it('leaves out what JSON leaves out, and writes what says how', () => {
    assert.deepEqual(fromStoredText(toStoredText({ a: undefined, b: () => 1, c: new Date(0), d: [undefined] })), {
      c: '1970-01-01T00:00:00.000Z',
      d: [null],
    })
  })

  it('refuses what has no JSON', () => {
    const around: { self?: unknown } = {}
    around.self = around
    assert.throws(() => toStoredText(around), RangeError)
    assert.throws(() => toStoredText(1n), TypeError)
  })
})
