import assert from 'node:assert/strict'
import fc from 'fast-check'
import { describe, it } from 'node:test'
import { endsInWord, joinWords, stem, tokenize } from './tokenize.ts'
import { runs } from '../../../testing/src/runs.ts'

const ROWS: readonly (readonly [shows: string, text: string, words: readonly string[]])[] = [
  ['snake_case', 'read_text_file', ['read', 'text', 'file']],
  ['kebab-case', 'get-tiny-image', ['get', 'tiny', 'image']],
  ['a namespace', 'files:read', ['files', 'read']],
  ['camelCase, and the whole of it', 'readFile', ['read', 'file', 'readfile']],
  ['an acronym before a word', 'XMLParser', ['xml', 'parser', 'xmlparser']],
  ['an acronym in the plural', 'getURLs', ['get', 'urls', 'geturls']],
  ['digits from letters', 's3 base64', ['s', '3', 's3', 'base', '64', 'base64']],
  ['punctuation and pictures', 'Sends (all) mail! 🙂', ['sends', 'all', 'mail']],
  ['diacritics', 'Größe naïve mañana', ['grosse', 'naive', 'manana']],
  ['compatibility forms', 'ﬁle ｆｉｌｅ', ['file', 'file']],
  ['case where it has a form of its own', 'ΟΔΟΣ οδός İzmir', ['οδοσ', 'οδοσ', 'izmir']],
  ['what cannot be seen', 'a\u00adb c\u200bd', ['ab', 'cd']],
  ['Cyrillic', 'поиск_страниц', ['поиск', 'страниц']],
  ['Devanagari with its marks', 'मौसम पूर्वानुमान', ['मौसम', 'पूर्वानुमान']],
  ['Arabic with its digits', 'ملف١٢', ['ملف', '١٢', 'ملف١٢']],
  ['Japanese in pairs', 'ファイル', ['ファ', 'ァイ', 'イル']],
  ['Chinese in pairs, beside Latin', 'GitHub课题组', ['git', 'hub', 'github', '课题', '题组']],
  ['one character alone', '会', ['会']],
  ['Hangul in pairs', '파일을', ['파일', '일을']],
  ['Thai in pairs', 'ไฟล', ['ไฟ', 'ฟล']],
  ['nothing', ' \n-_:', []],
]

describe('tokenize', () => {
  for (const [shows, text, words] of ROWS) {
    it(`splits ${shows}`, () => assert.deepEqual(tokenize(text), words))
  }

  it('cuts words that are too long', () => {
    assert.deepEqual(tokenize('x'.repeat(1000)), ['x'.repeat(64)])
    assert.ok(tokenize('xY1'.repeat(1000)).every((word) => word.length <= 64))
  })

  it('returns words of letters and digits for any text, the same for capitals and other compositions', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 30 }), (text) => {
        const words = tokenize(text)
        for (const word of words) assert.match(word, /^[\p{L}\p{M}\p{N}]+$/u)
        assert.deepEqual(tokenize(text.normalize('NFD')), tokenize(text.normalize('NFC')))
      }),
      runs(500, 500),
    )
  })
})

describe('joinWords', () => {
  it('returns a name as one word, in every spelling', () => {
    for (const name of ['read_text_file', 'readTextFile', 'Read Text-File', 'réad:text:file'])
      assert.equal(joinWords(name), 'readtextfile')
  })
})

describe('endsInWord', () => {
  it('answers whether the last word may go on', () => {
    assert.equal(endsInWord('read fi'), true)
    assert.equal(endsInWord('検'), true)
    assert.equal(endsInWord('read file '), false)
    assert.equal(endsInWord(''), false)
  })
})

describe('stem', () => {
  it('returns one stem for the forms of a word', () => {
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

  it('keeps different words apart', () => {
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

  it('returns a stem for every word, never longer than the word', () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[a-z]{1,64}$/), (word) => {
        assert.ok(stem(word).length > 0 && stem(word).length <= word.length)
      }),
    )
  })
})
