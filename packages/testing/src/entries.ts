import type { AuditEntry } from '@toolgate/core/audit'

/** Gives an audit entry to write in a test, with what the test cares about. */
export function auditEntry(fields: Partial<AuditEntry> = {}): AuditEntry {
  return {
    event: 'tool_call',
    wallMs: 1_700_000_000_123,
    tool: 'files:read_file',
    tool_call_id: 'call-1',
    policy_revision: 1,
    catalog_revision: 1,
    ...fields,
  }
}
