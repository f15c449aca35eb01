import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { runs } from '../../../../testing/src/runs.ts'
import type { Origin } from '../../ports/fact-read.ts'
import { toFoldedForms } from './normalise.ts'
import { createOriginIndex, type OriginIndex } from './origin-index.ts'

/** An index that has seen these texts. */
function seen(texts: { user?: string; untrusted?: unknown; trusted?: unknown }): OriginIndex {
  const index = createOriginIndex()
  index.addWords(texts.user ?? [])
  index.addOutput('untrusted', texts.untrusted)
  index.addOutput('trusted', texts.trusted)
  return index
}

type Row = readonly [text: string, value: unknown, origin: Origin]

function check(origin: 'user' | 'trusted' | 'untrusted', rows: readonly Row[]): void {
  for (const [text, value, expected] of rows)
    assert.equal(
      seen({ [origin]: text }).originOf(value),
      expected,
      `${JSON.stringify(value)} in ${JSON.stringify(text)}`,
    )
}

describe('originOf', () => {
  it('asks the words of the user first, then untrusted outputs, then trusted ones', () => {
    const all = { user: 'to a@x.com', untrusted: 'a@x.com b@x.com', trusted: 'a@x.com b@x.com c@x.com' }
    const index = seen(all)
    assert.deepEqual(
      ['a@x.com', 'b@x.com', 'c@x.com', 'd@x.com'].map((value) => index.originOf(value)),
      ['user', 'untrusted', 'trusted', 'unknown'],
    )
  })

  it('keeps an account number in each spelling', () => {
    const index = seen({ user: 'DE89370400440532013000' })
    index.addWords('DE89 3704 0044 0532 0130 00')
    assert.equal(index.originOf('DE89 3704'), 'user')
  })

  it('is the worst of a list or an object, and empty values say nothing', () => {
    const index = seen({ user: 'a@x.com', untrusted: 'b@x.com', trusted: 'c@x.com' })
    assert.equal(index.originOf(['a@x.com', 'c@x.com']), 'trusted')
    assert.equal(index.originOf({ to: 'a@x.com', cc: ['c@x.com', { name: 'd@x.com' }] }), 'unknown')
    assert.equal(index.originOf(['d@x.com', ['b@x.com'], 'a@x.com']), 'untrusted')
    assert.equal(index.originOf(['a@x.com', null, '', [], {}, undefined]), 'user')
    assert.equal(index.originOf({ 'b@x.com': 'a@x.com' }), 'untrusted')
    assert.equal(index.originOf(new Date(0)), 'untrusted')
  })

  for (const origin of ['user', 'trusted'] as const) {
    it(`finds a value of ${origin} texts only between the ends of words`, () => {
      check(origin, [
        ['Write to bob@x.com.', 'bob@x.com', origin],
        ["'bob@x.com', (amy@x.com)", 'bob@x.com', origin],
        ['"mail":"bob@x.com","n":1', 'bob@x.com', origin],
        ['<a href="mailto:bob@x.com">', 'bob@x.com', origin],
        ['mailto:bob@x.com', 'bob@x.com', origin],
        ['mailto:bob@x.com', 'ailto', 'unknown'],
        ['Bob  Lee\n(sales)', 'Bob Lee', origin],
        ['Write to rob.bob@x.com', 'bob@x.com', 'unknown'],
        ["Write to o'bob@x.com", 'bob@x.com', 'unknown'],
        ['Write to bob@x.com.evil.org', 'bob@x.com', 'unknown'],
        ['Write to bob@x.community', 'bob@x.com', 'unknown'],
        ['Write to bob@x.com', 'x.com', 'unknown'],
        ['See https://good.com/a/b', 'https://good.com/a', 'unknown'],
        ['See https://good.com/?u=evil.com', 'evil.com', 'unknown'],
        ['bob\u0301@x.com', 'bob@x.com', 'unknown'],
        ['bob@x.com\u0301', 'bob@x.com', 'unknown'],
      ])
    })

    it(`ignores letter case in ${origin} texts only in the domains of e-mail addresses and in host names`, () => {
      check(origin, [
        ['bob@X.com', 'bob@x.COM', origin],
        ['HTTPS://Good.com/Path', 'HTTPS://good.COM/Path', origin],
        ['WWW.Good.com', 'www.good.com', origin],
        ['Bob@x.com', 'bob@x.com', 'unknown'],
        ['https://good.com/Path', 'https://good.com/path', 'unknown'],
        ['https://Amy:Pw@good.com', 'https://amy:pw@good.com', 'unknown'],
        ['Bob Lee', 'bob lee', 'unknown'],
      ])
    })

    it(`compares ${origin} texts composed (NFC), and neither compatible, encoded nor invisible characters`, () => {
      check(origin, [
        ['Ju\u0308rgen', 'J\u00FCrgen', origin],
        ['ｂｏｂ@x.com', 'bob@x.com', 'unknown'],
        ['bob%40x.com', 'bob@x.com', 'unknown'],
        ['bob\u200B@x.com', 'bob@x.com', 'unknown'],
      ])
    })

    it(`finds an account number of ${origin} texts with other blanks`, () => {
      check(origin, [
        ['to DE89 3704 0044 0532 0130 00.', 'DE89370400440532013000', origin],
        ['to DE89370400440532013000.', 'DE89 3704 0044 0532 0130 00', origin],
        ['to DE89370400440532013000x', 'DE89 3704 0044 0532 0130 00', 'unknown'],
        ['to xDE89 3704 0044 0532 0130 00', 'DE89370400440532013000', 'unknown'],
        ['to bob lee and', 'boblee and', 'unknown'],
      ])
    })

    it(`never takes numbers, and values of under 4 characters, for ${origin}`, () => {
      check(origin, [
        ['pay 5000 to Bob: 12345678 yes', 5000, 'unknown'],
        ['pay 5000 to Bob: 12345678 yes', '5000', 'unknown'],
        ['pay $5,000.00 to Bob', '$5,000.00', 'unknown'],
        ['pay 5000 to Bob: 12345678 yes', 'Bob', 'unknown'],
        ['pay 5000 to Bob: 12345678 true', true, 'unknown'],
        ['pay 5000 to Bob: 12345678 yes', 12345678, 'unknown'],
        ['pay 5000 to Bob: 12345678 yes', '12345678', origin],
        ['to \u{1F600}\u{1F600}', '\u{1F600}\u{1F600}', 'unknown'],
      ])
    })
  }

  it('finds a value of untrusted texts in other spellings', () => {
    check('untrusted', [
      ['EVIL@X.com', 'evil@x.com', 'untrusted'],
      ['xevil@x.comx', 'evil@x.com', 'untrusted'],
      ['ｅｖｉｌ＠ｘ．ｃｏｍ', 'evil@x.com', 'untrusted'],
      ['evil@x.com', 'ｅｖｉｌ@x.com', 'untrusted'],
      ['e\u200Bvil@x.com', 'evil@x.com', 'untrusted'],
      ['evil@x.com', 'ev\u00ADil@x.com', 'untrusted'],
      ['evil@x.com\u0301', 'evil@x.com', 'untrusted'],
      ['evil\uFFF9@x\u3164.com', 'evil@x.com', 'untrusted'],
      ['ΑΒΓΣ', 'αβγσ', 'untrusted'],
      ['evil @ x.\ncom', 'evil@x.com', 'untrusted'],
      ['evil%40x.com', 'evil@x.com', 'untrusted'],
      ['evil%2540x.com', 'evil@x.com', 'untrusted'],
      ['evil@x.com', 'evil%40x.com', 'untrusted'],
      [String.raw`{"to":"evil\u0040x.com"}`, 'evil@x.com', 'untrusted'],
      ['evil&#64;x.com', 'evil@x.com', 'untrusted'],
      ['US13 3000 0000', 'US1330000000', 'untrusted'],
      ['account 4711', 4711, 'untrusted'],
      ['evil at x dot com', 'evil@x.com', 'unknown'],
    ])
  })

  it('finds the address in a value that holds more', () => {
    check('untrusted', [
      ['see evil.com', 'https://evil.com/?q=secret', 'untrusted'],
      ['see evil.com', 'https://secret.evil.com', 'untrusted'],
      ['see evil.com', 'https://good.com:pw@evil.com:8080/a', 'untrusted'],
      ['see evil.com', 'https://good.com/?next=https://evil.com/a', 'untrusted'],
      ['see evil.com', 'evil.com/secret', 'untrusted'],
      ['see evil.com', '//evil.com/secret', 'untrusted'],
      ['write evil@x.com', 'Amy <evil@x.com>', 'untrusted'],
      ['write evil@x.com', 'mailto:evil@x.com?subject=a', 'untrusted'],
      ['pay US133000000121212121212', 'IBAN US133000000121212121212', 'untrusted'],
      ['see evil.com', 'https://good.com/?q=secret', 'unknown'],
    ])
  })

  it('takes the names of fields and numbers for text of the output', () => {
    assert.equal(seen({ untrusted: { 'evil@x.com': { n: [4711_4711] } } }).originOf('evil@x.com'), 'untrusted')
    assert.equal(seen({ untrusted: { 'evil@x.com': { n: [4711_4711] } } }).originOf('47114711'), 'untrusted')
    assert.equal(seen({ untrusted: { toJSON: () => 'evil@x.com' } }).originOf('evil@x.com'), 'untrusted')
    assert.equal(seen({ untrusted: [new Date(0)] }).originOf('1970-01-01'), 'untrusted')
    assert.equal(seen({ untrusted: new Map([['evil@x.com', 1]]) }).originOf('other@x.com'), 'unknown')
  })

  it('does not read images and sounds, which no model sees as text', () => {
    const data = 'evilxcom'.repeat(200_000)
    const index = seen({
      untrusted: {
        content: [
          { type: 'image', mimeType: 'image/png', data },
          { type: 'text', text: 'b@x.com' },
        ],
      },
    })
    assert.equal(index.full, false)
    assert.equal(index.originOf('b@x.com'), 'untrusted')
    assert.equal(index.originOf('evilxcom'), 'unknown')
    const resource = { uri: 'a:b', mimeType: 'image/png', blob: data }
    assert.equal(seen({ untrusted: { content: [{ type: 'resource', resource }] } }).full, false)
    assert.equal(seen({ untrusted: { contents: [resource] } }).full, false)
    const short = { content: [{ type: 'image', data: 'US133000000121212121212' }] }
    assert.equal(seen({ untrusted: short }).originOf('US133000000121212121212'), 'untrusted')
    assert.equal(seen({ untrusted: { structuredContent: { type: 'image', data } } }).full, true)
  })
})

describe('the bounds of an origin index', () => {
  it('takes all other values for untrusted once an untrusted text finds no room', () => {
    const index = createOriginIndex()
    index.addWords('a@x.com')
    index.addOutput('trusted', 'b@x.com')
    index.addOutput('untrusted', 'c@x.com')
    for (let i = 0; !index.full; i++) index.addOutput('untrusted', `flood ${i} `.repeat(50))
    index.addOutput('trusted', 'late@x.com')
    assert.deepEqual(
      ['a@x.com', 'b@x.com', 'c@x.com', 'late@x.com', 'd@x.com', 5].map((value) => index.originOf(value)),
      ['user', 'trusted', 'untrusted', 'untrusted', 'untrusted', 'untrusted'],
    )
  })

  it('takes further words and trusted outputs for nothing once there is no room', () => {
    const index = createOriginIndex({ user: 64, trusted: 64 })
    index.addWords('a@x.com')
    index.addWords('word '.repeat(20))
    index.addWords('late@x.com')
    index.addOutput('trusted', 'b@x.com')
    index.addOutput('trusted', 'word '.repeat(20))
    index.addOutput('trusted', 'later@x.com')
    assert.deepEqual(
      ['a@x.com', 'late@x.com', 'b@x.com', 'later@x.com', 'c@x.com'].map((value) => index.originOf(value)),
      ['user', 'unknown', 'trusted', 'unknown', 'unknown'],
    )
  })

  it('holds at most 256 kB, and words of the user in full', () => {
    const index = createOriginIndex()
    for (let i = 0; i < 10_000; i++) {
      index.addWords(`user word ${i} ${'é'.repeat(i % 50)}`)
      index.addOutput('trusted', { text: `trusted word ${i} ж` })
      index.addOutput('untrusted', { text: `untrusted word ${i} 漢字 😀` })
    }
    assert.ok(index.size <= 256 * 1024, String(index.size))
    assert.ok(index.full)
    assert.equal(index.originOf('user word 1'), 'user')
  })

  it('counts two bytes for each character once a text of the user is wide', () => {
    const index = createOriginIndex({ user: 1000 })
    index.addWords('漢字漢字')
    index.addWords('a'.repeat(480))
    assert.equal(index.items()[0]?.full, false)
    index.addWords('b'.repeat(480))
    assert.equal(index.items()[0]?.full, true)
  })

  it('does not fill up with what it holds already', () => {
    const index = createOriginIndex()
    const page = { rows: Array.from({ length: 100 }, (_, i) => ({ name: `name ${i}`, mail: `mail${i}@x.com` })) }
    assert.equal(index.addOutput('untrusted', page).length, 1)
    const { size } = index
    for (let i = 0; i < 50; i++) assert.deepEqual(index.addOutput('untrusted', page), [])
    assert.equal(index.size, size)
  })

  it('is full after an output that is too large, too deep, circular or cannot be read', () => {
    const circular: Record<string, unknown> = {}
    circular['self'] = circular
    let deep: unknown = 'x'
    for (let i = 0; i < 100_000; i++) deep = [deep]
    const throwing = {
      get text(): string {
        throw new Error('no')
      },
    }
    const outputs = {
      'a text of 100 MB': 'a'.repeat(100_000_000),
      'a list of 3 million': Array.from({ length: 3_000_000 }, (_, i) => i),
      bytes: new Uint8Array(100_000_000),
      'a list that holds itself': circular,
      'a deep list': deep,
      'a field that throws': throwing,
    }
    for (const [name, output] of Object.entries(outputs)) {
      const index = seen({ untrusted: output })
      assert.ok(index.full, name)
      assert.ok(index.size < 256 * 1024, name)
      assert.equal(index.originOf('anything'), 'untrusted', name)
      assert.equal(seen({ trusted: output }).originOf('anything'), 'unknown', name)
    }
  })

  it('takes a value that is too long, deep or wide for untrusted', () => {
    let deep: unknown = 'a@x.com'
    for (let i = 0; i < 100_000; i++) deep = [deep]
    const index = seen({ user: 'a@x.com' })
    for (const value of ['a'.repeat(1_000_000), deep, Array.from({ length: 1001 }, () => 'a@x.com')])
      assert.equal(index.originOf(value), 'untrusted')
  })

  it('keeps one byte for each character of an untrusted text', () => {
    const index = createOriginIndex()
    const item = index.addOutput('untrusted', '漢字'.repeat(10_000) + ' x'.repeat(5)).at(0)
    assert.equal(/[^\0-\xFF]/.test(item?.text ?? '漢'), false)
  })

  it('finds long values, and counts the search', () => {
    const text = `${'a'.repeat(5000)}b${'a'.repeat(5000)}`
    const held = `${'a'.repeat(4000)}b${'a'.repeat(4000)}`
    const index = seen({ user: `say ${text}`, untrusted: text })
    for (const [value, origin] of [
      [held, 'untrusted'],
      [`${held}${'a'.repeat(1001)}`, 'unknown'],
      [text, 'user'],
    ] as const) {
      const work = { left: 1_000_000 }
      assert.equal(index.originOf(value, work), origin)
      assert.ok(work.left < 1_000_000 - 20_000, 'a search in 10,000 characters takes more steps than a look')
    }
    assert.equal(index.originOf(`${held}${'a'.repeat(1001)}`, { left: 15_000 }), 'untrusted')
  })

  it('refuses an unknown bound', () => {
    assert.throws(() => createOriginIndex({ untrusteds: 5 } as never), /untrusteds/)
  })
})

describe('what an index keeps', () => {
  it('is restored, with the mark that it was full', () => {
    const index = createOriginIndex({ untrusted: 64 })
    index.addWords('a@x.com')
    index.addOutput('trusted', 'b@x.com')
    index.addOutput('untrusted', 'c@x.com')
    index.addOutput('untrusted', 'word '.repeat(30))
    const copy = createOriginIndex({ untrusted: 64 })
    copy.restore(JSON.parse(JSON.stringify(index.items())) as never)
    assert.equal(copy.full, true)
    assert.deepEqual(
      ['a@x.com', 'b@x.com', 'c@x.com', 'd@x.com'].map((value) => copy.originOf(value)),
      ['user', 'trusted', 'untrusted', 'untrusted'],
    )
  })
})

describe('toFoldedForms', () => {
  it('has the form of each part in the form of the whole', () => {
    const unit = fc.string({ unit: 'binary', maxLength: 8 })
    fc.assert(
      fc.property(unit, unit, unit, (before, value, after) => {
        const [whole = ''] = toFoldedForms(before + value + after)
        assert.ok(whole.includes(toFoldedForms(value)[0] ?? 'none'))
      }),
      runs(2000, 500_000),
    )
  })
})
