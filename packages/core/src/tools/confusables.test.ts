import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { findConfusions, skeleton } from './confusables.ts'

describe('skeleton', () => {
  const alike: readonly (readonly [what: string, a: string, b: string])[] = [
    ['a Cyrillic а', 'read', 're\u0430d'],
    ['a Greek ο', 'to', 't\u03bf'],
    ['wide letters', 'read', '\uff52ead'],
    ['mathematical letters', 'read', '\u{1d42b}ead'],
    ['1, I and l', 'l1I', '1Il'],
    ['0 and O', 'v0', 'vO'],
    ['rn and m', 'modern', 'modem'],
    ['composed and decomposed letters', '\u00e9tat', 'e\u0301tat'],
    ['a variation selector', 'star', 'star\ufe0f'],
    ['hyphens', 'a-b', 'a\u2010b'],
  ]
  for (const [what, a, b] of alike) {
    it(`is the same for ${what}`, () => assert.equal(skeleton(a), skeleton(b)))
  }

  it('differs for names that look different', () => {
    const names = ['read', 'Read', 'reed', 'reád', 'read_', 'raed', '読む', 'читать']
    assert.equal(new Set(names.map(skeleton)).size, names.length)
  })
})

describe('findConfusions', () => {
  const mixed: readonly (readonly [name: string, scripts: string])[] = [
    ['re\u0430d', 'Latin and Cyrillic'],
    ['\u03b1lpha', 'Greek and Latin'],
    ['чит\u0251ть', 'Cyrillic and Latin'],
    ['\u13aace', 'Cherokee and Latin'],
    ['a\u{10330}', 'Latin and other'],
  ]
  for (const [name, scripts] of mixed) {
    it(`finds that ${name} mixes ${scripts}`, () => {
      const [confusion] = findConfusions([`files:${name}`])
      assert.match(confusion?.text ?? '', new RegExp(`mixes ${scripts} letters$`))
    })
  }

  it('takes each part of an id by itself, and what goes together for one', () => {
    const fine = [
      'файлы:read',
      'читать_1',
      'größe',
      'read⚡',
      '読み取りtool',
      'ファイルread',
      '한국어tool',
      'λ',
      '查找_files',
    ]
    assert.deepEqual(findConfusions(fine), [])
  })

  it('puts all that look alike into one', () => {
    assert.deepEqual(
      findConfusions(['a:1', 'a:I', 'a:l', 'b:1']).map(({ ids }) => ids),
      [['a:1', 'a:I', 'a:l']],
    )
  })

  it('takes names that objects inherit for names', () => {
    assert.deepEqual(findConfusions(['__proto__', 'constructor', 'toString']), [])
  })
})
