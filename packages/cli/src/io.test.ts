import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { jsonText, printable } from './io.ts'

describe('printable', () => {
  const table: readonly (readonly [what: string, text: string, printed: string])[] = [
    ['colours and cursor moves', 'a\u001b[2Jb\u009b1m', 'a\\u001b[2Jb\\u009b1m'],
    ['line breaks, which would forge a line', 'a\r\nok\u2028b', 'a\\u000d\\u000aok\\u2028b'],
    ['what turns the text around', 'a\u202eb\u2066c\u061cd\u200fe', 'a\\u202eb\\u2066c\\u061cd\\u200fe'],
    ['what cannot be seen', 'a\u200bb\u00adc\ufeffd\u180ee', 'a\\u200bb\\u00adc\\ufeffd\\u180ee'],
    ['tag characters, which only a model reads', 'a\u{e0041}b', 'a\\udb40\\udc41b'],
    ['nothing else', 'Grüße, 世界 👋\ttab', 'Grüße, 世界 👋\ttab'],
  ]
  for (const [what, text, printed] of table) it(`spells out ${what}`, () => assert.equal(printable(text), printed))
})

describe('jsonText', () => {
  it('returns equal JSON without anything that a terminal would interpret', () => {
    const value = { tool: 'a\u009b31m\u202eb\u007f\u{e0041}\n"\u2028', list: [1, 'Grüße 👋'] }
    for (const indent of [undefined, 2]) {
      const text = jsonText(value, indent)
      assert.deepEqual(JSON.parse(text), value)
      assert.doesNotMatch(text, /[\u007f-\u009f\u2028\u202e\u{e0000}-\u{e0fff}]/u)
    }
    assert.equal(jsonText({ a: ['b'] }, 2), JSON.stringify({ a: ['b'] }, undefined, 2))
  })
})
