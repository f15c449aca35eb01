import type { CallPorts } from '../call/attempt.ts'
import { CallHistory } from '../history/call-history.ts'
import { type RunFacts, strictestFacts } from '../history/facts.ts'
import type { CallPattern } from '../history/facts.ts'
import type { OpenHistory } from '../history/open-history.ts'
import { valuesOf } from '../history/rules.ts'
import { takeUnknownRead } from '../policy/uncertain.ts'
import type { Caller } from '../ports/caller.ts'
import type { AuditRecord } from '../ports/ports.ts'
import type { Tool } from '../tools/tool.ts'

/** What is known of a run: the facts between which the real ones are. */
export interface RecordedFacts {
  readonly strict: RunFacts
  readonly lax: RunFacts
}

/** From when on records are there. `isWhole`: they begin where the audit began, so nothing came before them. */
export interface RecordedSince {
  readonly ms: number
  readonly isWhole: boolean
}

interface SeenRun {
  readonly firstMs: number
  /** The keys of patterns that may have matched a call of which not all fields were recorded. */
  readonly uncertain: Set<string>
}

const MAX_CALLS = 100_000

/** The histories of recorded runs under one set of rules: kept as the gate keeps them, from what the records tell of each call. */
export class RecordedRuns {
  readonly #histories: CallPorts['histories']
  readonly #keepMs: number
  readonly #runs = new Map<string, SeenRun>()
  readonly #calls = new Map<string, { readonly history: CallHistory; readonly run: SeenRun; readonly tool: Tool }>()

  /** `keepMs`: how long a history lasts after its last use. A run whose first record is later than that has no earlier calls. */
  constructor(histories: CallPorts['histories'], keepMs: number) {
    this.#histories = histories
    this.#keepMs = keepMs
  }

  /** Whether any rule reads runs. */
  get isRead(): boolean {
    return this.#histories.rules !== undefined
  }

  /** Returns what is known of a call's run just before it. */
  factsOf(record: AuditRecord, caller: Caller, since: RecordedSince): RecordedFacts {
    const nowMs = this.#histories.nowMs()
    const run = this.#runOf(record, nowMs)
    const isKnown = since.isWhole || (record.run_id === undefined ? nowMs : run.firstMs) >= since.ms + this.#keepMs
    const names = this.#histories.labels().names
    const facts = isKnown && new CallHistory(this.#histories, this.#open(record, caller), undefined).facts()
    if (!facts) return { strict: strictestFacts(names), lax: LAXEST }
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

  /** Enters that a recorded call began. */
  begin(record: AuditRecord, caller: Caller, tool: Tool, input: unknown): void {
    const first = record.continues === undefined ? undefined : this.#calls.get(callKey(record, record.continues))
    const run = this.#runOf(record, this.#histories.nowMs())
    const history = first?.history ?? new CallHistory(this.#histories, this.#open(record, caller), undefined)
    this.#noteUncertain(run, tool, input)
    void history.begin(tool, input, false, () => undefined)
    for (const oldest of this.#calls.keys()) {
      if (this.#calls.size < MAX_CALLS) break
      this.#calls.delete(oldest)
    }
    this.#calls.set(callKey(record, record.tool_call_id), { history, run, tool })
  }

  /** Enters how a recorded call ended, if its beginning was seen. */
  end(record: AuditRecord, input: unknown): void {
    const key = callKey(record, record.tool_call_id)
    const call = this.#calls.get(key)
    if (!call) return
    // The next round goes on with it.
    if (record.event !== 'tool_input_required') this.#calls.delete(key)
    const done = record.event === 'tool_result' && record.error === undefined && record.is_error === undefined
    void call.history.end(call.tool, input, { done, output: undefined })
    takeUnknownRead()
  }

  #runOf(record: AuditRecord, nowMs: number): SeenRun {
    const key = JSON.stringify([
      record.tenant,
      ...(record.run_id === undefined ? [record.user_id, record.client, 0] : [record.run_id]),
    ])
    let run = this.#runs.get(key)
    if (!run) this.#runs.set(key, (run = { firstMs: nowMs, uncertain: new Set() }))
    return run
  }

  #open({ run_id: id }: AuditRecord, caller: Caller): OpenHistory {
    const opened = this.#histories.of(caller, id === undefined ? undefined : { id }, true, true)
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

function callKey({ run_id: run, session_id: session, user_id: user }: AuditRecord, id: string | undefined): string {
  return JSON.stringify([run, session, user, id])
}
