import { portsOf } from '@toolgate/core/call'
import type { AuditRecord } from '@toolgate/core/audit'
import type { RecordedCaller } from './recorded-callers.ts'
import type { AskedPair, Question, Questions } from './questions.ts'
import { endOf, type RecordedEnd } from './recorded-calls.ts'
import { type RecordedInput, UNKNOWN_INPUT } from './recorded-facts.ts'
import { RecordedApprovals } from './recorded-approvals.ts'
import type { RecordedCaps } from './recorded-caps.ts'
import { RecordedLimits } from './recorded-limits.ts'
import { type RecordedFacts, RecordedRuns, type RecordedSince, sinceOf } from './recorded-runs.ts'
import { type Both, judge, type Side, type Verdict } from './side.ts'
import { ruleOf, type AccessTally, type UnknownPart } from './tally.ts'
import type { Tool } from '@toolgate/core'
import type { TrialClock } from './trial.ts'

interface ReplayOptions {
  readonly questions: Questions
  readonly sides: Both<Side>
  readonly clock: TrialClock
  readonly tally: AccessTally
  /** Only calls from this time on are judged. */
  readonly sinceMs: number | undefined
  /** Only calls of callers with this role are judged. Absent: all. */
  readonly role: string | undefined
  /** For each set of rules, how long a history lasts after its last use. */
  readonly keepMs: Both<number>
  /** Whether both sets of rules have the same labels. */
  readonly sameLabels: boolean
  readonly caps: RecordedCaps
  /** Returns the locked groups of a tool that differ between the two sets of rules. */
  readonly changedLocks: (tool: Tool) => readonly string[]
  /** Whether the new rules have demands on approvers. */
  readonly asksApprovers: boolean
}

/** The judgement of a recorded call under one set of rules. */
type Judged = { readonly verdict: Verdict } | { readonly part: UnknownPart; readonly rules: readonly string[] }

/** Judges recorded calls in order, each after the events that really preceded it. */
export class Replay {
  readonly #options: ReplayOptions
  readonly #limits = new RecordedLimits()
  readonly #approvals = new RecordedApprovals()
  #runs: Both<RecordedRuns> | undefined
  /** The start of the records. The first record need not be about a call: an audit begins with `audit_opened`. */
  #since: RecordedSince | undefined

  constructor(options: ReplayOptions) {
    this.#options = options
  }

  /** Whether earlier records have mattered, for runs or new limits. */
  readsPast = false

  /** Notes that records are missing before one, so that runs are known only from there on. */
  startAgain(record: AuditRecord): void {
    this.#since = { ...sinceOf(record), isWhole: false }
  }

  /** Reads a record. `isDone`: its call was judged before, and now only counts for later calls. */
  read(record: AuditRecord, isDone: boolean): Promise<void> | undefined {
    const { clock, questions } = this.#options
    this.#since ??= sinceOf(record)
    if (record.event === 'approval_decided') {
      this.readsPast ||= this.#options.asksApprovers
      this.#approvals.read(record)
    }
    if (record.tool_call_id === undefined || record.tool === undefined) return undefined
    clock.nowMs = Date.parse(record.ts)
    const end = endOf(record)
    if (!end) {
      this.#options.caps.end(record)
      if (this.#runs) for (const runs of [this.#runs.before, this.#runs.after]) runs.end(record, UNKNOWN_INPUT.strict)
      return undefined
    }
    const question = questions.of(record)
    if (question instanceof Promise) return question.then((asked) => this.#take(record, end, asked, isDone))
    return this.#take(record, end, question, isDone)
  }

  #take(record: AuditRecord, end: RecordedEnd, question: Question, isDone: boolean): undefined {
    const { clock, sinceMs, role, tally } = this.#options
    this.#runs ??= this.#openRuns(question)
    this.readsPast ||=
      this.#runs.before.isRead || this.#runs.after.isRead || question.newUses.length > 0 || this.#options.caps.isRead
    const input = question.inputOf(record)
    const isAsked = role === undefined || hasRole(question.caller, role)
    const isJudged = !isDone && isAsked && (sinceMs === undefined || clock.nowMs >= sinceMs)
    this.#noteMissing(record, question)
    if (isJudged && record.continues === undefined && record.purpose === undefined) {
      tally.call(record)
      this.#judge(record, end, question, input)
    }
    if (record.event === 'tool_call') this.#begin(record, question, input)
    return undefined
  }

  /** Recorded labels that no recorded call of the run raised come from missing calls. */
  #noteMissing(record: AuditRecord, { caller }: Question): void {
    const [runs, since] = [this.#runs, this.#since]
    if (record.run_labels === undefined || !runs?.before.isRead || !since) return
    if (runs.before.isPartial(record, caller.strict, since)) runs.after.markPartial(record)
  }

  #openRuns({ before, after }: Question): Both<RecordedRuns> {
    const { keepMs, sameLabels } = this.#options
    const portsOfPair = ({ strict: { view } }: AskedPair) => {
      const ports = portsOf(view)
      if (!ports) throw new TypeError('a view of a gate is needed')
      return ports
    }
    const inForce = portsOfPair(before).histories
    const open = (pair: AskedPair, ms: number, hasRecordedLabels: boolean) =>
      new RecordedRuns(portsOfPair(pair).histories, {
        keepMs: ms,
        hasRecordedLabels,
        knowsSharing: inForce.rules !== undefined,
        ownLabels: (tool) => inForce.labels().of(tool).raises,
      })
    return { before: open(before, keepMs.before, true), after: open(after, keepMs.after, sameLabels) }
  }

  /** Adds a call that ran to its run and its limits. */
  #begin(record: AuditRecord, { caller, before, after, newUses }: Question, input: RecordedInput): void {
    const runs = this.#runs
    for (const [side, asked] of [[runs?.before, before] as const, [runs?.after, after] as const]) {
      const { tool } = asked.strict.decided
      if (side?.isRead && tool) side.begin(record, caller.strict, tool, input.strict)
    }
    const { tool } = after.strict.decided
    if (tool) this.#options.caps.begin(record, tool, caller.strict)
    if (newUses.length > 0 && tool && record.continues === undefined)
      this.#limits.take(newUses, { caller: caller.strict, tool, input: input.strict }, this.#options.clock.nowMs)
  }

  #judge(record: AuditRecord, end: RecordedEnd, question: Question, input: RecordedInput): void {
    const { tally } = this.#options
    const caller = question.caller.name
    const opened = record.reason === 'group_locked' ? this.#locksOf(record, question) : []
    if (opened.length > 0) return tally.leaveOpen('run', opened)
    if (end.outcome === 'other')
      return record.reason === 'too_busy' && this.#options.caps.isLoosened
        ? tally.leaveOpen('limit', ['concurrency'])
        : void tally.same++
    if (end.outcome === 'limited') return this.#judgeLimited(record, question)
    const judged = question.isSame ? undefined : this.#ask('after', record, question, input)
    if (judged && 'part' in judged) return tally.leaveOpen(judged.part, judged.rules)
    const to = judged?.verdict ?? { outcome: end.outcome, reasons: [] }
    const locks = to.outcome === 'deny' ? [] : this.#locksOf(record, question)
    if (locks.length > 0) return tally.leaveOpen('run', locks)
    const ran = to.outcome === 'allow' || to.outcome === 'ask'
    const limit = ran && question.newUses.length > 0 ? this.#askLimits(question, input) : undefined
    if (limit && 'unknown' in limit) return tally.leaveOpen('limit', limit.unknown)
    if (limit)
      return tally.change(record, { caller, from: end.outcome, to: 'limited', rule: limit.over, why: 'it is used up' })
    const full = ran && record.event === 'tool_call' ? this.#fullCaps(question) : []
    if (full.length > 0) return tally.leaveOpen('limit', full)
    if (isSameEnd(to.outcome, end.outcome)) {
      if (to.outcome === 'ask' && judged) return this.#judgeApproval(record, question, input, judged.verdict)
      return void tally.same++
    }
    const before = this.#ask('before', record, question, input)
    const isDrift = 'verdict' in before && isSameEnd(before.verdict.outcome, to.outcome)
    if (isDrift) return void tally.drifted++
    const [by] = to.outcome !== 'allow' ? to.reasons : 'verdict' in before ? before.verdict.reasons : []
    const rule = by ? ruleOf(by) : (record.clause ?? record.reason ?? 'unknown')
    tally.change(record, { caller, from: end.outcome, to: to.outcome, rule, why: by?.text ?? record.detail ?? '' })
  }

  /** Returns the changed locks that a call of a session may meet. */
  #locksOf({ session_id: session }: AuditRecord, { after }: Question): readonly string[] {
    const { tool } = after.strict.decided
    return session === undefined || !tool ? [] : this.#options.changedLocks(tool).map((name) => `lock of group ${name}`)
  }

  /** An approved call stays the same if its approver may approve it under the new rules. */
  #judgeApproval(record: AuditRecord, question: Question, input: RecordedInput, to: Verdict): void {
    const { tally } = this.#options
    const asked = record.event === 'tool_call' ? this.#ask('before', record, question, input) : undefined
    const found = this.#approvals.judge(record, asked && 'verdict' in asked ? asked.verdict : undefined, to)
    if (!found) return void tally.same++
    const [rule = 'unknown'] = to.reasons.flatMap((one) => (one.approver ? [ruleOf(one)] : []))
    if (found.answer === 'unknown') return tally.leaveOpen('approver', [rule])
    const why = `it must be approved ${found.demand}`
    tally.change(record, { caller: question.caller.name, from: 'ask', to: 'ask', rule, why })
  }

  #fullCaps({ after, caller }: Question): readonly string[] {
    const { tool } = after.strict.decided
    return tool && this.#since
      ? this.#options.caps.full(tool, caller.strict, this.#options.clock.nowMs, this.#since)
      : []
  }

  /** A call that a limit refused may change only if every limit that could have refused it is gone. */
  #judgeLimited(record: AuditRecord, { goneUses, after, caller }: Question): void {
    const { tally } = this.#options
    const gone = goneUses.find(({ label }) => label === record.limit)
    if (!gone) return void tally.same++
    const left = after.strict.uses
    if (left.length > 0) return tally.leaveOpen('limit', left.map(limitRule))
    const rule = limitRule(gone)
    tally.change(record, { caller: caller.name, from: 'limited', to: 'allow', rule, why: 'it is gone' })
  }

  #askLimits(
    { newUses, after, caller }: Question,
    input: RecordedInput,
  ): { readonly over: string } | { readonly unknown: readonly string[] } | undefined {
    const { tool } = after.strict.decided
    const since = this.#since
    if (!tool || !since) return undefined
    const { nowMs } = this.#options.clock
    const context = { caller: caller.strict, tool, input: input.strict }
    const answers = newUses.map((use) => ({ use, answer: this.#limits.judge(use, context, nowMs, since) }))
    const over = answers.find(({ answer }) => answer === 'over')
    if (over) return { over: limitRule(over.use) }
    const unknown = answers.flatMap(({ use, answer }) => (answer === 'unknown' ? [limitRule(use)] : []))
    return unknown.length > 0 ? { unknown } : undefined
  }

  /** Evaluates one set of rules for a call, in each variant of its unknown parts. */
  #ask(side: 'before' | 'after', record: AuditRecord, question: Question, input: RecordedInput): Judged {
    const { strict, lax } = question[side]
    if (!strict.decided.tool && !question[side === 'before' ? 'after' : 'before'].strict.decided.tool)
      return { part: 'tool', rules: [] }
    const facts = strict.readsRun ? this.#factsOf(side, record, question) : undefined
    const worst = judge(strict, input.strict, facts?.strict)
    if (strict === lax && !strict.readsCall) return { verdict: worst }
    const best = judge(lax, input.lax, facts?.lax)
    if (worst.outcome === best.outcome) return { verdict: best }
    const known = new Set(best.reasons.map(({ text }) => text))
    const rules = worst.reasons.filter(({ text }) => !known.has(text)).map(ruleOf)
    if (strict.decision.outcome !== lax.decision.outcome) return { part: 'caller', rules }
    const isOfRun = facts !== undefined && judge(strict, input.strict, facts.lax).outcome === best.outcome
    return { part: isOfRun ? 'run' : 'input', rules }
  }

  #factsOf(side: 'before' | 'after', record: AuditRecord, { caller }: Question): RecordedFacts | undefined {
    const [runs, since] = [this.#runs, this.#since]
    if (!runs || !since) return undefined
    return runs[side].factsOf(record, caller.strict, since)
  }
}

/** An unknown role does not count. */
function hasRole({ strict, lax }: RecordedCaller, role: string): boolean {
  return [strict, lax].every(({ roles = [] }) => roles.includes(role))
}

function limitRule({ rule, label }: { readonly rule: string; readonly label: string }): string {
  return `limit ${rule}:${label}`
}

/** Two refusals count as the same end, even if different rules refuse. */
function isSameEnd(one: string, other: string): boolean {
  return one === other || (isRefusal(one) && isRefusal(other))
}

function isRefusal(outcome: string): boolean {
  return outcome === 'deny' || outcome === 'wait'
}
