import type { Approval, Caller, Reason } from '@toolgate/core'
import type { AuditExporter, AuditReader, AuditRecord } from '@toolgate/core/audit'
import { isObject, readOwnJson, toJsonText } from '@toolgate/values/json'
import type { MayStill } from '@toolgate/core/decide'
import type { NeededChange } from '@toolgate/change/internal'

/*
 * The text of rules that people of a tenant may read. A rule is of all tenants, so its text may name another one's users, tools and
 * values. They learn that it decided, its name and the message that its author wrote.
 */

/** Whether a person may read the text of rules. People of a tenant may not. */
export function readsRules({ tenant }: Caller): boolean {
  return tenant === undefined
}

/** The texts that replace a rule's text, by the code of its reason. */
const WORDS: ReadonlyMap<string, string> = new Map([
  ['policy_denied', 'a rule denies it'],
  ['policy_not_allowed', 'no rule allows it'],
  ['policy_tag_missing', 'a rule requires a tag that it lacks'],
  ['policy_error', 'a rule could not be decided'],
  ['policy_ask', 'a rule asks for approval of it'],
  ['input_denied', 'a rule denies it with this input'],
  ['history_unknown', 'a rule needs to know what the run has done'],
  ['approval_required', 'a rule asks for approval of it'],
])

/** Facts about the run and the input. Facts about earlier calls are left out, because they reveal the rule. */
const OF_THE_CALL: ReadonlySet<string> = new Set(['label', 'origin'])

/** Returns a reason without the parts that a person may not read. */
export function reasonFor(person: Caller, reason: Reason): Reason {
  const text = WORDS.get(reason.code)
  if (text === undefined || readsRules(person)) return reason
  const { read, ...rest } = reason
  return { ...rest, text, ...(read && { read: read.filter(({ kind }) => OF_THE_CALL.has(kind)) }) }
}

/**
 * Returns the reasons that may still refuse a call. A person who may not read conditions gets no example and a general
 * text.
 */
export function mayStillFor(person: Caller, may: MayStill): MayStill {
  if (readsRules(person)) return may
  const { example: _, ...rest } = may
  return { ...rest, text: MAY_STILL[may.on][may.outcome === 'ask' ? 'ask' : 'deny'] }
}

const MAY_STILL = {
  input: { ask: 'a rule asks for approval of some inputs', deny: 'a rule or a limit refuses some inputs' },
  run: { ask: 'a rule asks for approval after some calls', deny: 'a rule denies it after some calls' },
  code: { ask: 'a hook may ask for approval', deny: 'a hook may refuse it' },
  now: { ask: 'approval is needed now', deny: 'it would be refused now' },
} as const satisfies Record<MayStill['on'], Record<'ask' | 'deny', string>>

/**
 * Returns the suggested changes that a person may read. Changes of a caller or an input contain values from conditions.
 */
export function waysFor(
  person: Caller,
  ways: readonly (readonly NeededChange[])[],
): readonly (readonly NeededChange[])[] {
  if (readsRules(person)) return ways
  const isShown = ({ on, does }: NeededChange) => on === 'state' || (on === 'policy' && does !== 'untag')
  return ways.filter((way) => way.every(isShown))
}

/**
 * Returns an approval without the parts that a person may not read. They read the messages, values and names of its rules.
 */
export function approvalFor(person: Caller, given: Approval): Approval {
  const { told, ...approval } = withoutNames(given)
  if (readsRules(person)) return approval
  const { asked: _, why, ...rest } = approval
  if (told !== undefined) return { ...rest, why: told }
  if (why === undefined) return rest
  // The row of an earlier version.
  const [shown = ''] = why.split(RULE_BEGINS, 1)
  return { ...rest, why: shown.trim() || 'A rule asks for approval of it.' }
}

/** Leaves out the other names of the people, what each approver counts for, and the hashes that only grants compare. */
function withoutNames({ aliases: _, clauses: __, approvedBy, ...approval }: Approval): Approval {
  if (!approvedBy) return approval
  return { ...approval, approvedBy: approvedBy.map(({ behind: _behind, fills: _fills, ...vote }) => vote) }
}

/** Matches the start of a rule's text, or of the earlier calls that it looks for. */
const RULE_BEGINS =
  /; (?:more than|at least|less than|at most|anything but) \S.* needs a person|policy "|(?:, and )?this run has (?:no successful call of|already called) /i

/** Returns a record without the parts that a person may not read. */
export function recordFor(person: Caller, record: AuditRecord): AuditRecord {
  if (readsRules(person)) return record
  // `facts` has a field for each field that a condition reads, even if the input lacks it.
  const { facts: _, operands: written, detail, ...rest } = record
  const words = WORDS.get(record.reason ?? '')
  const operands = written === undefined ? undefined : shownOperands(written)
  return {
    ...rest,
    ...(detail !== undefined && { detail: words ?? detail }),
    ...(operands !== undefined && { operands }),
  }
}

function shownOperands(text: string): string | undefined {
  try {
    const operands: unknown = readOwnJson(text)
    if (!Array.isArray(operands)) return undefined
    const shown = operands.filter((one) => isObject(one) && OF_THE_CALL.has(String(one['kind'])))
    return shown.length === 0 ? undefined : toJsonText(shown)
  } catch {
    return undefined
  }
}

/** Returns the audit without the parts that a person may not read. A text search ignores those parts too. */
export function auditFor(person: Caller, audit: AuditReader & AuditExporter): AuditReader & AuditExporter {
  if (readsRules(person)) return audit
  return {
    query: async (query) => (await audit.query(query)).map((record) => recordFor(person, record)),
    async *exportRecords(query) {
      for await (const record of audit.exportRecords(query)) yield recordFor(person, record)
    },
  }
}
