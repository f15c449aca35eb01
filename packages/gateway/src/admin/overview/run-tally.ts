import { type AuditRecord, outcomeOfRecord } from '@toolgate/core/audit'
import { LONGEST_MS } from './tally.ts'

/** The counts from the records of a run, which has its own id or that of a client's session. */
export interface CountedRun {
  readonly id: string
  readonly kind: 'run' | 'session'
  readonly tenant: string | undefined
  user: string | undefined
  client: string | undefined
  app: string | undefined
  /** The user of the host that started it. */
  host: string | undefined
  /** When it started, or the time of its first counted record, in wall-clock milliseconds. */
  readonly startedAt: number
  lastAt: number
  /** The `seq` of its latest record. */
  lastSeq: number
  calls: number
  refused: number
  failed: number
  readonly labels: Set<string>
  /** When and why it ended. */
  ended: { readonly at: number; readonly reason: string } | undefined
}

const MAX_RUNS = 10_000
const MAX_LABELS = 64

/** Counts the calls of runs. Keeps the runs of the last week with the latest calls, at most 10,000. */
export class RunTally {
  /** The run with the latest record is at the end. */
  readonly #runs = new Map<string, CountedRun>()
  readonly #maxRuns: number

  constructor({ maxRuns = MAX_RUNS }: { readonly maxRuns?: number } = {}) {
    this.#maxRuns = maxRuns
  }

  add(record: AuditRecord): void {
    const outcome = outcomeOfRecord(record)
    const { event, run_id: run, session_id: session } = record
    if (outcome === undefined && !BEGINS.has(event) && event !== 'run_ended') return
    const id = run ?? session
    if (id === undefined) return
    const one = this.#of(id, run === undefined ? 'session' : 'run', record)
    const at = Date.parse(record.ts)
    one.lastSeq = record.seq
    if (event === 'run_ended') one.ended = { at, reason: record.reason ?? '' }
    else if (event === 'run_started') one.host = record.actor
    else one.lastAt = at
    one.user ??= record.user_id
    one.client ??= record.client
    one.app ??= record.app
    for (const label of labelsOf(record)) if (one.labels.size < MAX_LABELS) one.labels.add(label)
    if (outcome === undefined) return
    one.calls++
    if (outcome === 'refused') one.refused++
    if (outcome === 'failed') one.failed++
  }

  /**
   * Returns the runs of the last week, those with the latest records first, for one tenant, or for all if `undefined`.
   */
  read(tenant: string | undefined, nowMs: number): readonly Readonly<CountedRun>[] {
    const found: CountedRun[] = []
    for (const [key, run] of this.#runs)
      if (run.lastAt < nowMs - LONGEST_MS) this.#runs.delete(key)
      else if (tenant === undefined || run.tenant === tenant) found.push(run)
    return found.toReversed()
  }

  /**
   * Returns the counts of a session or run in a tenant. Ids of two tenants may be equal, as clients and hosts choose
   * some of them.
   */
  #of(id: string, kind: CountedRun['kind'], { tenant, ts, seq }: AuditRecord): CountedRun {
    const key = JSON.stringify([tenant ?? null, kind, id])
    const at = Date.parse(ts)
    const run = this.#runs.get(key) ?? {
      id,
      kind,
      tenant,
      user: undefined,
      client: undefined,
      app: undefined,
      host: undefined,
      startedAt: at,
      lastAt: at,
      lastSeq: seq,
      calls: 0,
      refused: 0,
      failed: 0,
      labels: new Set<string>(),
      ended: undefined,
    }
    this.#runs.delete(key)
    this.#runs.set(key, run)
    const [oldest] = this.#runs.keys()
    if (this.#runs.size > this.#maxRuns && oldest !== undefined) this.#runs.delete(oldest)
    return run
  }
}

const BEGINS: ReadonlySet<AuditRecord['event']> = new Set<AuditRecord['event']>(['tool_call', 'run_started'])

function labelsOf({ run_labels: held = '', labels = '' }: AuditRecord): readonly string[] {
  return held === '' && labels === '' ? NONE : `${held} ${labels}`.split(' ').filter(Boolean)
}

const NONE: readonly string[] = []
