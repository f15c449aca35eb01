import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { describe, it } from 'node:test'
import type { Caller } from '@toolgate/core'
import * as fc from 'fast-check'
import type { CallerConfig } from '../config/config.ts'
import { createKeyring, toChallenge } from './keyring.ts'

const viewer = entry('demo-viewer', 'mcp', { user: 'viewer', roles: ['viewer'] })
const owner = entry('demo-console', 'console', { user: 'owner', roles: ['approver'] })

describe('createKeyring', () => {
  const keyring = createKeyring([viewer, owner])

  it('finds the caller of a key and its use', () => {
    const answer = keyring.authenticate('Bearer demo-viewer')
    assert.deepEqual(answer, { ok: true, for: 'mcp', caller: { user: 'viewer', roles: ['viewer'] } })
    assert.equal(keyring.authenticate('Bearer demo-console').ok && 'console', 'console')
  })

  it('returns the same frozen caller each time, so that views are found by identity', () => {
    const [first, second] = [keyring.authenticate('Bearer demo-viewer'), keyring.authenticate('bearer  demo-viewer')]
    assert.ok(first.ok && second.ok && first.caller === second.caller && Object.isFrozen(first.caller))
  })

  it('finds every key, the first, the last and any between', () => {
    const callers = Array.from({ length: 50 }, (_, i) => entry(`key-${i}`, 'mcp', { user: `u${i}` }))
    const many = createKeyring(callers)
    for (let i = 0; i < 50; i++) {
      const answer = many.authenticate(`Bearer key-${i}`)
      assert.equal(answer.ok && answer.caller.user, `u${i}`)
    }
  })

  it('reports a header that is absent or of another scheme as missing', () => {
    for (const header of [undefined, '', 'Basic ZGVtbw==', 'demo-viewer', 'Bearerdemo-viewer', ' Bearer demo-viewer'])
      assert.deepEqual(keyring.authenticate(header), { ok: false, reason: 'missing' }, String(header))
  })

  it('reports a bearer header that cannot be a key as malformed', () => {
    const malformed = [
      'Bearer',
      'Bearer ',
      'Bearer a b',
      'Bearer demo-viewer ',
      'Bearer \u{e9}',
      'Bearer a\0',
      'Bearer a, Bearer b',
    ]
    for (const header of [...malformed, `Bearer ${'x'.repeat(5000)}`])
      assert.deepEqual(keyring.authenticate(header), { ok: false, reason: 'malformed' }, header.slice(0, 40))
  })

  it('takes nothing but the whole key', () => {
    for (const key of ['demo-viewe', 'demo-viewerx', 'Demo-viewer', 'toString', '__proto__'])
      assert.deepEqual(keyring.authenticate(`Bearer ${key}`), { ok: false, reason: 'unknown' }, key)
    const digest = Buffer.from(viewer.keyHash)
    for (const text of [digest.toString('hex'), digest.toString('base64'), `sha256:${digest.toString('hex')}`])
      assert.deepEqual(keyring.authenticate(`Bearer ${text}`), { ok: false, reason: 'unknown' }, text)
  })

  it('still refuses wrong keys after a right one was remembered, and never throws', () => {
    keyring.authenticate('Bearer demo-viewer')
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 100 }), (key) => {
        fc.pre(!/^ *demo-(viewer|console)$/.test(key))
        return !keyring.authenticate(`Bearer ${key}`).ok && !keyring.authenticate(key).ok
      }),
    )
  })

  it('accepts no key without configured callers', () => {
    assert.deepEqual(createKeyring([]).authenticate('Bearer x'), { ok: false, reason: 'unknown' })
  })

  it('refuses two callers with one key and a hash of another length, naming the entry', () => {
    assert.throws(() => createKeyring([viewer, owner, viewer]), {
      code: 'config_invalid',
      message: 'callers[2]: has the same key as callers[0]',
    })
    assert.throws(() => createKeyring([{ ...viewer, keyHash: new Uint8Array(20) }]), {
      code: 'config_invalid',
      message: /callers\[0\]\.keyHash/,
    })
  })
})

describe('toChallenge', () => {
  it('names an error only if a token was presented (RFC 6750 §3.1)', () => {
    assert.equal(toChallenge('missing'), 'Bearer realm="toolgate"')
    assert.equal(toChallenge('malformed'), 'Bearer realm="toolgate", error="invalid_token"')
    assert.equal(toChallenge('unknown'), 'Bearer realm="toolgate", error="invalid_token"')
  })
})

function entry(key: string, kind: 'mcp' | 'console', caller: Caller): CallerConfig {
  return { keyHash: createHash('sha256').update(key).digest(), for: kind, caller }
}
