import assert from 'node:assert/strict'
import path from 'node:path'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { encodeName, ownerOf } from './owner.ts'

/** Names that people and attackers have. */
const NAMES = [
  '../../x',
  '..',
  '.',
  'a b',
  'a\nb',
  '-rf',
  '@file',
  '~root',
  '%2e',
  'a/b',
  'a\\b',
  '\0',
  'Vera',
  'vera',
  '\u00E9',
  'e\u0301',
  'a,b',
  '$HOME',
  '${user}',
  '',
]
const names = fc.oneof(
  fc.constantFrom(...NAMES),
  fc.string({ unit: 'binary' }),
  fc.string({ minLength: 90, maxLength: 300 }),
)

describe('encodeName', () => {
  it('leaves plain names and addresses as they are', () => {
    for (const name of ['vera', 'Vera_2', 'vera@example.com', 'vera-smith']) assert.equal(encodeName(name), name)
    assert.equal(encodeName('../../x'), '%2E.%2F..%2Fx')
    assert.equal(encodeName('a b\n'), 'a%20b%0A')
    assert.equal(encodeName('-rf'), '%2Drf')
  })

  it('returns one part of a path, one argument and one header value, whatever the name', () => {
    fc.assert(
      fc.property(names, (name) => {
        const encoded = encodeName(name)
        assert.match(encoded, /^(?:[A-Za-z0-9_%][A-Za-z0-9_.@%-]*)?(?:~[0-9a-f]{20})?$/)
        assert.ok(encoded.length <= 121)
        if (name !== '') assert.equal(path.dirname(path.resolve('/root', encoded)), '/root')
      }),
    )
  })

  it('returns different texts for different names', () => {
    fc.assert(
      fc.property(names, names, (a, b) => {
        assert.equal(encodeName(a) === encodeName(b), a === b)
      }),
    )
    assert.notEqual(encodeName('\uD800'), encodeName('\uD801'))
    const long = 'x'.repeat(150)
    assert.notEqual(encodeName(encodeName(long)), encodeName(long))
  })
})

describe('ownerOf', () => {
  const keyOf = (caller: Parameters<typeof ownerOf>[0]) => ownerOf(caller)?.key

  it('is the user in their tenant, whatever the session, chat and roles', () => {
    const vera = { user: 'vera', tenant: 'acme' }
    assert.equal(keyOf({ ...vera, session: 'a', roles: ['x'], agent: 'bot' }), keyOf({ ...vera, chat: { id: 'c' } }))
    assert.notEqual(keyOf(vera), keyOf({ user: 'vera', tenant: 'other' }))
    assert.notEqual(keyOf(vera), keyOf({ user: 'vera' }))
    assert.notEqual(keyOf({ user: 'vera' }), keyOf({ user: 'vera', tenant: '' }))
  })

  it('is the agent or the session of a caller without a user, and nobody without any', () => {
    assert.notEqual(keyOf({ agent: 'bot' }), keyOf({ agent: 'other' }))
    assert.notEqual(keyOf({ agent: 'bot' }), keyOf({ user: 'bot' }))
    assert.notEqual(ownerOf({ agent: 'bot' })?.user, ownerOf({ user: 'bot' })?.user)
    assert.notEqual(keyOf({ session: 'one' }), keyOf({ session: 'two' }))
    assert.equal(ownerOf({}), undefined)
    assert.equal(ownerOf({ user: '', roles: ['admin'] }), undefined)
  })

  it('has a folder of its own, also where file names ignore case', () => {
    const folders = NAMES.flatMap((user) => ownerOf({ user })?.folder.toLowerCase() ?? [])
    assert.equal(new Set(folders).size, folders.length)
    assert.ok(!folders.includes('~listing'))
  })
})
