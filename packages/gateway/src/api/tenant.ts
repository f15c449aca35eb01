import type { Caller } from '@toolgate/core'
import type {
  AuditCounter,
  AuditCountQuery,
  AuditCounts,
  AuditExporter,
  AuditExportQuery,
  AuditQuery,
  AuditReader,
  AuditRecord,
} from '@toolgate/core/audit'

/** Answers whether a person may look at what belongs to a tenant: his own, or any if he has none himself. */
export function maySee(person: Caller, { tenant }: { readonly tenant?: string | undefined }): boolean {
  return person.tenant === undefined || person.tenant === tenant
}

const DEFAULT_LIMIT = 100
const PAGE = 1000
/** So many records are looked through for one answer; a person goes on with `before`. */
const MAX_PAGES = 100

/** Gives the records of a query that a person may see. */
export async function queryFor(person: Caller, audit: AuditReader, query: AuditQuery): Promise<readonly AuditRecord[]> {
  if (person.tenant === undefined) return audit.query(query)
  const limit = query.limit ?? DEFAULT_LIMIT
  const found: AuditRecord[] = []
  let { beforeSeq } = query
  for (let page = 0; page < MAX_PAGES && found.length < limit; page++) {
    const records = await audit.query({ ...query, limit: PAGE, ...(beforeSeq === undefined ? {} : { beforeSeq }) })
    found.push(...records.filter((record) => maySee(person, record)))
    const oldest = records.at(-1)
    if (records.length < PAGE || !oldest) break
    beforeSeq = oldest.seq
  }
  return found.slice(0, limit)
}

/** Gives all records of a query that a person may see, oldest first. */
export async function* exportFor(
  person: Caller,
  audit: AuditExporter,
  query: AuditExportQuery,
): AsyncGenerator<AuditRecord> {
  for await (const record of audit.exportRecords(query)) {
    if (maySee(person, record)) yield record
  }
}

/** Counts the records of a query that a person may see. */
export async function countFor(person: Caller, audit: AuditCounter, query: AuditCountQuery): Promise<AuditCounts> {
  return audit.countOutcomes(person.tenant === undefined ? query : { ...query, tenant: person.tenant })
}
