import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { checkName, checkNamespace, compareToolIds, toToolId } from './tool-id.ts'

describe('toToolId', () => {
  it('is namespace:name, or the name alone', () => {
    assert.equal(toToolId('files', 'read'), 'files:read')
    assert.equal(toToolId(undefined, 'read'), 'read')
  })
})

describe('checkName', () => {
  for (const name of [
    'read_file',
    'read-file',
    'read.file',
    'a/b',
    'читать',
    '読む',
    '🔍',
    '__proto__',
    'x'.repeat(128),
  ]) {
    it(`takes ${name.slice(0, 20)}`, () => checkName(name))
  }

  const refused: readonly (readonly [name: unknown, problem: RegExp])[] = [
    ['', /must be a string that is not empty/],
    [7, /must be a string/],
    [undefined, /must be a string/],
    ['x'.repeat(129), /has 129 characters; at most 128 are allowed/],
    ['a:b', /must not hold ":"/],
    ['read_*', /must not hold ":" or "\*"/],
    ['a b', /spaces/],
    ['a\tb', /control characters/],
    ['a\0', /control characters/],
    ['a\u200b', /control characters/],
    ['a\u2028b', /spaces/],
    ['a\u{e0041}', /control characters/],
    ['\ud83d', /unpaired surrogates/],
  ]
  for (const [name, problem] of refused) {
    it(`refuses ${JSON.stringify(name)?.slice(0, 20)} and names it`, () => {
      assert.throws(() => checkName(name), { code: 'tool_invalid', problem })
    })
  }
})

describe('checkNamespace', () => {
  it('takes none', () => checkNamespace(undefined))

  for (const namespace of ['group', 'tag', 'category', 'hint']) {
    it(`refuses ${namespace}, which selectors use for themselves`, () => {
      assert.throws(() => checkNamespace(namespace), { code: 'tool_invalid', problem: /reserved for selectors/ })
    })
  }

  it('refuses what names refuse', () => {
    assert.throws(() => checkNamespace('a:b'), /namespace "a:b": the namespace must not hold/)
    assert.throws(() => checkNamespace(null), { code: 'tool_invalid' })
  })
})

describe('compareToolIds', () => {
  it('orders by code point, which UTF-16 units do not', () => {
    assert.ok(compareToolIds('\ufffd', '😀') < 0)
    assert.deepEqual(['\ufffd', '😀'].toSorted(), ['😀', '\ufffd'])
  })

  it('puts a beginning before what goes on', () => {
    assert.ok(compareToolIds('read', 'read_file') < 0)
    assert.equal(compareToolIds('read', 'read'), 0)
  })

  it('orders as the bytes of UTF-8 do', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.string({ unit: 'binary' }), (a, b) => {
        assert.equal(Math.sign(compareToolIds(a, b)), Buffer.compare(Buffer.from(a), Buffer.from(b)))
      }),
    )
  })
})
