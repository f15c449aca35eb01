import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { stem } from './stem.ts'

describe('stem', () => {
  it('gives the forms of a word one stem', () => {
    const families = [
      'create creates created creating',
      'list lists listed listing',
      'stop stops stopped stopping',
      'query queries',
      'box boxes boxed',
      'class classes',
      'search searches searched searching',
      'merge merges merged merging',
      'message messages',
      'file files',
    ]
    for (const family of families) {
      const stems = new Set(family.split(' ').map(stem))
      assert.equal(stems.size, 1, `${family} → ${[...stems].join(' ')}`)
    }
  })

  it('keeps apart what is not of one word', () => {
    const pairs = [
      ['string', 'str'],
      ['speed', 'spe'],
      ['status', 'statu'],
      ['process', 'proce'],
      ['need', 'ne'],
      ['thing', 'th'],
      ['calling', 'cal'],
    ] as const
    for (const [a, b] of pairs) assert.notEqual(stem(a), stem(b))
  })

  it('leaves other letters and short words alone', () => {
    for (const word of ['dns', 'css', 'ids', 'страницы', '検索', 's3s', 'größes', '2025'])
      assert.equal(stem(word), word)
  })

  it('gives something for every word, and never more than there was', () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[a-z]{1,64}$/), (word) => {
        assert.ok(stem(word).length > 0 && stem(word).length <= word.length)
      }),
    )
  })
})
