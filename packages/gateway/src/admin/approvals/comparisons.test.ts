import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type Approval, createGate, defineCaller, defineTool } from '@toolgate/core'
import { canonicalize } from '@toolgate/values/json'
import { sha256Hex } from '@toolgate/values'
import { redactor } from '@toolgate/values/redact'
import { systemClock } from '@toolgate/core/stores'
import { serverConfig } from '../../../fixtures/servers.ts'
import type { Credential } from '../../auth/credential.ts'
import { Comparisons } from './comparisons.ts'

const OLGA = defineCaller({ user: 'olga' })
const CREDENTIAL: Credential = { id: 'k1', for: 'mcp', caller: OLGA, issuer: 'key' }
const RULE = { text: 'input.content', with: 'read_file', input: { path: 'input.path' } }
const INPUT = { path: 'a.md', content: 'new' }
const APPROVAL = {
  id: 'a1',
  tool: 'files:write_file',
  user: 'olga',
  input: INPUT,
  inputHash: sha256Hex(canonicalize(INPUT)),
  asker: { id: 'k1' },
  status: 'pending',
} as Approval

/** Comparisons whose reader does what is given, within a deadline. */
function comparing(read: (signal: AbortSignal) => Promise<unknown>, deadlineMs: number) {
  const reader = defineTool({
    namespace: 'files',
    name: 'read_file',
    annotations: { readOnlyHint: true },
    execute: (_input: unknown, { signal }: { readonly signal: AbortSignal }) => read(signal),
  })
  const gate = createGate({ tools: [reader], policy: { allow: ['*'] } })
  return new Comparisons({
    approvals: { get: async () => APPROVAL },
    servers: () => [serverConfig({ name: 'files', tools: new Map([['write_file', { compare: RULE }]]) })],
    authenticator: { current: () => CREDENTIAL },
    loadRun: async () => {},
    view: async (caller) => gate.view(caller),
    redact: redactor,
    clock: systemClock,
    deadlineMs,
  })
}

describe('Comparisons', () => {
  const never = new AbortController().signal

  it('returns what is there beside what the call would write', async () => {
    const { present, proposed, notShown } = await comparing(async () => 'old', 15_000).compare(APPROVAL, 'owner', never)
    assert.deepEqual([present, proposed, notShown], ['old', 'new', undefined])
  })

  it('ends a reading at its deadline and says so, and can be asked again', async () => {
    let ended = 0
    const stuck = (signal: AbortSignal) =>
      new Promise<never>(() => {
        signal.addEventListener('abort', () => ended++)
      })
    const comparisons = comparing(stuck, 5)
    for (const count of [1, 2]) {
      const { present, notShown } = await comparisons.compare(APPROVAL, 'owner', never)
      assert.equal(present, undefined)
      assert.equal(notShown, 'files:read_file failed: no answer in 0.005 s')
      assert.equal(ended, count)
    }
  })
})
