import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import type { ConfigError } from '../errors.ts'
import { createRedactor, redactor } from './redact.ts'
import { SECRET_VALUES } from './secret-values.ts'
import { runs } from '../../../testing/src/runs.ts'
import { toJsonText } from '../json/json-text.ts'

describe('createRedactor', () => {
  it('hides exact secrets anywhere, and once where they overlap', () => {
    const { redactText } = createRedactor({ secrets: ['correct horse', 'horse battery', 'abcdef'] })
    assert.equal(redactText('xcorrect horse batteryx'), 'x[redacted:secret]x')
    assert.equal(redactText('abcdefabcdef'), '[redacted:secret][redacted:secret]')
    assert.equal(redactText('abcde'), 'abcde')
  })
  it('hides them in URLs, in JSON within JSON, and in base64 at any position', () => {
    const secret = 'pa$s "w\\rd"/ö\n'
    const { redactText } = createRedactor({ secrets: [secret] })
    const json = JSON.stringify({ a: secret })
    for (const text of [encodeURIComponent(secret), json, JSON.stringify(json)]) {
      assert.ok(redactText(`<${text}>`).includes('[redacted:secret]'), text)
      assert.ok(!redactText(text).includes('rd'), text)
    }
    for (const before of ['', 'u', 'us', 'use', 'user']) {
      const basic = Buffer.from(`${before}:${secret}:x`)
      for (const text of [basic.toString('base64'), basic.toString('base64url')]) {
        assert.ok(redactText(text).includes('[redacted:secret]'), `${before} ${redactText(text)}`)
      }
    }
  })
  it('ignores a secret under 6 characters, and reports its index but not its text', () => {
    const ignored: ConfigError[] = []
    const { redactText } = createRedactor({ secrets: ['longer one', 'abc'], onIgnored: (error) => ignored.push(error) })
    assert.equal(redactText('abc longer one'), 'abc [redacted:secret]')
    assert.deepEqual(
      ignored.map(({ message }) => message),
      ['secrets[1]: expected a text of at least 6 characters; left out'],
    )
  })
  it('finds what a search for each secret finds', () => {
    const word = fc.string({ unit: fc.constantFrom('a', 'b', 'c'), minLength: 6, maxLength: 9 })
    const text = fc.string({ unit: fc.constantFrom('a', 'b', 'c'), maxLength: 200 })
    fc.assert(
      fc.property(fc.array(word, { minLength: 1, maxLength: 5 }), text, (secrets, inText) => {
        const covered = new Set<number>()
        for (const secret of secrets) {
          for (let at = inText.indexOf(secret); at !== -1; at = inText.indexOf(secret, at + 1)) {
            for (let i = at; i < at + secret.length; i++) covered.add(i)
          }
        }
        const kept = Array.from(inText)
          .filter((_, i) => !covered.has(i))
          .join('')
        assert.equal(createRedactor({ secrets }).redactText(inText).replaceAll('[redacted:secret]', ''), kept)
      }),
    )
  })
  it('does not take foreign text in brackets for a marker of its own', () => {
    const { redactText } = createRedactor({ secrets: ['hunter2-hunter2'] })
    assert.equal(redactText('[redacted:hunter2-hunter2]'), '[redacted:[redacted:secret]]')
  })
  it('hides the values of further keys and the matches of further patterns', () => {
    const { redactText, redactValue } = createRedactor({ keys: ['zip'], patterns: ['INT-\\d{4}', '(?i)case [a-z]+'] })
    assert.equal(
      redactText('INT-1234 and Case abc, my_zip=99'),
      '[redacted:pattern] and [redacted:pattern], my_zip=[redacted:key]',
    )
    assert.deepEqual(redactValue({ homeZip: 99 }), { homeZip: '[redacted:key]' })
  })
  it('refuses a pattern that RE2 cannot run, one for the empty text, and a key without a letter, naming each', () => {
    assert.throws(() => createRedactor({ patterns: ['a', '(a)\\1'] }), {
      code: 'config_invalid',
      path: 'patterns[1]',
      message: /\(a\)\\1/,
    })
    assert.throws(() => createRedactor({ patterns: ['a*'] }), {
      path: 'patterns[0]',
      message: /matches the empty text/,
    })
    assert.throws(() => createRedactor({ keys: ['ok', '--'] }), { path: 'keys[1]' })
  })
})

describe('redactValue', () => {
  it('returns plain JSON without a secret as it is', () => {
    const value = { a: [1, 'x', null, true], b: { c: 'd' } }
    assert.equal(redactor.redactValue(value), value)
  })
  it('does not change its argument', () => {
    const value = Object.freeze({ password: 'x', list: Object.freeze(['a', { token: 'y' }]) })
    assert.deepEqual(redactor.redactValue(value), {
      password: '[redacted:password]',
      list: ['a', { token: '[redacted:token]' }],
    })
    assert.equal(value.password, 'x')
  })
  it('takes cycles, big integers, getters that throw, dates, maps, sets, errors and bytes', () => {
    const value: Record<string, unknown> = {
      big: 12n,
      date: new Date(0),
      map: new Map([['password', 'x']]),
      set: new Set(['a']),
      error: new Error('password=x'),
      bytes: new Uint8Array(3),
      none: undefined,
      run: () => 1,
      list: [undefined, Number.NaN],
      get broken(): never {
        throw new Error('no')
      },
    }
    value['self'] = value
    assert.deepEqual(redactor.redactValue(value), {
      big: 12,
      date: '1970-01-01T00:00:00.000Z',
      map: { password: '[redacted:password]' },
      set: ['a'],
      error: { name: 'Error', message: 'password=[redacted:password]' },
      bytes: '[3 bytes]',
      list: [null, null],
      broken: '[unreadable]',
      self: '[circular]',
    })
  })
  it('takes values that are deep, wide, shared without end, or hostile', () => {
    let deep: unknown = { password: 'canary' }
    for (let i = 0; i < 50_000; i++) deep = [deep]
    assert.ok(!JSON.stringify(redactor.redactValue(deep)).includes('canary'))
    let shared: unknown = ['x']
    for (let i = 0; i < 100; i++) shared = [shared, shared]
    assert.ok(Array.isArray(redactor.redactValue(shared)))
    const wide = Array.from({ length: 100_000 }, (_, i) => ({ i }))
    assert.deepEqual(redactor.redactValue(wide), wide)
    const hostile = new Proxy(
      {},
      {
        ownKeys: () => {
          throw new Error('no')
        },
        getPrototypeOf: () => {
          throw new Error('no')
        },
      },
    )
    assert.equal(redactor.redactValue(hostile), '[unreadable]')
  })
  const tooMuch: readonly (readonly [what: string, value: unknown])[] = [
    ['a text of 200,000 secrets', 'password=canary '.repeat(200_000)],
    ['a text of 200,000 starts of secrets', 'sk-'.repeat(200_000)],
    ['40,000 keys', Object.fromEntries(Array.from({ length: 40_000 }, (_, i) => [`key${i}`, 'canary']))],
    ['texts that are too much together', Array.from({ length: 200 }, () => 'password=canary '.repeat(1000))],
  ]
  for (const [what, value] of tooMuch) {
    it(`hides ${what} as a whole, for it takes too many steps`, () => {
      assert.equal(redactor.redactValue(value), '[too much]')
    })
  }
  it('hides a text as a whole where the patterns take too many steps, and not the next text', () => {
    const { redactText } = createRedactor({ patterns: ['a.*b|a'] })
    assert.equal(redactText('a'.repeat(10_000)), '[too much]')
    assert.equal(redactText('xxxxa'), 'xxxx[redacted:pattern]')
  })
  it('keeps __proto__ as a key like any other, and keys apart that hide behind one marker', () => {
    const value = JSON.parse('{"__proto__":{"password":"x"}}') as object
    assert.equal(JSON.stringify(redactor.redactValue(value)), '{"__proto__":{"password":"[redacted:password]"}}')
    const [a, b] = [`npm_${'a'.repeat(36)}`, `npm_${'b'.repeat(36)}`]
    const once = redactor.redactValue({ [a]: 1, [b]: 2 })
    assert.deepEqual(once, { '[redacted:npm-token]': 1, '[redacted:npm-token] 2': 2 })
    assert.deepEqual(redactor.redactValue(once), once)
  })
})

const CANARIES = SECRET_VALUES.map(({ example }) => example.join(''))
const EXACT = 'zq9 canary/of "the" höst'
const canaried = createRedactor({ secrets: [EXACT] })
const canary = fc.constantFrom(...CANARIES, EXACT)
const edge = fc.oneof(
  fc.constantFrom(
    '',
    '"',
    "'",
    '(',
    ' ',
    '\n',
    '\r\n',
    '\t',
    '=',
    ':',
    ';',
    ',',
    '/',
    '\\n',
    '\\"',
    '<',
    '…',
    'ö',
    '日本',
    '🙂',
    '[',
    '{',
    '-',
    '_',
    '@',
    '?',
    '&',
    '%3D',
  ),
  fc.string({ unit: 'grapheme', maxLength: 8 }).map((text) => `${text} `),
)
const planted = fc
  .tuple(edge, canary, edge)
  .map(([before, secret, after]) => ({ text: before + secret + after.replace(/^[\w/+=.-]/, ' '), secret }))

describe('redaction of any value', () => {
  it('lets no canary through, in keys, values and nested texts', () => {
    const times = runs(500, 500)
    let count = 0
    fc.assert(
      fc.property(fc.array(planted, { minLength: 1, maxLength: 5 }), fc.jsonValue(), (all, filler) => {
        count += all.length
        const value = all.reduce<unknown>(
          (inner, { text }, i) => {
            return [{ [i % 2 ? text : `k${i}`]: i % 2 ? inner : { text, inner } }, [text, JSON.stringify({ text })]][
              Math.min(1, i % 3)
            ]
          },
          { filler, last: all.at(-1)?.text },
        )
        const shown = JSON.stringify(canaried.redactValue(value))
        for (const { text, secret } of all) {
          const marks = [secret, JSON.stringify(secret).slice(1, -1)]
          for (const mark of marks)
            assert.ok(!shown.includes(mark) && !canaried.redactText(text).includes(mark), `${text}\n${shown}`)
        }
      }),
      times,
    )
    assert.ok(count >= 2 * times.numRuns, `${count} canaries were planted`)
  })
  it('returns the same when it runs twice, and the same each time', () => {
    const texts = fc
      .array(
        fc.oneof(
          edge,
          canary,
          fc.string(),
          fc.constantFrom('password', 'token: ', 'Bearer ', '://', '[redacted:', '[redacted:token]', ']', '--token '),
        ),
      )
      .map((parts) => parts.join(''))
    fc.assert(
      fc.property(texts, (text) => {
        const once = canaried.redactText(text)
        assert.equal(canaried.redactText(once), once)
        assert.equal(canaried.redactText(text), once)
      }),
      runs(2000, 2000),
    )
  })
  it('leaves harmless JSON unchanged', () => {
    fc.assert(
      fc.property(
        fc.jsonValue({ maxDepth: 5, stringUnit: fc.constantFrom(...Array.from('abc XYZ019 .,/äß🙂')) }),
        (value) => {
          assert.deepEqual(redactor.redactValue(value), value)
        },
      ),
    )
  })
  it('never throws', () => {
    fc.assert(
      fc.property(
        fc.anything({
          withBigInt: true,
          withDate: true,
          withMap: true,
          withNullPrototype: true,
          withObjectString: true,
          withSet: true,
          withSparseArray: true,
          withTypedArray: true,
        }),
        (value) => {
          toJsonText(redactor.redactValue(value))
        },
      ),
    )
  })
})
