import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { naiveOrigins } from '../../../../testing/support/naive-origins.ts'
import { runs } from '../../../../testing/src/runs.ts'
import { createOriginIndex } from './origin-index.ts'

/** Few addresses, near to one another, in many spellings: values of one text often stand in another. */
const address = fc.constantFrom(
  'bob@x.com',
  'Bob@X.com',
  'abob@x.com',
  'bob@x.com.evil.org',
  'https://good.com/a',
  'https://sub.Good.com/?q=1',
  'http://bob:pw@good.com',
  'good.com',
  'www.Good.com',
  'DE89370400440532013000',
  'DE89 3704 0044 0532 0130 00',
  '12345678',
  '1234',
  'Bob',
  'Jürgen Müller',
  'Ju\u0308rgen Mu\u0308ller',
  'bob%40x.com',
  'b\u200Bob@x.com',
  'ｂｏｂ＠ｘ．ｃｏｍ',
)
const glue = fc.constantFrom(
  ' ',
  '  ',
  '\n',
  '.',
  ',',
  ', ',
  ': ',
  '"',
  "'",
  '<',
  '>',
  '(',
  ') ',
  '/',
  '@',
  'mailto:',
  '-',
  '\u0301',
  '',
)
const text = fc.array(fc.tuple(glue, address, glue), { maxLength: 4 }).map((parts) => parts.flat().join(''))
const spelled = fc.oneof(
  { weight: 4, arbitrary: address },
  { weight: 2, arbitrary: text },
  {
    weight: 1,
    arbitrary: fc.tuple(text, fc.nat(12), fc.nat(20)).map(([all, from, length]) => all.slice(from, from + length)),
  },
)
const value = fc.oneof(
  { weight: 4, arbitrary: spelled },
  { weight: 1, arbitrary: fc.array(spelled, { maxLength: 3 }) },
  { weight: 1, arbitrary: fc.constantFrom(null, '', [], {}, 1234, 12345678, true, 5) },
  {
    weight: 1,
    arbitrary: fc.dictionary(fc.constantFrom('to', 'cc', 'bob@x.com', 'DE89 3704'), spelled, { maxKeys: 3 }),
  },
)
/** Long enough for a filter. */
const long = fc.constant({
  origin: 'untrusted' as const,
  text: Array.from({ length: 400 }, (_, i) => `word${i}`).join(' '),
})
const step = fc.record({ origin: fc.constantFrom('user', 'trusted', 'untrusted'), text: value })

function wordsOf(output: unknown): string {
  return typeof output === 'string' ? output : JSON.stringify(output)
}

describe('createOriginIndex', () => {
  it('answers as plain scans do, also after it was stored and restored', () => {
    fc.assert(
      fc.property(
        fc.array(fc.oneof({ weight: 5, arbitrary: step }, { weight: 1, arbitrary: long }), { maxLength: 5 }),
        fc.array(value, { minLength: 1, maxLength: 5 }),
        (steps, values) => {
          const naive = naiveOrigins()
          const index = createOriginIndex()
          const replica = createOriginIndex()
          for (const { origin, text: output } of steps) {
            if (origin === 'user') {
              naive.addWords(wordsOf(output))
              replica.restore(index.addWords(wordsOf(output)))
            } else {
              naive.addOutput(origin, output)
              replica.restore(index.addOutput(origin, output))
            }
          }
          const restored = createOriginIndex()
          restored.restore(index.items())
          for (const each of values) {
            const expected = naive.originOf(each)
            assert.equal(index.originOf(each), expected)
            assert.equal(replica.originOf(each), expected)
            assert.equal(restored.originOf(each), expected)
          }
        },
      ),
      runs(3000, 300_000),
    )
  })
})
