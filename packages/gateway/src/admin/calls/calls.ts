import {
  type AuditExporter,
  type AuditExportQuery,
  type AuditQuery,
  type AuditReader,
  type AuditRecord,
  outcomeOfRecord,
} from '@toolgate/core/audit'
import type { CallOutcome, CallRow } from '../../model/rows.ts'
import { nextTurn, turnEach } from '../../util/next-turn.ts'
import { type CallFilter, matchesCall } from './call-filter.ts'

/** A page of calls, newest first. */
export interface CallPage {
  readonly calls: readonly CallRow[]
  /** Where the next page begins: the `seq` before which it searches. Absent at the end of the audit. */
  readonly next?: number
  /** The time of the oldest record that was searched. */
  readonly searchedTo?: string
}

export interface CallQuery {
  readonly filter: CallFilter
  readonly before?: number | undefined
  readonly limit: number
}

const PAGE = 1000
/** How many records are searched for one answer. The next request goes on. */
const MAX_PAGES = 50
/** How many calls of an answer are looked up whose other record is not near. */
const MAX_LOOKUPS = 50

/**
 * Returns calls, newest first: each has its records.
 *
 * A call stands where its end does; one without an end yet, where it began. The audit is read page by page from its end, so
 * any store serves, and an answer costs what it searches.
 */
export async function findCalls(audit: AuditReader, query: CallQuery): Promise<CallPage> {
  return new CallSearch(audit, query).run()
}

/** A look-up in a store that answers at once yields no turn. */
const LOOKUPS_A_TURN = 50

class CallSearch {
  readonly #audit: AuditReader
  readonly #query: CallQuery
  /** The records of each call that was met, newest first. */
  readonly #met = new Map<string, AuditRecord[]>()
  readonly #found: AuditRecord[][] = []
  #lookups = 0
  readonly #pace = turnEach(LOOKUPS_A_TURN)

  constructor(audit: AuditReader, query: CallQuery) {
    this.#audit = audit
    this.#query = query
  }

  async run(): Promise<CallPage> {
    const { filter, limit } = this.#query
    let { before } = this.#query
    let searchedTo: string | undefined
    for (let page = 0; page < MAX_PAGES; page++) {
      const records = await this.#audit.query({
        limit: PAGE,
        ...storeFilter(filter),
        ...(before !== undefined && { beforeSeq: before }),
      })
      for (const record of records) {
        if (this.#found.length >= limit) return this.#page(before, searchedTo)
        before = record.seq
        searchedTo = record.ts
        await this.#meet(record)
      }
      if (records.length < PAGE) return this.#page(undefined, searchedTo)
      await nextTurn()
    }
    return this.#page(before, searchedTo)
  }

  async #meet(record: AuditRecord): Promise<void> {
    const call = record.tool_call_id
    if (call === undefined) return
    const outcome = outcomeOfRecord(record)
    if (outcome === undefined && record.event !== 'tool_call') return
    const known = this.#met.get(call)
    if (known) {
      known.push(record)
      return
    }
    const records = [record]
    this.#met.set(call, records)
    // Its end is newer than what was searched: it stands there, on an earlier page.
    if (outcome === undefined && (await this.#hasEnded(record))) return
    if (matchesCall(record, this.#query.filter)) this.#found.push(records)
  }

  /** Whether a call that began has an end. Of the first page, each end was met before. */
  async #hasEnded({ tool_call_id: call = '', seq }: AuditRecord): Promise<boolean> {
    if (this.#query.before === undefined && !isNarrow(this.#query.filter)) return false
    if (this.#lookups++ >= MAX_LOOKUPS) return true
    await this.#pace()
    const later = await this.#recordsOf(call, { afterSeq: seq, limit: 10 })
    return later.some((one) => outcomeOfRecord(one) !== undefined)
  }

  async #page(next: number | undefined, searchedTo: string | undefined): Promise<CallPage> {
    const calls: CallRow[] = []
    for (const records of this.#found) {
      calls.push(toCallRow(await this.#withBeginning(records)))
      await this.#pace()
    }
    return { calls, ...(next !== undefined && { next }), ...(searchedTo !== undefined && { searchedTo }) }
  }

  /** Looks up the beginning of a call that took so long that it is not near its end. */
  async #withBeginning(records: readonly AuditRecord[]): Promise<readonly AuditRecord[]> {
    const [end] = records
    const isWhole = end === undefined || records.length > 1 || !RAN.has(end.event)
    if (isWhole || this.#lookups++ >= MAX_LOOKUPS) return records
    const call = end.tool_call_id ?? ''
    return [...records, ...(await this.#recordsOf(call, { beforeSeq: end.seq, limit: 1 }))]
  }

  /** Of the tenant that is asked for: calls of another one may have the same id. */
  async #recordsOf(call: string, more: Omit<AuditQuery, 'call'>): Promise<readonly AuditRecord[]> {
    const { tenant } = this.#query.filter
    return this.#audit.query({ call, ...(tenant !== undefined && { tenant }), ...more })
  }
}

/** The records of calls that had begun. */
const RAN: ReadonlySet<AuditRecord['event']> = new Set<AuditRecord['event']>([
  'tool_result',
  'tool_input_required',
  'tool_abandoned',
])

/** What the store itself can filter by, without taking records of one call apart. */
function storeFilter(filter: CallFilter): AuditExportQuery {
  const { tool, user, session, tenant, call, run, since, until } = filter
  return {
    ...(tool !== undefined && { tool }),
    ...(user !== undefined && { user }),
    ...(session !== undefined && { session }),
    ...(tenant !== undefined && { tenant }),
    ...(call !== undefined && { call }),
    ...(run !== undefined && { run }),
    ...(since !== undefined && { since }),
    ...(until !== undefined && { until }),
  }
}

/** Whether the end of a call may be outside what is searched. */
function isNarrow({ until }: CallFilter): boolean {
  return until !== undefined
}

/** How many calls that have begun are held until their ends come. */
const MAX_OPEN = 10_000

/** Returns all calls that match, in the order of their ends, without holding them in memory; those that still run come last. */
export async function* exportCalls(audit: AuditExporter, filter: CallFilter): AsyncGenerator<CallRow> {
  const open = new Map<string, AuditRecord>()
  for await (const record of audit.exportRecords(storeFilter(filter))) {
    const { tool_call_id: call } = record
    if (call === undefined) continue
    if (outcomeOfRecord(record) === undefined) {
      if (record.event === 'tool_call') hold(call, record)
      continue
    }
    const began = open.get(call)
    open.delete(call)
    if (matchesCall(record, filter)) yield toCallRow(began ? [record, began] : [record])
  }
  for (const record of open.values()) if (matchesCall(record, filter)) yield toCallRow([record])

  function hold(call: string, record: AuditRecord): void {
    open.set(call, record)
    const [oldest] = open.keys()
    if (open.size > MAX_OPEN && oldest !== undefined) open.delete(oldest)
  }
}

/** Returns a call of its records, newest first. */
function toCallRow(records: readonly AuditRecord[]): CallRow {
  const [latest] = records
  const first = records.at(-1)
  if (!latest || !first) throw new Error('a call has at least one record')
  const outcome: CallOutcome = outcomeOfRecord(latest) ?? 'running'
  return {
    id: latest.tool_call_id ?? '',
    seq: latest.seq,
    outcome,
    startedAt: first.ts,
    ...(outcome !== 'running' && { endedAt: latest.ts }),
    records: records.toReversed(),
  }
}
