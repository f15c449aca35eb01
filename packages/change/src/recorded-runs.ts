import type { CallPorts } from '@toolgate/core/call'
import {
  CallHistory,
  type CallPattern,
  type OpenHistory,
  type RunFacts,
  strictestFacts,
  valuesOf,
} from '@toolgate/core/decide'
import { takeUnknownRead } from '@toolgate/core/policy'
import { type Caller, defineCaller, type Tool } from '@toolgate/core'
import type { AuditRecord } from '@toolgate/core/audit'
import { readOwnJson } from '@toolgate/values/json'

/** The known facts of a run: the strictest and the laxest that it may have. */
export interface RecordedFacts {
  readonly strict: RunFacts
  readonly lax: RunFacts
}

/** The time of the first record. `isWhole`: the records start at the beginning of the audit, so nothing came before. */
export interface RecordedSince {
  readonly ms: number
  readonly isWhole: boolean
}

/**
 * Returns the time of the first record. In an audit of several replicas, a gap may follow its start, because retention
 * removes the records of each replica separately.
 */
export function sinceOf({ ts, seq, chain_seq: chainSeq }: AuditRecord): RecordedSince {
  return { ms: Date.parse(ts), isWhole: seq === 1 && chainSeq === undefined }
}

/** Options for reading the records of runs. */
interface RecordedRunsOptions {
  /** Milliseconds for which a history lasts after its last use. A run whose first record is later has no earlier calls. */
  readonly keepMs: number
  /** Whether the rules about labels are those that were in force when labels were recorded. */
  readonly hasRecordedLabels: boolean
  /** Whether the rules in force read runs, so that records name a shared history. */
  readonly knowsSharing: boolean
  /** Returns the labels that the rules in force give to the output of a tool. The server raised any others. */
  readonly ownLabels: (tool: Tool) => readonly string[]
}

interface SeenRun {
  readonly firstMs: number
  /** Whether the history may include calls that were not recorded. */
  isPartial: boolean
  /** The keys of patterns that may have matched a call with unknown fields. */
  readonly uncertain: Set<string>
}

/** A call that has begun, in the history of its run. */
interface BegunCall {
  readonly history: CallHistory
  readonly run: SeenRun
  readonly tool: Tool
  readonly owner: string
}

const MAX_CALLS = 100_000

/** The histories of recorded runs under one set of rules, built like those of a gate from the recorded calls. */
export class RecordedRuns {
  readonly #histories: CallPorts['histories']
  readonly #options: RecordedRunsOptions
  readonly #runs = new Map<string, SeenRun>()
  readonly #calls = new Map<string, BegunCall>()
  /** The number of running calls of each user. */
  readonly #running = new Map<string, number>()

  constructor(histories: CallPorts['histories'], options: RecordedRunsOptions) {
    this.#histories = histories
    this.#options = options
  }

  /** Whether any rule reads runs. */
  get isRead(): boolean {
    return this.#histories.rules !== undefined
  }

  /** Returns the known facts of a call's run right before the call. */
  factsOf(record: AuditRecord, caller: Caller, since: RecordedSince): RecordedFacts {
    const nowMs = this.#histories.nowMs()
    const run = this.#runOf(record, nowMs)
    const { keepMs, hasRecordedLabels } = this.#options
    const isKnown = since.isWhole || (record.run_id === undefined ? nowMs : run.firstMs) >= since.ms + keepMs
    const { names } = this.#histories.labels()
    const recorded = record.run_labels?.split(' ').filter((label) => label !== '')
    const facts = isKnown && new CallHistory(this.#histories, this.#open(record, caller), undefined).facts()
    if (facts && hasRecordedLabels && recorded?.some((label) => !facts.labels.includes(label))) run.isPartial = true
    if (!facts || run.isPartial) return this.#boundsOf(facts || undefined, recorded, names)
    const mayHave = ({ key }: CallPattern) => run.uncertain.has(key)
    return {
      strict: {
        ...facts,
        matched: (pattern, values) => facts.matched(pattern, values) || (pattern.event === 'began' && mayHave(pattern)),
        origin: () => 'untrusted',
      },
      lax: {
        ...facts,
        matched: (pattern, values) =>
          facts.matched(pattern, values) || (pattern.event === 'called' && mayHave(pattern)),
        origin: () => 'user',
      },
    }
  }

  /** Returns the facts of a run of which some calls are unknown. */
  #boundsOf(
    facts: RunFacts | undefined,
    recorded: readonly string[] | undefined,
    names: readonly string[],
  ): RecordedFacts {
    const seen = facts?.labels ?? []
    // Recorded labels are exact, and labels are only added.
    const known = this.#options.hasRecordedLabels ? recorded : undefined
    return {
      strict: {
        ...strictestFacts(names),
        ...(known && { labels: [...new Set([...known, ...seen])], isUnknown: false }),
      },
      lax: { ...LAXEST, labels: [...new Set([...(known ?? []), ...seen])] },
    }
  }

  /** Returns whether a run has labels of calls that were not recorded. */
  isPartial(record: AuditRecord, caller: Caller, since: RecordedSince): boolean {
    this.factsOf(record, caller, since)
    return this.#runOf(record, this.#histories.nowMs()).isPartial
  }

  markPartial(record: AuditRecord): void {
    this.#runOf(record, this.#histories.nowMs()).isPartial = true
  }

  /** Adds the beginning of a recorded call. */
  begin(record: AuditRecord, caller: Caller, tool: Tool, input: unknown): void {
    const first = record.continues === undefined ? undefined : this.#calls.get(callKey(record, record.continues))
    const run = this.#runOf(record, this.#histories.nowMs())
    const history = first?.history ?? new CallHistory(this.#histories, this.#open(record, caller), undefined)
    this.#noteUncertain(run, tool, input)
    void history.begin(tool, input, false, () => undefined)
    for (const oldest of this.#calls.keys()) {
      if (this.#calls.size < MAX_CALLS) break
      this.#forget(oldest)
    }
    const key = callKey(record, record.tool_call_id)
    this.#forget(key)
    const owner = ownerOf(record)
    this.#calls.set(key, { history, run, tool, owner })
    this.#running.set(owner, (this.#running.get(owner) ?? 0) + 1)
  }

  /** Adds the end of a recorded call, if its beginning was seen. */
  end(record: AuditRecord, input: unknown): void {
    const key = callKey(record, record.tool_call_id)
    const call = this.#calls.get(key)
    if (!call) return
    // Keeps the call open, because a next round continues it.
    if (record.event !== 'tool_input_required') this.#forget(key)
    const own = this.#options.ownLabels(call.tool)
    const raised = record.labels?.split(' ').filter((label) => !own.includes(label)) ?? []
    if (raised.length > 0) void call.history.raise(call.tool, raised)
    const done = record.event === 'tool_result' && record.error === undefined && record.is_error === undefined
    void call.history.end(call.tool, input, { done, output: undefined })
    takeUnknownRead()
  }

  #forget(key: string): void {
    const call = this.#calls.get(key)
    if (!call) return
    this.#calls.delete(key)
    const left = (this.#running.get(call.owner) ?? 1) - 1
    if (left === 0) this.#running.delete(call.owner)
    else this.#running.set(call.owner, left)
  }

  #runOf(record: AuditRecord, nowMs: number): SeenRun {
    const key = JSON.stringify([record.tenant, ...historyOf(record)])
    let run = this.#runs.get(key)
    if (!run) {
      // A run that begins in a call shares the history of that call. This is recorded only if the rules in force read runs.
      const mayShare = !this.#options.knowsSharing && record.run_id !== undefined && this.#running.has(ownerOf(record))
      this.#runs.set(key, (run = { firstMs: nowMs, isPartial: mayShare, uncertain: new Set() }))
    }
    return run
  }

  #open(record: AuditRecord, caller: Caller): OpenHistory {
    const [kind, id, client] = historyOf(record)
    const { tenant } = caller
    const opened =
      kind === 'run'
        ? this.#histories.of(caller, { id }, true, true)
        : this.#histories.of(
            defineCaller({ ...(tenant !== undefined && { tenant }), ...named('user', id), ...named('client', client) }),
            undefined,
            true,
            true,
          )
    if (opened instanceof Promise) throw new TypeError('the histories of a trial answer at once')
    return opened
  }

  #noteUncertain(run: SeenRun, tool: Tool, input: unknown): void {
    for (const pattern of this.#histories.rules?.of(tool) ?? []) {
      takeUnknownRead()
      valuesOf(pattern, { input, output: undefined })
      const isUnknown = takeUnknownRead() !== undefined || pattern.fields.some((field) => field.startsWith('output.'))
      if (isUnknown) run.uncertain.add(pattern.key)
    }
  }
}

const LAXEST: RunFacts = { labels: [], matched: ({ event }) => event === 'called', origin: () => 'user' }

type HistoryName =
  | readonly [kind: 'run', id: string, client?: undefined]
  | readonly [kind: 'caller', user: string | null, client: string | null]

/** Returns the history that a call belongs to. */
export function historyOf({ run_history: shared, run_id: run, user_id: user, client }: AuditRecord): HistoryName {
  const known = shared === undefined ? undefined : namedIn(shared)
  return known ?? (run === undefined ? ['caller', user ?? null, client ?? null] : ['run', run])
}

function namedIn(text: string): HistoryName | undefined {
  try {
    const [kind, id, client = null] = readOwnJson(text) as readonly unknown[]
    if (kind === 'run' && typeof id === 'string') return ['run', id]
    const texts = [id, client].map((one) => (typeof one === 'string' ? one : null))
    return kind === 'caller' ? ['caller', texts[0] ?? null, texts[1] ?? null] : undefined
  } catch {
    return undefined
  }
}

function named(field: 'user' | 'client', value: string | null | undefined): Caller {
  return typeof value === 'string' ? { [field]: value } : {}
}

function ownerOf({ tenant, user_id: user }: AuditRecord): string {
  return JSON.stringify([tenant, user])
}

function callKey({ run_id: run, session_id: session, user_id: user }: AuditRecord, id: string | undefined): string {
  return JSON.stringify([run, session, user, id])
}
