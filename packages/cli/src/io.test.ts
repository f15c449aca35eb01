import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { printable } from './io.ts'

describe('printable', () => {
  const table: readonly (readonly [what: string, text: string, printed: string])[] = [
    ['colours and cursor moves', 'a\u001b[2Jb\u009b1m', 'a\\u001b[2Jb\\u009b1m'],
    ['line breaks, which would forge a line', 'a\r\nok\u2028b', 'a\\u000d\\u000aok\\u2028b'],
    ['what turns the text around', 'a\u202eb\u2066c\u061cd\u200fe', 'a\\u202eb\\u2066c\\u061cd\\u200fe'],
    ['what cannot be seen', 'a\u200bb\u00adc\ufeffd\u180ee', 'a\\u200bb\\u00adc\\ufeffd\\u180ee'],
    ['nothing else', 'Grüße, 世界 👋\ttab', 'Grüße, 世界 👋\ttab'],
  ]
  for (const [what, text, printed] of table) it(`spells out ${what}`, () => assert.equal(printable(text), printed))
})
