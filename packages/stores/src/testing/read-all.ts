import type { AuditReader, AuditRecord } from '@toolgate/core/audit'

/** Returns every record, oldest first, page by page. */
export async function readAll(audit: AuditReader): Promise<readonly AuditRecord[]> {
  const pages: AuditRecord[] = []
  for (;;) {
    const beforeSeq = pages.at(-1)?.seq
    const page = await audit.query({ limit: 1000, ...(beforeSeq === undefined ? {} : { beforeSeq }) })
    if (page.length === 0) return pages.toReversed()
    pages.push(...page)
  }
}

/** Returns the ids of the calls, oldest first, without the audit's own records. */
export async function readCallIds(audit: AuditReader): Promise<readonly (string | undefined)[]> {
  const records = await readAll(audit)
  return records.filter(({ event }) => !event.startsWith('audit_')).map((record) => record.tool_call_id)
}
