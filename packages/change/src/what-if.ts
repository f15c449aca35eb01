import { type Caller, defineCaller } from '@toolgate/core'
import type { AuditRecord } from '@toolgate/core/audit'
import { checkShape, shapeOf } from '@toolgate/values'
import { changedLocks } from './changed-locks.ts'
import { type AccessDifference, type CallersOfName, compareAccess, comparePeople } from './access.ts'
import type { CapInput } from '@toolgate/core/call'
import { listPolicies } from '@toolgate/core/policy'
import { RecordedCaps } from './recorded-caps.ts'
import { Questions } from './questions.ts'
import { nameOfCaller, type RecordedCaller, RecordedCallers } from './recorded-callers.ts'
import { Replay } from './replay.ts'
import { isSame } from './same-rules.ts'
import type { HashOf } from './recorded-facts.ts'
import type { MissingBefore } from './read-records.ts'
import type { InputOf } from './sealed-calls.ts'
import { type Both, Side } from './side.ts'
import { AccessTally, type TallyState } from './tally.ts'
import type { StagedCatalog } from './stage.ts'
import { createTrial, type TrialClock, type TrialRules } from './trial.ts'

/** Rules with the catalog and callers that they apply to. */
export interface RulesOfChange extends TrialRules {
  /** A snapshot, or the tools, resources, templates and prompts of a gate. */
  readonly catalog: StagedCatalog
  /** The known callers, with their roles, scopes and attributes. */
  readonly callers?: readonly Caller[] | undefined
  /** How many calls may run at once. */
  readonly concurrency?: CapInput | undefined
}

export interface WhatIfOptions {
  /** The rules in force. */
  readonly before: RulesOfChange
  /** The new rules. */
  readonly after: RulesOfChange
  /** Records of the audit, oldest first. Records before `since` only show the history of runs. */
  readonly records: AsyncIterable<AuditRecord> | Iterable<AuditRecord>
  /** Wall-clock milliseconds: only calls from then on are judged. Default: all. */
  readonly since?: number | undefined
  /** Only calls of callers who are known to have this role are judged. */
  readonly role?: string | undefined
  /** The people who were seen, with the rights of their latest token. */
  readonly people?: readonly Caller[] | undefined
  /** The state of an earlier what-if over the same rules. Records up to its `lastSeq` are not judged again. */
  readonly resumed?: WhatIfState | undefined
  /** Called every 250 records. A returned promise is awaited. */
  readonly onProgress?: ((state: WhatIfProgress) => Promise<void> | undefined) | undefined
  /**
   * Returns the keyed hash of a text, as the audit stores it for texts that rules compare. Use {@link hashOfText} with the
   * audit's key.
   */
  readonly hashOf?: HashOf | undefined
  /** Returns the whole input of a call that the audit sealed, from {@link withInputs}. */
  readonly inputOf?: InputOf | undefined
  /** Returns how many records are missing before one, from {@link readRecords}. The history of runs before a gap is unknown. */
  readonly missing?: MissingBefore | undefined
  readonly signal?: AbortSignal | undefined
}

const OPTIONS = shapeOf<WhatIfOptions>({
  before: true,
  after: true,
  records: true,
  since: true,
  role: true,
  people: true,
  resumed: true,
  onProgress: true,
  hashOf: true,
  inputOf: true,
  missing: true,
  signal: true,
})

/** The progress of a what-if. */
export interface WhatIfProgress {
  readonly records: number
  readonly lastSeq: number
  /** The time of the latest record, RFC 3339; empty if there is none. */
  readonly ts: string
  /** Returns the state, from which a later what-if can continue. */
  state(): WhatIfState
}

/** The state of a what-if. Plain JSON. */
export interface WhatIfState extends TallyState {
  /** The recorded callers that are not configured. */
  readonly seen: readonly Caller[]
  /** Whether continuing needs the records before `lastSeq` again, for the history of runs and the counts of new limits. */
  readonly readsPast: boolean
}

/** The effect of other rules on callers and recorded calls. */
export interface WhatIf extends TallyState {
  /** The tools that each caller gains and loses, for configured and recorded callers. */
  readonly access: readonly AccessDifference[]
  /** The number of people who may gain or lose more, because there are too many to compare. */
  readonly notCompared?: number
}

/**
 * Returns the effect of other rules: which tools callers gain and lose, and which recorded calls would have ended
 * differently.
 *
 * Each call is judged by the gate's own decision, after the events that really preceded it. Calls that depend on unrecorded
 * facts count as unknown, by rule. A call that ended for another reason, such as a hook or a server that was down, counts
 * as unchanged.
 *
 * @throws {ConfigError} for invalid rules, before any record is read
 */
export async function whatIf(options: WhatIfOptions): Promise<WhatIf> {
  checkShape('whatIf', options, OPTIONS)
  const {
    before,
    after,
    records,
    since,
    role,
    people = [],
    resumed,
    onProgress,
    hashOf,
    inputOf,
    missing,
    signal,
  } = options
  const clock: TrialClock = { nowMs: 0 }
  const sides = { before: openSide(before, clock), after: openSide(after, clock) }
  const known = { before: knownCallers(before, sides.before, people), after: knownCallers(after, sides.after, people) }
  const questions = new Questions({
    ...sides,
    callers: known,
    hashOf,
    inputOf,
    sameApps: isSame(before.apps, after.apps),
    sameRuns: (['labels', 'groups', 'aliases', 'history'] as const).every((name) => isSame(before[name], after[name])),
  })
  const tally = new AccessTally(resumed)
  const replay = new Replay({
    questions,
    sides,
    clock,
    tally,
    sinceMs: since,
    role,
    sameLabels: (['labels', 'groups', 'aliases'] as const).every((name) => isSame(before[name], after[name])),
    caps: new RecordedCaps(before, after),
    changedLocks: changedLocks(before, after),
    asksApprovers: asksApprovers(after),
    keepMs: { before: keepMsOf(before), after: keepMsOf(after) },
  })
  const seen = new SeenCallers(resumed?.seen)
  const doneTo = resumed?.lastSeq ?? 0
  let ts = ''
  const state = (): WhatIfState => ({
    ...tally.state(),
    seen: seen.list(),
    readsPast: replay.readsPast || resumed?.readsPast === true,
  })
  for await (const record of records) {
    signal?.throwIfAborted()
    const isDone = record.seq <= doneTo
    const gap = missing?.(record) ?? 0
    if (gap > 0) replay.startAgain(record)
    const asked = replay.read(record, isDone)
    if (asked) await asked
    ;({ ts } = record)
    if (isDone) continue
    seen.note(record)
    tally.records++
    tally.missing += gap
    tally.lastSeq = record.seq
    if (onProgress && tally.records % PROGRESS_EVERY === 0)
      await onProgress({ records: tally.records, lastSeq: record.seq, ts, state })
  }
  tally.missing += missing?.() ?? 0
  const rest = () => {
    signal?.throwIfAborted()
    return onProgress?.({ records: tally.records, lastSeq: tally.lastSeq, ts, state })
  }
  const callers = namedCallers({ before: before.callers, after: after.callers }, seen.list(), known)
  const gates = { before: sides.before.gate, after: sides.after.gate }
  const access = await compareAccess(gates, callers, rest)
  const ofPeople = await comparePeople(gates, peopleOf(people, seen.list(), known), rest)
  await Promise.all([sides.before.gate.close(), sides.after.gate.close()])
  const { notCompared } = ofPeople
  return { ...tally.state(), access: [...access, ...ofPeople.access], ...(notCompared > 0 && { notCompared }) }
}

const PROGRESS_EVERY = 250

function openSide({ catalog, callers: _, concurrency: __, ...rules }: RulesOfChange, clock: TrialClock): Side {
  return new Side(createTrial(catalog, rules, clock))
}

const DAY_MS = 86_400_000

/** Returns how long a history lasts after its last use. */
function keepMsOf({ history: { keepMs = DAY_MS, labelMs = DAY_MS, calledMs = 0 } = {} }: RulesOfChange): number {
  return Math.max(keepMs, labelMs, calledMs)
}

/** Returns whether a rule has demands on the approver. */
function asksApprovers({ policy }: RulesOfChange): boolean {
  return listPolicies(policy).some(
    (one) =>
      'ask' in one &&
      one.ask?.some((clause) => typeof clause !== 'string' && (clause.by ?? clause.login) !== undefined),
  )
}

function knownCallers(
  { callers = [] }: RulesOfChange,
  { gate: { catalog } }: Side,
  people: readonly Caller[],
): RecordedCallers {
  const items = [...catalog.snapshot(), ...catalog.items()]
  const scopes = [...new Set(items.flatMap((tool) => tool.requiredScopes))]
  return new RecordedCallers(callers.map(defineCaller), scopes, people)
}

const MAX_SEEN = 10_000

/** The callers of records, without their sessions and chats, each once. */
class SeenCallers {
  readonly #byKey = new Map<string, Caller>()

  constructor(callers: readonly Caller[] = []) {
    for (const caller of callers) this.#byKey.set(keyOf(caller), caller)
  }

  note(record: AuditRecord): void {
    if (record.tool_call_id === undefined || this.#byKey.size >= MAX_SEEN) return
    const { user_id: user, tenant, agent, client, actor } = record
    const key = keyOf({ user, tenant, agent, client, actor })
    if (this.#byKey.has(key)) return
    const fields = Object.entries({ user, tenant, agent, client, actor }).filter(([, value]) => value !== undefined)
    this.#byKey.set(key, Object.fromEntries(fields))
  }

  list(): readonly Caller[] {
    return [...this.#byKey.values()]
  }
}

function keyOf({ user, tenant, agent, client, actor }: Caller): string {
  return JSON.stringify([user, tenant, agent, client, actor])
}

/** Returns the people, each with the clients that they were recorded with. */
function peopleOf(
  people: readonly Caller[],
  seen: readonly Caller[],
  { before: known }: Both<RecordedCallers>,
): readonly Caller[] {
  const recorded = seen.flatMap((caller) => (known.has(caller) ? [] : (known.personOf(caller) ?? [])))
  const names = new Set(recorded.map(nameOfCaller))
  return [...recorded, ...people.filter((one) => !names.has(nameOfCaller(one)))]
}

/** Returns the callers that both rules configure, and unconfigured callers of the records, by name. */
function namedCallers(
  { before = [], after = [] }: Both<readonly Caller[] | undefined>,
  seen: readonly Caller[],
  known: Both<RecordedCallers>,
): ReadonlyMap<string, CallersOfName> {
  const named = new Map<string, { readonly before: RecordedCaller[]; readonly after: RecordedCaller[] }>()
  const at = (name: string) => {
    let callers = named.get(name)
    if (!callers) named.set(name, (callers = { before: [], after: [] }))
    return callers
  }
  for (const [side, callers] of [['before', before] as const, ['after', after] as const])
    for (const caller of callers.map(defineCaller)) {
      const name = nameOfCaller(caller)
      at(name)[side].push({ strict: caller, lax: caller, name })
    }
  for (const caller of seen) {
    if (known.before.has(caller) || known.after.has(caller) || known.before.personOf(caller)) continue
    const callers = at(nameOfCaller(caller))
    callers.before.push(known.before.ofCaller(caller))
    callers.after.push(known.after.ofCaller(caller))
  }
  return named
}
