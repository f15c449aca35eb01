import { type AuditRecord, outcomeOfRecord } from '@toolgate/core/audit'
import { parseLabels, UNTRUSTED } from '@toolgate/core/decide'
import type { Caller, Clause, Policy } from '@toolgate/core'
import { parseAliases, toGroupMap } from '@toolgate/core/policy'
import { parseGroups } from '@toolgate/core/groups'
import { checkShape, shapeOf } from '@toolgate/values'
import { LearnedFields } from './learned-fields.ts'
import { createStage } from './stage.ts'
import { TaintedRuns } from './tainted-runs.ts'
import { RecordedCallers } from './recorded-callers.ts'
import type { MissingBefore } from './read-records.ts'
import type { InputOf } from './sealed-calls.ts'
import type { RulesOfChange } from './what-if.ts'

export interface SuggestOptions {
  /** The rules in force, with the catalog, the trusted tools and the callers with their roles. */
  readonly rules: RulesOfChange
  /** Records of the audit, oldest first. Records before `since` only show what runs had read. */
  readonly records: AsyncIterable<AuditRecord> | Iterable<AuditRecord>
  /** Wall-clock milliseconds: only calls from then on are learned. Default: all. */
  readonly since?: number | undefined
  /** Learns only from callers with this role. */
  readonly role?: string | undefined
  /** The people who were seen, with the rights of their latest token. */
  readonly people?: readonly Caller[] | undefined
  /** Returns the whole input of a call that the audit sealed, from {@link withInputs}. */
  readonly inputOf?: InputOf | undefined
  /**
   * Returns how many records are missing before a record, from {@link readRecords}. What runs had read before a gap is
   * unknown.
   */
  readonly missing?: MissingBefore | undefined
  readonly signal?: AbortSignal | undefined
}

const OPTIONS = shapeOf<SuggestOptions>({
  rules: true,
  records: true,
  since: true,
  role: true,
  people: true,
  inputOf: true,
  missing: true,
  signal: true,
})

/** Why a call was not learned, in the order of the report. */
export const LEFT_OUT = {
  untrusted: 'the run had read something untrusted',
  unknown_run: 'what the run had read before is not in the audit',
  unknown_caller: 'the roles of the caller are not known',
  unknown_tool: 'the tool is not in the catalog',
  failed: 'the call failed',
  refused: 'the call was refused',
  limited: 'the call was over a limit',
  waiting: 'nobody has approved the call',
  not_done: 'the call has not ended',
  other: 'it was no call of a tool: a completion, a subscription or a further round',
} as const
export type LeftOut = keyof typeof LEFT_OUT

/** A tool that callers with some roles need. */
export interface SuggestedTool {
  readonly tool: string
  readonly calls: number
  /** A person approved some of them by hand, so the suggestion asks. */
  readonly ask: boolean
  /** What all inputs had in common, as a condition. */
  readonly input: string | undefined
  /** Calls whose input was not kept, or only in part: the condition may refuse them. */
  readonly unknownInputs: number
}

export interface SuggestedRole {
  /** The roles of the callers, sorted. Callers have all of them. */
  readonly roles: readonly string[]
  /** The callers, if they have no role. */
  readonly user?: string
  /** The tenant of the callers. */
  readonly tenant?: string
  readonly calls: number
  readonly tools: readonly SuggestedTool[]
}

export interface Suggestion {
  /** The suggested policy. It allows nothing else. */
  readonly policy: Policy
  readonly roles: readonly SuggestedRole[]
  readonly learned: number
  /** Records that are missing or cannot be read: nothing was learned from them. */
  readonly missing: number
  readonly leftOut: readonly { readonly why: LeftOut; readonly calls: number }[]
}

/**
 * Suggests the narrowest policy that allows the recorded calls, for a person to review: for each role, tools by their exact
 * ids, exact hosts, and the folder that all paths share. Calls of one tenant are allowed to that tenant only.
 *
 * It learns from calls that succeeded in runs that had read nothing untrusted, so that an attack does not become a rule.
 * Calls that a person approved become `ask`.
 *
 * @throws {ConfigError} for invalid rules
 */
export async function suggestPolicy(options: SuggestOptions): Promise<Suggestion> {
  checkShape('suggestPolicy', options, OPTIONS)
  const { records, missing, signal } = options
  const learner = new Learner(options)
  for await (const record of records) {
    signal?.throwIfAborted()
    learner.read(record, missing?.(record))
  }
  return learner.finish(missing?.())
}

interface UnendedCall {
  readonly record: AuditRecord
  readonly why: LeftOut | undefined
  readonly isCounted: boolean
  /** Opened when the call began, because its box may be removed later. */
  readonly input: ReturnType<InputOf>
}

interface LearnedTool {
  calls: number
  ask: boolean
  readonly fields: LearnedFields
}

const MAX_OPEN = 100_000

class Learner {
  readonly #options: SuggestOptions
  readonly #callers: RecordedCallers
  readonly #tools: ReadonlySet<string>
  readonly #runs: TaintedRuns
  readonly #open = new Map<string, UnendedCall>()
  readonly #learned = new Map<string, { readonly caller: Caller; readonly tools: Map<string, LearnedTool> }>()
  readonly #leftOut = new Map<LeftOut, number>()
  readonly #hasTenants: boolean
  #missing = 0

  constructor(options: SuggestOptions) {
    const { catalog, callers = [], labels, groups = {}, aliases } = options.rules
    const { items } = createStage(catalog)
    const { of } = parseLabels(labels, parseGroups(toGroupMap(groups), parseAliases(aliases)).selectors)
    const raising = new Set(items.filter((tool) => of(tool).raises.includes(UNTRUSTED)).map(({ id }) => id))
    this.#options = options
    this.#tools = new Set(items.map(({ id }) => id))
    // A tool that no longer exists may have read anything.
    this.#runs = new TaintedRuns((tool) => raising.has(tool) || !this.#tools.has(tool), options.rules.history?.labelMs)
    this.#callers = new RecordedCallers(callers, [], options.people)
    this.#hasTenants = [...callers, ...(options.people ?? [])].some(({ tenant }) => tenant !== undefined)
  }

  read(record: AuditRecord, missing = 0): void {
    const { tool, tool_call_id: id } = record
    this.#missing += missing
    if (missing > 0) this.#runs.startAgain(record)
    else this.#runs.start(record)
    if (tool === undefined || id === undefined) return
    const { since } = this.#options
    const isCounted = since === undefined || Date.parse(record.ts) >= since
    const key = JSON.stringify([record.run_id, record.session_id, record.user_id, record.tenant, id])
    if (record.event === 'tool_call') {
      const state = this.#runs.begin(record, tool)
      const why = this.#whyNot(record, tool, state)
      const input = why === undefined && isCounted ? this.#options.inputOf?.(record) : undefined
      if (this.#open.size < MAX_OPEN) this.#open.set(key, { record, why, isCounted, input })
      return
    }
    const ended = outcomeOfRecord(record)
    if (ended === undefined) return
    this.#runs.end(record)
    const call = this.#open.get(key)
    this.#open.delete(key)
    if (!(call?.isCounted ?? isCounted) || !this.#isAsked(record)) return
    if (record.purpose !== undefined || record.continues !== undefined || ended === 'input_required')
      return this.#leave('other')
    if (ended !== 'done') return this.#leave(ENDS.get(ended) ?? 'not_done')
    // The call began before the first record.
    if (!call) return this.#leave('unknown_run')
    if (call.why) return this.#leave(call.why)
    this.#learn(call, tool)
  }

  #whyNot(record: AuditRecord, tool: string, state: 'tainted' | 'unknown' | undefined): LeftOut | undefined {
    if (state === 'tainted') return 'untrusted'
    if (state === 'unknown') return 'unknown_run'
    if (!this.#tools.has(tool)) return 'unknown_tool'
    return this.#callerOf(record) ? undefined : 'unknown_caller'
  }

  /** Returns the caller of a record, if they are fully known. */
  #callerOf(record: AuditRecord): Caller | undefined {
    // Roles do not depend on the chat.
    const { chat_id: _chat, session_id: _session, ...who } = record
    const { strict, lax } = this.#callers.of(who)
    return strict === lax ? strict : undefined
  }

  #isAsked(record: AuditRecord): boolean {
    const { role } = this.#options
    return role === undefined || (this.#callerOf(record)?.roles?.includes(role) ?? false)
  }

  #learn({ record, input }: UnendedCall, tool: string): void {
    const caller = this.#callerOf(record) as Caller
    const { roles = [], user, tenant } = caller
    const key = JSON.stringify([tenant, roles.length > 0 ? roles : [[user]]])
    let group = this.#learned.get(key)
    if (!group) this.#learned.set(key, (group = { caller, tools: new Map() }))
    let learned = group.tools.get(tool)
    if (!learned) group.tools.set(tool, (learned = { calls: 0, ask: false, fields: new LearnedFields() }))
    learned.calls++
    if (record.approval_id !== undefined) learned.ask = true
    learned.fields.note(record, input?.value)
  }

  #leave(why: LeftOut): void {
    this.#leftOut.set(why, (this.#leftOut.get(why) ?? 0) + 1)
  }

  finish(missingAfter = 0): Suggestion {
    for (const { isCounted, record } of this.#open.values())
      if (isCounted && this.#isAsked(record)) this.#leave('not_done')
    const roles = [...this.#learned.values()].map(toRole).toSorted((a, b) => (sortKeyOf(a) < sortKeyOf(b) ? -1 : 1))
    const reasons = Object.keys(LEFT_OUT) as readonly LeftOut[]
    return {
      policy: toPolicy(roles, this.#hasTenants),
      roles,
      learned: roles.reduce((sum, { calls }) => sum + calls, 0),
      missing: this.#missing + missingAfter,
      leftOut: reasons.flatMap((why) => (this.#leftOut.has(why) ? [{ why, calls: this.#leftOut.get(why) ?? 0 }] : [])),
    }
  }
}

const ENDS: ReadonlyMap<string, LeftOut> = new Map([
  ['failed', 'failed'],
  ['refused', 'refused'],
  ['limited', 'limited'],
  ['waiting', 'waiting'],
])

function toRole({
  caller,
  tools,
}: {
  readonly caller: Caller
  readonly tools: ReadonlyMap<string, LearnedTool>
}): SuggestedRole {
  const { roles = [], user, tenant } = caller
  const suggested = [...tools]
    .toSorted(([one], [other]) => (one < other ? -1 : 1))
    .map(([tool, { calls, ask, fields }]) => ({
      tool,
      calls,
      ask,
      input: fields.condition(),
      unknownInputs: fields.unknown(),
    }))
  return {
    roles,
    ...(roles.length === 0 && user !== undefined && { user }),
    ...(tenant !== undefined && { tenant }),
    calls: suggested.reduce((sum, { calls }) => sum + calls, 0),
    tools: suggested,
  }
}

/** Sorts roles before callers without a role. */
function sortKeyOf({ roles, user = '', tenant = '' }: SuggestedRole): string {
  return `${roles.length > 0 ? `1 ${roles.join(' ')}` : `2 ${user}`} ${tenant}`
}

function toPolicy(roles: readonly SuggestedRole[], hasTenants: boolean): Policy {
  const clausesOf = (
    isWanted: (tool: SuggestedTool) => boolean,
    conditionOf: (tool: SuggestedTool) => string | undefined,
  ) => roles.flatMap((role) => toClauses(role.tools.filter(isWanted), whenOf(role, hasTenants), conditionOf))
  const ask = clausesOf(
    ({ ask: asks }) => asks,
    () => undefined,
  )
  const allow = clausesOf(
    () => true,
    ({ input }) => input,
  )
  return { name: 'suggested', allow, ...(ask.length > 0 && { ask }) }
}

/** Returns one clause for all tools of a role with the same condition. */
function toClauses(
  tools: readonly SuggestedTool[],
  when: string,
  conditionOf: (tool: SuggestedTool) => string | undefined,
): readonly Clause[] {
  return [...Map.groupBy(tools, conditionOf)].map(([input, same]) => {
    const [first, ...more] = same.map(({ tool }) => tool)
    return {
      match: more.length === 0 ? (first as string) : [first as string, ...more],
      when,
      ...(input !== undefined && { input }),
    }
  })
}

/** Names a caller without roles. `hasTenants`: if there are tenants, a caller without one belongs to none of them. */
function whenOf({ roles, user, tenant }: SuggestedRole, hasTenants: boolean): string {
  const who =
    roles.length > 0 ? roles.map((role) => `${JSON.stringify(role)} in caller.roles`) : [isField('user', user)]
  return [...who, ...(hasTenants ? [isField('tenant', tenant)] : [])].join(' && ')
}

function isField(field: 'user' | 'tenant', value: string | undefined): string {
  const path = `caller.${field}`
  return value === undefined ? `!has(${path})` : `has(${path}) && ${path} == ${JSON.stringify(value)}`
}
