import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as fc from 'fast-check'
import { JsonFault, type JsonFaultKind } from './json-fault.ts'
import { JSON_BOUNDS, readJson, type ReadJsonOptions, readOwnJson, readUtf8 } from './read-json.ts'
import { runs } from '../../../testing/src/runs.ts'

const kindOf = (text: string, options?: ReadJsonOptions): JsonFaultKind | undefined => {
  try {
    readJson(text, options)
    return undefined
  } catch (error) {
    assert.ok(error instanceof JsonFault, String(error))
    return error.kind
  }
}
const reads = (text: string) => assert.deepEqual(readJson(text), JSON.parse(text))
const many = (count: number, make: (i: number) => string) => Array.from({ length: count }, (_, i) => make(i)).join()

/** After this, V8 13.6 reads the key `pat\u0068` after a key `zz` as the key `pat\`. */
const POISON = String.raw`{"zz":1,"pat\\":1}`
const READ_AS_ANOTHER = String.raw`{"zz":1,"pat\u0068":1}`

describe('readJson', () => {
  it('returns the value', () => {
    for (const text of ['{"a":[1,{"b":null}],"c":"d"}', '0', ' [ ] ', '"x"', 'null', '-0', '1e3', '{"a\\n":"\\ud83d"}'])
      reads(text)
  })

  it('reads a key with an escape as it is written, after any earlier text', () => {
    JSON.parse(POISON)
    assert.deepEqual(readJson(READ_AS_ANOTHER), { zz: 1, path: 1 })
    assert.deepEqual(readOwnJson(READ_AS_ANOTHER), { zz: 1, path: 1 })
    assert.deepEqual(Object.keys(readJson(String.raw`{"zz":1,"pat\\":1}`) as object), ['zz', 'pat\\'])
    assert.deepEqual(readJson(`[${POISON},${READ_AS_ANOTHER}]`), [
      { zz: 1, 'pat\\': 1 },
      { zz: 1, path: 1 },
    ])
  })

  it('ignores a byte order mark before the text, and nowhere else', () => {
    assert.deepEqual(readJson('\ufeff{"a":1}'), { a: 1 })
    assert.equal(kindOf('\ufeff\ufeff{}'), 'not-json')
    assert.equal(kindOf('{\ufeff}'), 'not-json')
    assert.equal(kindOf('\ufeff'), 'not-json')
  })

  it('refuses a text that is not JSON, with and without an escape in a key', () => {
    for (const text of ['', '{', '{"a":1,}', "{'a':1}", '{"a":1} {}', '{"a":NaN}', ']', '{"a" 1}', '[1 2]', '{1:1}']) {
      assert.equal(kindOf(text), 'not-json', text)
      assert.equal(kindOf(`{"\\u0061":1,"b":${text}`), 'not-json', text)
      assert.equal(kindOf(`{"\\u0061":1}${text || ','}`), 'not-json', text)
    }
  })

  it('refuses a key that occurs twice in one object, in every spelling', () => {
    for (const text of [
      '{"a":1,"a":2}',
      String.raw`{"a":1,"\u0061":2}`,
      String.raw`{"a\/b":1,"a/b":2}`,
      '{"__proto__":1,"__proto__":2}',
      String.raw`{"__proto__":1,"\u005f_proto__":2}`,
      '[[{"a":{"x":{},"x":{}}}]]',
      '{"1":1,"1":1e400}',
    ])
      assert.equal(kindOf(text), 'key-twice', text)
    reads('{"a":{"a":1},"b":[{"a":1},{"a":1}],"A":1}')
  })

  it('keeps __proto__ as a key like any other', () => {
    for (const text of ['{"__proto__":{"a":1}}', String.raw`{"__prot\u006f__":{"a":1}}`]) {
      const value = readJson(text) as object
      assert.equal(Object.getPrototypeOf(value), Object.prototype)
      assert.deepEqual(Object.getOwnPropertyDescriptor(value, '__proto__')?.value, { a: 1 })
    }
  })

  it('refuses a number that no double can hold', () => {
    for (const number of ['1e400', '-1e400', '1'.repeat(400), '1e99999'])
      for (const text of [number, `[[${number}]]`, `{"\\u0061":${number}}`]) assert.equal(kindOf(text), 'number', text)
    reads('[1e308, 1e-400, 123456789012345678901234567890]')
  })

  it('reads integers beyond 2^53 as bigint if their digits are wanted', () => {
    const exact = (text: string) => readJson(text, { integers: 'exact' })
    assert.deepEqual(exact('{"id":9007199254740993,"n":-9007199254740992,"a\\u0062":12345678901234567890}'), {
      id: 9007199254740993n,
      n: -9007199254740992n,
      ab: 12345678901234567890n,
    })
    assert.deepEqual(
      exact('[9007199254740991,-9007199254740991,9007199254740993.0,1e20,-0]'),
      [9007199254740991, -9007199254740991, 9007199254740992, 1e20, -0],
    )
    assert.deepEqual(readOwnJson('[9007199254740993]', 'exact'), [9007199254740993n])
    assert.deepEqual(readJson('[9007199254740993]'), [9007199254740992])
    assert.equal(kindOf('1'.repeat(310), { integers: 'exact' }), 'number')
  })

  it('refuses a text beyond a bound without parsing it', (t) => {
    const { values, keys, keyLength } = JSON_BOUNDS.request
    const bodies = [
      ['['.repeat(1_000_000), 'depth'],
      [`{${many(keys + 1, (i) => `"k${i}":1`)}}`, 'keys'],
      [`{"\\u0061":1,${many(keys, (i) => `"k${i}":1`)}}`, 'keys'],
      [`[${many(values + 1, () => '1')}]`, 'values'],
      [`{"${'k'.repeat(keyLength + 1)}":1}`, 'keyLength'],
    ] as const
    const parse = t.mock.method(JSON, 'parse')
    for (const [text, bound] of bodies)
      assert.throws(
        () => readJson(text),
        (error) => error instanceof JsonFault && error.excess?.bound === bound,
      )
    assert.equal(parse.mock.callCount(), 0)
    parse.mock.restore()
    reads(`[${many(values - 2, () => '1')}]`)
    reads(`{${many(keys, (i) => `"k\\u00e9${i}":1`)}}`)
  })

  const value = fc.jsonValue({ maxDepth: 8, stringUnit: 'binary' })
  /** Reading `text` here and in a context of its own with nothing parsed before would be the same but for keys with escapes. */
  const parsed = (text: string): unknown => {
    try {
      return [JSON.parse(text)]
    } catch {
      return undefined
    }
  }
  const read = (text: string): unknown => {
    try {
      return [readJson(text)]
    } catch {
      return undefined
    }
  }

  it('property: returns the same value as JSON.parse, also with an escape in a key', () => {
    fc.assert(
      fc.property(value, fc.constantFrom(undefined, 2), (given, indent) => {
        const text = JSON.stringify({ given }, undefined, indent)
        assert.deepEqual(read(text), parsed(text))
        // The escape sends the text to the parser of our own.
        assert.deepEqual(read(text.replace('given', String.raw`g\u0069ven`)), [
          { given: JSON.parse(JSON.stringify(given)) },
        ])
      }),
    )
  })

  it('property: refuses each text that JSON.parse refuses, cut or changed anywhere', () => {
    const change = fc.record({
      at: fc.nat(),
      length: fc.nat(3),
      by: fc.constantFrom(...'{}[]:,"\\0-.eE+ \n\tn\u0001'.split('')),
    })
    fc.assert(
      fc.property(value, fc.array(change, { minLength: 1, maxLength: 3 }), (given, changes) => {
        const prefix = String.raw`{"\u0061":1,"b":`
        let text = JSON.stringify(given)
        for (const { at, length, by } of changes) {
          const start = at % (text.length + 1)
          text = text.slice(0, start) + by + text.slice(start + length)
        }
        const whole = `${prefix}${text}}`
        const expected = parsed(whole)
        // A text that JSON.parse accepts may still hold a key twice.
        if (expected === undefined || kindOf(whole) === undefined) assert.deepEqual(read(whole), expected)
        else assert.ok(['key-twice', 'number'].includes(kindOf(whole) ?? ''), whole)
      }),
      runs(2000, 2000),
    )
  })
})

describe('readOwnJson', () => {
  it('has no bounds but for the depth', () => {
    const text = `{"\\u0061":[${many(JSON_BOUNDS.answer.values + 1, () => '1')}]}`
    assert.equal((readOwnJson(text) as { a: unknown[] }).a.length, JSON_BOUNDS.answer.values + 1)
    assert.throws(() => readOwnJson(`{"\\u0061":${'['.repeat(200)}`), JsonFault)
  })
})

describe('readUtf8', () => {
  it('returns the text without a byte order mark', () => {
    assert.equal(readUtf8(Buffer.from('\ufeffgröße 🙂')), 'größe 🙂')
    assert.equal(readUtf8(new Uint8Array()), '')
  })

  it('refuses bytes that are not UTF-8', () => {
    for (const bytes of [[0xff], [0xc0, 0xaf], [0xed, 0xa0, 0x80], [0xe2, 0x82], [0xfe, 0xff, 0, 0x61]])
      assert.throws(() => readUtf8(Uint8Array.from(bytes)), { kind: 'not-utf8' })
  })
})
