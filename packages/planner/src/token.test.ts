import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { ConfigError } from '@toolgate/core'
import { createTokens, type TokenKey } from './token.ts'

const OLD: TokenKey = { id: 'old', secret: 'o'.repeat(32) }
const NEW: TokenKey = { id: 'new', secret: new Uint8Array(32).fill(7) }
const BINDING = { identity: 'vera', audience: 'here' }
const CLAIMS = { pause: 'p'.repeat(43), expiresAt: 1_000_000 }

describe('createTokens', () => {
  const tokens = createTokens([NEW, OLD])
  const token = tokens.sign(CLAIMS, BINDING)

  it('opens what it has signed, for the same binding, until it expires', () => {
    assert.deepEqual(tokens.open(token, BINDING, 0), CLAIMS)
    assert.deepEqual(tokens.open(token, BINDING, CLAIMS.expiresAt - 1), CLAIMS)
    assert.equal(tokens.open(token, BINDING, CLAIMS.expiresAt), undefined)
  })

  it('opens nothing for another identity or deployment, also where the parts together are the same text', () => {
    assert.equal(tokens.open(token, { ...BINDING, identity: 'ada' }, 0), undefined)
    assert.equal(tokens.open(token, { ...BINDING, audience: 'there' }, 0), undefined)
    assert.equal(tokens.open(token, { identity: 'verahe', audience: 're' }, 0), undefined)
    assert.equal(tokens.open(token, { identity: 'here', audience: 'vera' }, 0), undefined)
    assert.equal(tokens.open(token, { identity: 'evera', audience: 'her' }, 0), undefined)
    assert.equal(tokens.open(token, { identity: 'era', audience: 'herev' }, 0), undefined)
  })

  it('rotates keys: the first one signs, all of them open, and one that was taken out does not', () => {
    const before = createTokens([OLD]).sign(CLAIMS, BINDING)
    assert.deepEqual(tokens.open(before, BINDING, 0), CLAIMS)
    assert.match(token, /^tgr1\.new\./)
    assert.equal(createTokens([NEW]).open(before, BINDING, 0), undefined)
    assert.equal(createTokens([{ ...OLD, secret: 'x'.repeat(32) }]).open(before, BINDING, 0), undefined)
  })

  it('does not let one key stand in for another of the same secret', () => {
    const twins = createTokens([OLD, { ...OLD, id: 'twin' }])
    const signed = twins.sign(CLAIMS, BINDING)
    assert.equal(twins.open(signed.replace('.old.', '.twin.'), BINDING, 0), undefined)
  })

  it('tells nothing of the binding', () => {
    const [, , , , signature] = token.split('.')
    assert.equal(token, ['tgr1', 'new', CLAIMS.pause, CLAIMS.expiresAt.toString(36), signature].join('.'))
  })

  it('opens nothing that differs in any character', () => {
    const character = fc.constantFrom(...'ABab01_-.+/= \n\0ä'.split(''))
    fc.assert(
      fc.property(fc.nat(token.length), fc.nat(2), fc.string({ unit: character, maxLength: 3 }), (at, removed, put) => {
        const mutant = token.slice(0, at) + put + token.slice(at + removed)
        fc.pre(mutant !== token)
        assert.equal(tokens.open(mutant, BINDING, 0), undefined)
      }),
      { numRuns: 2000 },
    )
  })

  it('opens no spelling of the same signature bytes', () => {
    const last = token.at(-1) as string
    const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
    const same = alphabet
      .split('')
      .filter(
        (other) =>
          other !== last &&
          Buffer.from(token.split('.')[4]?.slice(0, -1) + other, 'base64url').equals(
            Buffer.from(token.split('.')[4] as string, 'base64url'),
          ),
      )
    assert.ok(same.length > 0)
    for (const other of same) assert.equal(tokens.open(token.slice(0, -1) + other, BINDING, 0), undefined)
  })

  it('opens nothing that is no text', () => {
    for (const other of [undefined, null, 1, {}, [token], Buffer.from(token)])
      assert.equal(tokens.open(other, BINDING, 0), undefined)
  })

  it('refuses keys that are none', () => {
    assert.throws(() => createTokens([]), ConfigError)
    assert.throws(() => createTokens([{ id: 'a', secret: 'short' }]), /keys\[0\]\.secret: must have at least 32 bytes/)
    assert.throws(() => createTokens([{ id: 'a.b', secret: OLD.secret }]), /keys\[0\]\.id/)
    assert.throws(() => createTokens([OLD, OLD]), /"old" is the id of another key/)
    // Of each of these, an array of known bytes could be made.
    for (const secret of [64, { length: 64 }, Array.from({ length: 64 }, () => 0), undefined, null])
      assert.throws(() => createTokens([{ id: 'a', secret: secret as never }]), /keys\[0\]\.secret: must be a text or/)
  })

  it('keeps its keys to itself: a host may wipe its own, and none that changes theirs changes them', () => {
    const secret = new Uint8Array(32).fill(7)
    const keys = [{ id: 'a', secret }]
    const kept = createTokens(keys)
    secret.fill(0)
    keys.length = 0
    const signed = kept.sign(CLAIMS, BINDING)
    assert.deepEqual(kept.open(signed, BINDING, 0), CLAIMS)
    assert.equal(createTokens([{ id: 'a', secret }]).open(signed, BINDING, 0), undefined)
  })
})
