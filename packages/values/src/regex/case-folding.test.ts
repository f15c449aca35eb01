import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { casesOf } from './case-folding.ts'
import { createPattern } from './pattern.ts'

const plenty = () => ({ left: 1e8 })
const escaped = (codePoint: number) => `\\u{${codePoint.toString(16)}}`

describe('casesOf', () => {
  it('has the cases that the flags iu have, for every character of Unicode', () => {
    const all = Array.from({ length: 0x110000 }, (_, codePoint) => codePoint).filter(
      (one) => one < 0xd800 || one > 0xdfff,
    )
    const cased = all
      .map((one) => String.fromCodePoint(one))
      .filter((text) => /\p{Changes_When_Casemapped}|\p{Cased}/u.test(text))
    assert.ok(cased.length > 4000)
    const text = cased.join('')
    for (const character of cased) {
      const codePoint = character.codePointAt(0) as number
      const native = [...text.matchAll(new RegExp(escaped(codePoint), 'giu'))].map(([found]) => found.codePointAt(0))
      assert.deepEqual(casesOf(codePoint).toSorted(), native.toSorted(), escaped(codePoint))
    }
  })
})

describe('(?i)', () => {
  const characters = Array.from('aAzZkKsSµıiIİ09_-ßẞſKéÉσςΣǅǆ\u0345ιι')
  const sources = [
    '\\w \\W \\d \\s \\S \\p{Lu} \\P{Lu} \\p{Ll} \\P{Ll} \\p{L} \\p{ASCII}',
    '[\\w] [^\\w] [\\W] [^\\W] [\\p{Lu}] [^\\p{Lu}] [^\\P{Ll}] [a-z] [^a-z] [A-K\\d]',
    'k K s ſ σ ς ß i ı . [ς-φ] [\\W\\d] [_\\P{L}]',
  ].flatMap((line) => line.split(' '))
  for (const source of sources)
    it(`matches ${source} as the flag i of JavaScript does`, () => {
      for (const one of characters)
        assert.equal(
          createPattern(`^(?i)${source}$`, 'ecma').test(one, plenty()),
          new RegExp(`^${source}$`, 'iu').test(one),
          JSON.stringify([source, one]),
        )
    })

  it('holds for its group only', () => {
    const test = (text: string) => createPattern('^(?i:\\p{Lu})\\p{Lu}$', 'ecma').test(text, plenty())
    assert.deepEqual(['aA', 'AA', 'aa', 'Aa'].map(test), [true, true, false, false])
  })
})
