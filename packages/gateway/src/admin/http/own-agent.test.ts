import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { it } from 'node:test'
import type { CallerConfig } from '../../config/config.ts'
import { heartOf } from '../../testing/heart.ts'
import { ownAgent } from './own-agent.ts'

const person = { user: 'vera', roles: ['operator'] }
const caller = { user: 'vera' }
const keyHash = createHash('sha256').update('key').digest()
const key: CallerConfig = { keyHash, for: 'mcp', caller, expiresAtMs: 1000 }

it('A key whose end was seen is no agent of its person, also where the clock is set back', () => {
  const { revisions, door } = heartOf({ callers: [key], clock: { wallMs: () => 500, monotonicMs: () => 0 } })
  const keys = { isExpired: ({ id }: { readonly id: string }) => id === keyHash.toString('hex') } as never
  assert.equal(ownAgent({ revisions, door }, { person, caller }), key)
  assert.equal(ownAgent({ revisions, door: { ...door, keys } }, { person, caller }), undefined)
})
