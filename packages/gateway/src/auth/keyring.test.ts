import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { describe, it } from 'node:test'
import type { Caller } from '@toolgate/core'
import * as fc from 'fast-check'
import type { CallerConfig } from '../config/config.ts'
import { type Authenticator, type Credential, isRefused, type Refusal } from './credential.ts'
import { authenticateKeys, createKeyring } from './keyring.ts'

const viewer = entry('demo-viewer', 'mcp', { user: 'viewer', roles: ['viewer'] })
const owner = entry('demo-console', 'console', { user: 'owner', roles: ['approver'] })

describe('createKeyring', () => {
  const keys = authenticateKeys([viewer, owner])
  const refused = { refused: 'unknown' }

  it('finds the caller of a key and its use, by a name that does not reveal the key', async () => {
    const id = createHash('sha256').update('demo-viewer').digest('hex')
    const credential = { id, for: 'mcp', caller: { user: 'viewer', roles: ['viewer'] }, issuer: 'key' }
    assert.deepEqual(await ask(keys, 'Bearer demo-viewer'), credential)
    assert.deepEqual(keys.current(id), credential)
    assert.equal((await found(keys, 'Bearer demo-console')).for, 'console')
  })

  it('returns the same frozen caller each time, so that views are found by identity', async () => {
    const [first, second] = [await found(keys, 'Bearer demo-viewer'), await found(keys, 'bearer  demo-viewer')]
    assert.ok(first.caller === second.caller && Object.isFrozen(first.caller))
  })

  it('finds every key, the first, the last and any between', async () => {
    const many = authenticateKeys(Array.from({ length: 50 }, (_, i) => entry(`key-${i}`, 'mcp', { user: `u${i}` })))
    for (let i = 0; i < 50; i++) assert.equal((await found(many, `Bearer key-${i}`)).caller.user, `u${i}`)
  })

  it('takes nothing but the whole key', async () => {
    for (const key of ['demo-viewe', 'demo-viewerx', 'Demo-viewer', 'toString', '__proto__'])
      assert.deepEqual(await ask(keys, `Bearer ${key}`), refused, key)
    const digest = Buffer.from(viewer.keyHash)
    for (const text of [digest.toString('hex'), digest.toString('base64'), `sha256:${digest.toString('hex')}`])
      assert.deepEqual(await ask(keys, `Bearer ${text}`), refused, text)
  })

  it('still refuses wrong keys after a right one was remembered, and never throws', async () => {
    await ask(keys, 'Bearer demo-viewer')
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: 'binary', maxLength: 100 }), async (key) => {
        fc.pre(!/^ *demo-(viewer|console)$/.test(key))
        return 'refused' in (await ask(keys, `Bearer ${key}`)) && 'refused' in (await ask(keys, key))
      }),
    )
  })

  it('accepts no key without configured callers', async () => {
    assert.deepEqual(await ask(authenticateKeys([]), 'Bearer x'), refused)
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

function ask(keys: Authenticator, authorization: string): Promise<Credential | Refusal> {
  return keys.authenticate({ authorization }, '/mcp')
}

async function found(keys: Authenticator, authorization: string): Promise<Credential> {
  const answer = await ask(keys, authorization)
  assert.ok(!isRefused(answer))
  return answer
}

function entry(key: string, kind: 'mcp' | 'console', caller: Caller): CallerConfig {
  return { keyHash: createHash('sha256').update(key).digest(), for: kind, caller }
}
