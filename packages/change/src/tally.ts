import type { OutcomeWord, Reason } from '@toolgate/core'
import { ruleText } from '@toolgate/core/decide'
import type { AuditRecord } from '@toolgate/core/audit'
import type { RecordedEnd } from './recorded-calls.ts'

/**
 * The unknown part of a call: its input, its caller, the history of its run, its tool, the counts of its limits, or whether
 * its approver may still approve.
 */
export const UNKNOWN_PARTS = ['input', 'caller', 'run', 'tool', 'limit', 'approver'] as const
export type UnknownPart = (typeof UNKNOWN_PARTS)[number]

/** Calls of one caller to one tool that would end otherwise, in one way and for one reason. */
export interface ChangedCalls {
  readonly caller: string
  readonly tool: string
  readonly from: RecordedEnd['outcome']
  readonly to: OutcomeWord | 'limited'
  /** The rule that decides: of what is refused or asked, the new one; else the one that let it be refused. */
  readonly rule: string
  /** The rule as text, for people. */
  readonly why: string
  count: number
  readonly examples: CallExample[]
}

export interface CallExample {
  readonly seq: number
  readonly ts: string
  readonly callId: string
}

/** What one rule does to the recorded calls. */
export interface RuleTally {
  readonly rule: string
  changed: number
  /** The calls that it could not judge. */
  unknown: number
}

/** The counts so far. Plain JSON, from which counting can continue. */
export interface TallyState {
  readonly records: number
  /** Records that are missing or cannot be read: their calls are not judged. */
  readonly missing: number
  readonly calls: number
  readonly same: number
  readonly changed: number
  readonly unknown: number
  readonly drifted: number
  readonly firstAt?: string | undefined
  readonly lastAt?: string | undefined
  readonly lastSeq: number
  readonly rows: readonly ChangedCalls[]
  /** The changed calls that no row has. */
  readonly unlisted: number
  readonly rules: readonly RuleTally[]
  readonly unknownParts: Readonly<Record<UnknownPart, number>>
}

const MAX_ROWS = 1000
const MAX_RULES = 10_000
const MAX_EXAMPLES = 3

/** Counts how calls would end under the new rules. */
export class AccessTally {
  records = 0
  missing = 0
  calls = 0
  same = 0
  changed = 0
  unknown = 0
  /** The number of calls that did not end as the rules in force decide, but as the new rules do. */
  drifted = 0
  lastSeq = 0
  #firstAt: string | undefined
  #lastAt: string | undefined
  #unlisted = 0
  readonly #rows = new Map<string, ChangedCalls>()
  readonly #rules = new Map<string, RuleTally>()
  readonly #parts: Record<UnknownPart, number> = { input: 0, caller: 0, run: 0, tool: 0, limit: 0, approver: 0 }

  constructor(state?: TallyState) {
    if (!state) return
    const { rows, rules, firstAt, lastAt, unlisted, unknownParts, ...counts } = state
    Object.assign(this, counts)
    Object.assign(this.#parts, unknownParts)
    this.#firstAt = firstAt
    this.#lastAt = lastAt
    this.#unlisted = unlisted
    for (const row of rows) this.#rows.set(rowKey(row), { ...row, examples: [...row.examples] })
    for (const rule of rules) this.#rules.set(rule.rule, { ...rule })
  }

  /** Counts a judged call. */
  call({ ts }: AuditRecord): void {
    this.calls++
    this.#firstAt ??= ts
    this.#lastAt = ts
  }

  /** Counts a call that would end differently because of one rule. */
  change(
    record: AuditRecord,
    { caller, from, to, rule, why }: Omit<ChangedCalls, 'tool' | 'count' | 'examples'>,
  ): void {
    this.changed++
    const tool = record.tool ?? ''
    const row: ChangedCalls = { caller, tool, from, to, rule, why, count: 0, examples: [] }
    const key = rowKey(row)
    let kept = this.#rows.get(key)
    if (!kept && this.#rows.size < MAX_ROWS) this.#rows.set(key, (kept = row))
    if (kept) {
      kept.count++
      const { seq, ts, tool_call_id: callId = '' } = record
      if (kept.examples.length < MAX_EXAMPLES) kept.examples.push({ seq, ts, callId })
    } else this.#unlisted++
    const ruleTally = this.#ruleOf(rule)
    if (ruleTally) ruleTally.changed++
  }

  /** Counts a call that could not be judged, for each rule that could not judge it. */
  leaveOpen(part: UnknownPart, rules: Iterable<string>): void {
    this.unknown++
    this.#parts[part]++
    for (const rule of new Set(rules)) {
      const tally = this.#ruleOf(rule)
      if (tally) tally.unknown++
    }
  }

  #ruleOf(rule: string): RuleTally | undefined {
    let tally = this.#rules.get(rule)
    if (!tally && this.#rules.size < MAX_RULES) this.#rules.set(rule, (tally = { rule, changed: 0, unknown: 0 }))
    return tally
  }

  /** Returns the counts. Rows with the most calls come first. */
  state(): TallyState {
    const { records, missing, calls, same, changed, unknown, drifted, lastSeq } = this
    return {
      records,
      missing,
      calls,
      same,
      changed,
      unknown,
      drifted,
      firstAt: this.#firstAt,
      lastAt: this.#lastAt,
      lastSeq,
      rows: [...this.#rows.values()]
        .map((row) => ({ ...row, examples: [...row.examples] }))
        .toSorted((a, b) => b.count - a.count),
      unlisted: this.#unlisted,
      rules: [...this.#rules.values()].map((rule) => ({ ...rule })).toSorted((a, b) => (a.rule < b.rule ? -1 : 1)),
      unknownParts: { ...this.#parts },
    }
  }
}

function rowKey({ caller, tool, from, to, rule }: ChangedCalls): string {
  return JSON.stringify([caller, tool, from, to, rule])
}

/** Returns the rule of a reason: a clause, a policy, or the layer and the code. */
export function ruleOf(reason: Reason): string {
  return ruleText(reason) ?? `${reason.layer}: ${reason.code}`
}
