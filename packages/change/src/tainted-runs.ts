import { UNTRUSTED } from '@toolgate/core/decide'
import type { AuditRecord } from '@toolgate/core/audit'
import { historyOf, type RecordedSince, sinceOf } from './recorded-runs.ts'

const DAY_MS = 86_400_000
const MAX_RUNS = 200_000

interface SeenRunTimes {
  readonly firstMs: number
  taintedMs: number
}

/**
 * Finds runs that read something untrusted, by the recorded labels and those that tools raise. Runs in one session share
 * what they read, as sub-agents do.
 */
export class TaintedRuns {
  readonly #taints: (tool: string) => boolean
  /** How long labels count for a caller without a run. */
  readonly #labelMs: number
  readonly #seen = new Map<string, SeenRunTimes>()
  #since: RecordedSince | undefined

  constructor(taints: (tool: string) => boolean, labelMs: number = DAY_MS) {
    this.#taints = taints
    this.#labelMs = labelMs
  }

  /** Notes where the records begin. */
  start(record: AuditRecord): void {
    this.#since ??= sinceOf(record)
  }

  /** Notes that records are missing before one. */
  startAgain(record: AuditRecord): void {
    this.#since = { ...sinceOf(record), isWhole: false }
  }

  /** Notes that a call begins. Returns the state of its run before. */
  begin(record: AuditRecord, tool: string): 'tainted' | 'unknown' | undefined {
    const nowMs = Date.parse(record.ts)
    const keys = keysOf(record)
    const runs = keys.map((key) => this.#of(key, nowMs))
    const state = this.#stateOf(record, runs, nowMs)
    if (this.#taints(tool) || hasLabel(record.labels)) this.#taint(record, nowMs)
    return state
  }

  /** Notes the labels that a call has raised by its end. */
  end(record: AuditRecord): void {
    if (hasLabel(record.labels)) this.#taint(record, Date.parse(record.ts))
  }

  #taint(record: AuditRecord, nowMs: number): void {
    for (const key of keysOf(record)) {
      const run = this.#of(key, nowMs)
      if (run) run.taintedMs = nowMs
    }
  }

  #stateOf(
    record: AuditRecord,
    runs: readonly (SeenRunTimes | undefined)[],
    nowMs: number,
  ): 'tainted' | 'unknown' | undefined {
    const lifeMs = record.run_id === undefined && record.session_id === undefined ? this.#labelMs : Infinity
    if (hasLabel(record.run_labels) || runs.some((run) => run && nowMs - run.taintedMs < lifeMs)) return 'tainted'
    const { ms = 0, isWhole = false } = this.#since ?? {}
    // The state is unknown if there was no room for the run, or if it may have begun before the first record.
    if (runs.some((run) => run === undefined)) return 'unknown'
    const firstMs = record.run_id === undefined ? nowMs : Math.min(...runs.map((run) => run?.firstMs ?? 0))
    return isWhole || firstMs >= ms + DAY_MS ? undefined : 'unknown'
  }

  #of(key: string, nowMs: number): SeenRunTimes | undefined {
    let seen = this.#seen.get(key)
    if (!seen && this.#seen.size < MAX_RUNS) this.#seen.set(key, (seen = { firstMs: nowMs, taintedMs: -Infinity }))
    return seen
  }
}

function hasLabel(labels: string | undefined): boolean {
  return labels?.split(' ').includes(UNTRUSTED) ?? false
}

function keysOf(record: AuditRecord): readonly string[] {
  const { tenant, session_id: session, user_id: user } = record
  return [
    JSON.stringify([tenant, ...historyOf(record)]),
    ...(session === undefined ? [] : [JSON.stringify([tenant, user, session, 'session'])]),
  ]
}
