import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { createFinder, createPattern } from './pattern.ts'
import { MAX_LOOKS } from './program.ts'
import { runs } from '../../../testing/src/runs.ts'

const plenty = () => ({ left: 1e8 })

const character = fc.constantFrom(
  'a',
  'b',
  'c',
  '1',
  'é',
  '.',
  '[ab]',
  '[^a]',
  '\\d',
  '\\w',
  '\\s',
  '\\n',
  '😀',
  '[a-c😀]',
)
const assertion = fc.constantFrom('^', '$', '\\b')
const repeat = fc.constantFrom('*', '+', '?', '*?', '+?', '??', '{2}', '{1,3}', '{0,2}?', '{2,}')
const text = fc
  .array(fc.constantFrom('a', 'b', 'c', '1', ' ', '\n', 'é', '😀', '_'), { maxLength: 12 })
  .map((parts) => parts.join(''))

const look = fc.constantFrom('?=', '?!', '?<=', '?<!')

/** Patterns; where only characters may repeat, no repeated part can be empty, and no part looks around. */
function patterns(onlyCharactersRepeat: boolean): fc.Arbitrary<string> {
  const { any } = fc.letrec<{ any: string }>((tie) => ({
    any: fc.oneof(
      { maxDepth: 4 },
      character,
      assertion,
      fc.tuple(tie('any'), tie('any')).map(([a, b]) => a + b),
      fc.tuple(tie('any'), tie('any')).map(([a, b]) => `(?:${a}|${b})`),
      ...(onlyCharactersRepeat ? [] : [fc.tuple(look, tie('any')).map(([sign, a]) => `(${sign}${a})`)]),
      fc.tuple(onlyCharactersRepeat ? character : tie('any'), repeat).map(([a, sign]) => `(?:${a})${sign}`),
    ),
  }))
  return any
}

describe('createPattern', () => {
  it('answers as the engine of JavaScript does', () => {
    fc.assert(
      fc.property(patterns(false), text, (source, sample) => {
        const looks = source.match(/\(\?<?[=!]/g)?.length ?? 0
        // V8 also looks around between the halves of a surrogate pair, where ECMA-262 tries no match.
        fc.pre(looks === 0 || (looks <= MAX_LOOKS && !sample.includes('😀')))
        assert.equal(createPattern(source, 'ecma').test(sample, plenty()), new RegExp(source, 'u').test(sample))
      }),
      runs(2000, 2000),
    )
  })
})

describe('createFinder', () => {
  it('finds the matches of the JavaScript engine, if no repeated part can be empty', () => {
    fc.assert(
      fc.property(patterns(true), text, (source, sample) => {
        const expected = [...sample.matchAll(new RegExp(source, 'gu'))].flatMap(({ 0: found, index }) =>
          found === '' ? [] : [{ start: index, end: index + found.length }],
        )
        assert.deepEqual(createFinder(source, 'ecma').matches(sample, plenty()), expected)
      }),
      runs(2000, 2000),
    )
  })
})
