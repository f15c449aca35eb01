import type { AuditEntry } from '@toolgate/core/audit'

/** Returns an audit entry for a test, with these fields. */
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
