import type { AuditEntry } from '@toolgate/core/audit'

const input = Object.freeze({ path: '/workspace/a.txt', head: 10, tail: null, text: 'hello world' })

/** As a gateway writes them: of two records of a call, one has the input. `perMs`: how many come in a millisecond. */
export function entryOf(i: number, { call = `0d5f6b1f2c${i % 100}`, perMs = 1 } = {}): AuditEntry {
  return {
    event: i % 2 === 0 ? 'tool_call' : 'tool_result',
    wallMs: 1_700_000_000_000 + Math.floor(i / perMs),
    tool: 'files:read_file',
    tool_call_id: `d56a8c1e-9c6a-4f0a-8d3b-${call}`,
    session_id: 'session-1',
    tenant: 'acme',
    user_id: `user-${i % 50}`,
    policy_revision: 1,
    catalog_revision: 2,
    input: i % 2 === 0 ? input : undefined,
  }
}
