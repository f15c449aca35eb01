import type { AuditReader, AuditRecord } from '@toolgate/core'

/** Gives every record, oldest first, page by page. */
export async function readAll(audit: AuditReader): Promise<readonly AuditRecord[]> {
  const pages: AuditRecord[] = []
  for (;;) {
    const beforeSeq = pages.at(-1)?.seq
    const page = await audit.query({ limit: 1000, ...(beforeSeq === undefined ? {} : { beforeSeq }) })
    if (page.length === 0) return pages.toReversed()
    pages.push(...page)
  }
}
