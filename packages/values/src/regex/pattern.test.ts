import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { WorkSpentError } from '../work.ts'
import { createFinder, createPattern, createUnion } from './pattern.ts'
import type { PatternDialect } from './syntax.ts'

const plenty = () => ({ left: 1e8 })
const matches = (source: string, text: string, dialect: PatternDialect = 'ecma') =>
  createPattern(source, dialect).test(text, plenty())

describe('createPattern', () => {
  const table: readonly (readonly [source: string, yes: readonly string[], no: readonly string[]])[] = [
    ['^\\p{Lu}\\P{Lu}$', ['Ab', 'É1'], ['ab', 'AB']],
    ['^\\p{Script=Greek}+$', ['αβ'], ['ab']],
    ['^\\u0041\\x42\\u{43}\\cJ\\0$', ['ABC\n\0'], ['ABC']],
    ['^\\ud83d\\ude00$', ['😀'], ['😁']],
    ['^[^\\W_]+$', ['a1'], ['a_']],
    ['^[\\w.-]+$', ['a.b-c'], ['a b']],
    ['^[a\\-z]$', ['a', '-', 'z'], ['b']],
    ['^[\\b]$', ['\b'], ['b']],
    ['^a{,2}$', ['a{,2}'], ['a']],
    ['^x{2}}$', ['xx}'], ['xx']],
    ['^(?<year>\\d{4})$', ['2026'], ['26']],
    ['^.$', ['a', '\u0085'], ['\n', '\r', '\u2028', 'ab']],
    ['^\\s$', ['\u00a0', '\ufeff', ' '], ['_']],
    ['^[]$', [], ['', 'a']],
    ['^[^]$', ['\n'], ['']],
  ]
  for (const [source, yes, no] of table) {
    it(`reads ${source} as JavaScript does`, () => {
      const native = new RegExp(source, source.includes('{,') || source.includes('}}') ? '' : 'u')
      for (const [texts, expected] of [
        [yes, true],
        [no, false],
      ] as const) {
        for (const text of texts) {
          assert.equal(matches(source, text), expected, JSON.stringify(text))
          assert.equal(native.test(text), expected, `${JSON.stringify(text)} in JavaScript`)
        }
      }
    })
  }

  const others: readonly (readonly [source: string, yes: string, no: string])[] = [
    ['(?i)^case [a-c]+$', 'CASE aBc', 'CASE d'],
    ['^(?i:a)b$', 'Ab', 'AB'],
    ['(?m)^b$', 'a\nb\nc', 'a\nbb\nc'],
    ['(?s)^a.b$', 'a\nb', 'a\n\nb'],
    ['\\Aa\\z', 'a', 'ba'],
    ['^(?P<name>a)$', 'a', 'b'],
    ['^[[:alpha:]]+$', 'ab', 'a1'],
    ['^[[:^digit:]]$', 'a', '1'],
    ['^\\pL\\p{Greek}$', 'aα', 'αa'],
    ['^\\Qa.b\\E$', 'a.b', 'axb'],
    ['^(?#a comment)a$', 'a', 'b'],
  ]
  for (const [source, yes, no] of others) {
    it(`reads ${source} as RE2 or Python does`, () => {
      assert.deepEqual([matches(source, yes), matches(source, no)], [true, false])
    })
  }

  it('takes `.` and `]` as RE2 does where that is asked for', () => {
    assert.deepEqual([matches('^.$', '\r', 're2'), matches('^.$', '\r')], [true, false])
    assert.deepEqual([matches('^[]a]$', ']', 're2'), matches('^[^]a]$', ']', 're2')], [true, false])
  })

  const looking: readonly (readonly [source: string, texts: readonly string[]])[] = [
    ['^(?=.*[0-9])(?=.*[a-z])(?!.*\\s).{4,}$', ['abc1', '1234', 'ab1', 'ab 1', 'abcd']],
    ['(?<=a)b', ['ab', 'b', 'cb', 'aab']],
    ['(?<!a)b', ['ab', 'b', 'cb', 'abb']],
    ['a(?=b)', ['ab', 'ac', 'a', 'acab']],
    ['(?:^(?!a)|b)', ['a', 'b', '', 'ab']],
    ['a(?!b(?=c))x*$', ['abc', 'abd', 'a', 'axx']],
    ['^(?:(?!--)[a-z-])+$', ['a-b', 'a--b', '-', '--']],
    ['\\b(?=\\d)\\w+(?<=z)$', ['1z', 'z1', 'a 1z', '1zz']],
    ['(?<=^😀)a(?=😀$)', ['😀a😀', 'a', 'b😀a😀', '😀a']],
    ['(?<=(?<!x)y)z', ['yz', 'xyz', 'xyyz']],
  ]
  for (const [source, texts] of looking) {
    it(`looks around in ${source} as JavaScript does`, () => {
      for (const text of texts) assert.equal(matches(source, text), new RegExp(source, 'u').test(text), text)
    })
  }

  it('reads a text once for each lookaround', () => {
    const source = '^(?:a(?!.*c.*d)|(?<=a.*)b(?=(?:ab)*$))*$'
    for (const length of [1000, 100_000]) {
      const work = plenty()
      createPattern(source, 'ecma').test('ab'.repeat(length / 2), work)
      assert.ok(1e8 - work.left <= 5 * length + 10_000, `${1e8 - work.left} steps for ${length} characters`)
    }
  })

  const refused: readonly (readonly [source: string, reason: RegExp])[] = [
    ['(a)\\1', /backreference/],
    ['(?<n>a)\\k<n>', /backreference/],
    ['(?P<n>a)(?P=n)', /backreference/],
    ['(?=a)'.repeat(3) + 'a(?!b)'.repeat(6), /more than 8 lookarounds/],
    ['(?>a)', /atomic/],
    ['a++', /repeats a repeat/],
    ['*a', /repeats nothing/],
    ['(a', /does not close/],
    ['a)', /did not open/],
    ['[a', /ends too early/],
    ['[z-a]', /range/],
    ['a{3,1}', /below its beginning/],
    ['\\p{Nope}', /unknown property Nope/],
    ['\\q', /unknown escape/],
    ['a{20001}', /at most 20000/],
    ['((a{99}){99}){99}', /at most 20000/],
    [`${'('.repeat(300)}a`, /nests more than 200/],
    ['a'.repeat(10_001), /more than 10000 characters/],
  ]
  for (const [source, reason] of refused) {
    it(`refuses ${source.slice(0, 30)}`, () => {
      assert.throws(() => createPattern(source, 'ecma'), { name: 'PatternError', message: reason })
    })
  }

  it('takes one step for each character with every pattern, and few for its states', () => {
    const length = 100_000
    for (const [source, text] of [
      ['[0-9a-f]{40}', 'abcdef0123456789'.repeat(2).concat('x')],
      ['[ab]{0,500}c', 'ab'],
      ['^(a+)+$', 'a'],
      ['(a|aa)+$', 'a'],
      ['(.*)*x', 'ab'],
    ] as const) {
      const pattern = createPattern(source, 'ecma')
      // The first run makes the states. They are dropped once where other patterns have filled what is kept.
      const taken = [1, 2, 3].map(() => {
        const work = plenty()
        pattern.test(text.repeat(length / text.length), work)
        return 1e8 - work.left
      })
      assert.ok(Math.min(...taken) <= length + 1000, `${source} took ${taken.join(', ')} steps`)
    }
  })

  it('stops where the steps are used up, and not at the end of a long text', () => {
    const long = 'x1'.repeat(2_000_000)
    for (const source of ['x2y', 'y$', '(?<=b)x2'])
      assert.throws(() => createPattern(source, 'ecma').test(long, { left: 1000 }), WorkSpentError)
    const work = { left: 1000 }
    assert.throws(() => createPattern('x2y', 'ecma').test(long, work), WorkSpentError)
    assert.ok(work.left > -1000, `${work.left} steps are left`)
  })

  it('stops where the steps of states are used up', () => {
    const random = Array.from({ length: 100_000 }, (_, i) => 'ab'[(Math.imul(i, 2_654_435_761) >>> 13) & 1]).join('')
    assert.throws(() => createPattern('a[ab]{500}[ab]{500}c', 'ecma').test(random, { left: 200_000 }), WorkSpentError)
    assert.throws(() => createPattern('b', 'ecma').test('a'.repeat(1000), { left: 999 }), WorkSpentError)
  })

  it('forgets its states when they become many, and answers as before', () => {
    const random = Array.from({ length: 20_000 }, (_, i) => 'ab'[(Math.imul(i, 2_654_435_761) >>> 13) & 1]).join('')
    const patterns = Array.from({ length: 30 }, (_, i) => createPattern(`a[ab]{${50 + i}}c`, 'ecma'))
    for (const pattern of patterns) assert.equal(pattern.test(random, plenty()), false)
    for (const [i, pattern] of patterns.entries())
      assert.equal(pattern.test(`${random}a${'b'.repeat(50 + i)}c`, plenty()), true)
  })

  it('stops a lookaround where the steps are used up', () => {
    const random = Array.from({ length: 100_000 }, (_, i) => 'ab'[(Math.imul(i, 2_654_435_761) >>> 13) & 1]).join('')
    for (const source of ['x|b(?=c[ab]{500}a)', 'x|(?<=a[ab]{500}c)b', '(?:^|b)(?![ab]*a[ab]{300}c)'])
      assert.throws(() => createPattern(source, 'ecma').test(random, { left: 200_000 }), WorkSpentError, source)
  })
})

describe('createFinder', () => {
  const table: readonly (readonly [source: string, text: string, found: readonly string[]])[] = [
    ['INT-[0-9]{4}', 'see INT-1234, INT-12345', ['INT-1234', 'INT-1234']],
    ['a|ab', 'abab', ['a', 'a']],
    ['ab|a', 'aba', ['ab', 'a']],
    ['token=.*?;', 'token=a;b;token=c;', ['token=a;', 'token=c;']],
    ['token=.*;', 'token=a;b;', ['token=a;b;']],
    ['abcd|c', 'xabcd', ['abcd']],
    ['\\bkey\\b', 'key keys key', ['key', 'key']],
    ['(?m)^#.*$', '#a\nb\n#c', ['#a', '#c']],
    ['a*', 'baab', ['aa']],
  ]
  for (const [source, text, found] of table) {
    it(`finds ${source} in ${JSON.stringify(text)} from left to right, as RE2 does`, () => {
      const spans = createFinder(source, 're2').matches(text, plenty())
      assert.deepEqual(
        spans.map(({ start, end }) => text.slice(start, end)),
        found,
      )
    })
  }

  it('stops where the steps are used up: each match of `a.*b|a` reads the rest of the text', () => {
    assert.throws(() => createFinder('a.*b|a', 're2').matches('a'.repeat(10_000), { left: 1_000_000 }), WorkSpentError)
  })
})

describe('createUnion', () => {
  it('matches where one of several does, and is nothing where they are too large', () => {
    const union = createUnion(['(?i)abc', 'x{3}'], 're2')
    assert.deepEqual(
      ['ABC', 'xxx', 'XXX'].map((text) => union?.test(text, plenty())),
      [true, true, false],
    )
    assert.equal(createUnion(['a{15000}', 'b{15000}'], 're2'), undefined)
  })
})
