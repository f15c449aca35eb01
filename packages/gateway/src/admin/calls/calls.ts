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
import { type CallFilter, isPattern, matchesCall } from './call-filter.ts'

/** A page of calls, newest first. */
interface CallPage {
  readonly calls: readonly CallRow[]
  /** The `seq` before which the next page searches. Absent at the end of the audit. */
  readonly next?: number
  /** The time of the oldest record that was searched. */
  readonly searchedTo?: string
}

interface CallQuery {
  readonly filter: CallFilter
  readonly before?: number | undefined
  readonly limit: number
}

const PAGE = 1000
/** The maximum number of pages of records that are searched for one answer. The next request continues. */
const MAX_PAGES = 50
/** The maximum number of look-ups in one answer, for calls whose other record is far away. */
const MAX_LOOKUPS = 50

/**
 * Returns calls with their records, newest first.
 *
 * A call is placed at its end, or at its beginning if it still runs. The audit is read page by page from its end, so
 * any store works, and the cost depends on how much is searched.
 */
export async function findCalls(audit: AuditReader, query: CallQuery): Promise<CallPage> {
  return new CallSearch(audit, query).run()
}

/** Look-ups in one turn of the event loop, since a store that answers at once yields no turn. */
const LOOKUPS_A_TURN = 50

class CallSearch {
  readonly #audit: AuditReader
  readonly #query: CallQuery
  /** The records that were found for each call, newest first. */
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
    // The end of the call is newer than the searched records, so the call is on an earlier page.
    if (outcome === undefined && (await this.#hasEnded(record))) return
    if (matchesCall(record, this.#query.filter)) this.#found.push(records)
  }

  /** Whether a call that began has an end. On the first page, every end was already seen. */
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

  /** Looks up the beginning of a call that took so long that its records are far apart. */
  async #withBeginning(records: readonly AuditRecord[]): Promise<readonly AuditRecord[]> {
    const [end] = records
    const isWhole = end === undefined || records.length > 1 || !RAN.has(end.event)
    if (isWhole || this.#lookups++ >= MAX_LOOKUPS) return records
    const call = end.tool_call_id ?? ''
    return [...records, ...(await this.#recordsOf(call, { beforeSeq: end.seq, limit: 1 }))]
  }

  /** Returns the records of a call in the requested tenant: calls of another tenant may have the same id. */
  async #recordsOf(call: string, more: Omit<AuditQuery, 'call'>): Promise<readonly AuditRecord[]> {
    const { tenant } = this.#query.filter
    return this.#audit.query({ call, ...(tenant !== undefined && { tenant }), ...more })
  }
}

/** The final events of calls that had begun. */
const RAN: ReadonlySet<AuditRecord['event']> = new Set<AuditRecord['event']>([
  'tool_result',
  'tool_input_required',
  'tool_abandoned',
])

/** Returns the filters that the store can apply without separating the records of one call. */
function storeFilter(filter: CallFilter): AuditExportQuery {
  const { tool, user, session, tenant, call, run, since, until } = filter
  return {
    ...(tool !== undefined && !isPattern(tool) && { tool }),
    ...(user !== undefined && { user }),
    ...(session !== undefined && { session }),
    ...(tenant !== undefined && { tenant }),
    ...(call !== undefined && { call }),
    ...(run !== undefined && { run }),
    ...(since !== undefined && { since }),
    ...(until !== undefined && { until }),
  }
}

/** Whether the end of a call may be outside of the searched records. */
function isNarrow({ until }: CallFilter): boolean {
  return until !== undefined
}

/** The maximum number of begun calls that are held until their ends are read. */
const MAX_OPEN = 10_000

/**
 * Returns all calls that match, in the order of their ends, without holding them in memory. Calls that still run come
 * last.
 */
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

/** Returns the row of a call from its records, which are newest first. */
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
