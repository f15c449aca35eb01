import type { Caller } from './caller.ts'
import type { EarlierCall, FactRead, Origin } from './fact-read.ts'
import type { Cancelling } from '@toolgate/values'
import type { InputProblem } from '@toolgate/values/json'

export type MaybePromise<T> = T | Promise<T>

/** The two clocks of the host. Core reads no other clock. */
export interface Clock {
  /** Milliseconds that never go back, from any origin. Limits, deadlines and durations use it. */
  monotonicMs(): number
  /** Milliseconds since 1970-01-01T00:00Z. Records and expiries that people read use it. */
  wallMs(): number
}

/** One requested use: at most `max` in any window of `windowMs`. */
export interface LimitUse {
  readonly key: string
  readonly max: number
  readonly windowMs: number
  /**
   * How much of the limit the use takes: a whole number from 0 to 2^53 - 1. Default 1. Either all uses of a key have a
   * cost, or none has.
   */
  readonly cost?: number | undefined
}

export interface LimitAnswer {
  readonly allowed: boolean
  /** Index of the first use that was refused; -1 when all were allowed. */
  readonly refused: number
  /**
   * What is left after this use: the smallest over all requested uses. After a refusal, what is left of the limit that
   * refused.
   */
  readonly remaining: number
  /** Milliseconds until the refused use could succeed; 0 when allowed. */
  readonly resetMs: number
  /** The store's time of the answer. `giveBack` finds the take by it. */
  readonly atMs?: number
  /** The store's id of the take, if it has one. With it, a repeated `giveBack` returns the take only once. */
  readonly take?: string
}

/** Counts uses in exact sliding windows. Takes all requested uses together, or none of them. */
export interface CounterStore {
  peek(uses: readonly LimitUse[]): MaybePromise<LimitAnswer>
  take(uses: readonly LimitUse[]): MaybePromise<LimitAnswer>
  /**
   * Returns the uses of a `take`, because the call did not run. `taken` is the answer of that take. Without `taken`, the
   * latest take is returned, which may belong to another call when calls overlap.
   */
  giveBack(uses: readonly LimitUse[], taken?: LimitAnswer): MaybePromise<void>
  /**
   * Replaces the costs of a take by the real `costs` of its uses, in the same order. A lower cost frees the difference now.
   * A higher cost counts too, even beyond `max`. Only the first settlement of a take counts.
   */
  settle(uses: readonly LimitUse[], taken: LimitAnswer, costs: readonly number[]): MaybePromise<void>
}

export const APPROVAL_STATUSES = ['pending', 'approved', 'rejected', 'revoked', 'expired', 'consumed'] as const
export type ApprovalStatus = (typeof APPROVAL_STATUSES)[number]

/** The fields that an approval is bound to. A request that differs in any field needs another approval. */
export interface ApprovalBinding {
  readonly tenant: string | undefined
  readonly user: string | undefined
  readonly tool: string
  readonly definitionHash: string
  readonly inputHash: string
  readonly run: string | undefined
  /** Who made the key that asked, if another person than its user did. */
  readonly keyMadeBy?: string | undefined
  /** Others behind the call: the makers of the credentials behind that key, the host of its run, its actor. Sorted. */
  readonly behind?: readonly string[] | undefined
  /** Other names of the user, such as of another login of the same person. Sorted. */
  readonly aliases?: readonly string[] | undefined
  /** What the policy demands of the approver. A stricter demand needs another approval. */
  readonly approver?: ApproverRule | undefined
  /**
   * The clauses that ask, and what they read of the run. Present if one of them reads it. If this changes, the call
   * needs another approval.
   */
  readonly asked?: readonly string[] | undefined
}

/** What an approval demands of the person who approves, besides that they may. */
export interface ApproverRule {
  /** `other`: excludes the person who asked, and the makers of their key and of the credentials behind it. */
  readonly by?: 'other'
  /** The longest time since the person's login, in milliseconds. */
  readonly loginMs?: number
  /** How many different people must approve, of those whom `mayApprove` allows. Default: 1, or 0 beside `roles`. */
  readonly count?: number
  /** How many people must approve with each role. One person counts for one of the roles. */
  readonly roles?: Readonly<Record<string, number>>
  /** Whether an approver may change the input. */
  readonly edit?: true
}

/** One person's yes to an approval that needs several. */
export interface ApprovalVote {
  readonly by: string
  readonly atMs: number
  readonly reason?: string
  /** Everyone behind the person's credential, and other names of the person. */
  readonly behind?: readonly string[]
  readonly fills?: ApproverPlaces
}

/** What one approver counts for. Absent: for `count`, and for no role. */
export interface ApproverPlaces {
  /** The demanded roles that the person has. */
  readonly roles: readonly string[]
  /** Whether `mayApprove` allows the person without regard to `roles`. */
  readonly isPlain: boolean
}

/** The input that an approver changed before the call runs. */
export interface ApprovalEdit {
  readonly by: string
  readonly atMs: number
  /** A JSON merge patch (RFC 7396) of the input. It has only the changed fields. */
  readonly input: Readonly<Record<string, unknown>>
}

/** Searchable fields of an approval, besides the binding. */
export interface ApprovalAbout {
  readonly chat?: string | undefined
  /** Why the approval is asked for: the clauses that ask, in words. Shown to people. */
  readonly why?: string | undefined
  /** The same for people who may not read the text of rules. */
  readonly told?: string | undefined
  readonly trail?: ApprovalTrail | undefined
  readonly asker?: ApprovalAsker | undefined
  /** The hashes of the reasons that ask, for a grant. */
  readonly clauses?: readonly string[] | undefined
}

/**
 * The first requester, as the host names them, with app and session. It is only for the host: no approver sees it, and
 * the approval is not bound to it.
 */
interface ApprovalAsker {
  readonly id: string
  readonly app?: string
  readonly session?: string
}

/**
 * Shows the approver what the run has read and where the call sends data, as known when the approval was requested.
 */
export interface ApprovalTrail {
  /** The labels of the run, and calls that raised them. */
  readonly read: readonly { readonly label: string; readonly calls: readonly EarlierCall[] }[]
  /** At most 32 addressees of the call, redacted. They have an `origin` only if a rule reads it. */
  readonly sends: readonly { readonly field: string; readonly value: string; readonly origin?: Origin }[]
  /** Whether the history of the run is unknown. */
  readonly isUnknown?: boolean
}

export interface Approval extends ApprovalBinding {
  readonly id: string
  /** The chat of the first request. The approval is not bound to it. */
  readonly chat?: string
  readonly why?: string
  readonly told?: string
  /** Absent if no rule reads runs. */
  readonly trail?: ApprovalTrail
  readonly asker?: ApprovalAsker
  /** Absent for an approval that an earlier version asked for. */
  readonly clauses?: readonly string[]
  readonly status: ApprovalStatus
  /** The input as a person must see it. */
  readonly input: unknown
  readonly requestedAt: number
  /** Wall-clock milliseconds. */
  readonly expiresAt: number
  readonly decidedAt?: number
  readonly decidedBy?: string
  readonly reason?: string
  /** Who has approved so far, oldest first. Only for an approval that needs several people. */
  readonly approvedBy?: readonly ApprovalVote[]
  /** What the approvers changed. */
  readonly edit?: ApprovalEdit
}

/**
 * What a person can decide: `approve` or `reject` a pending approval, `revoke` an approved one that is unused, or their own
 * yes to one that waits for others.
 */
export const APPROVAL_DECISIONS = ['approve', 'reject', 'revoke'] as const
export type ApprovalDecision = (typeof APPROVAL_DECISIONS)[number]

export interface ApprovalVerdict {
  readonly decision: ApprovalDecision
  readonly by: string
  readonly reason?: string | undefined
  readonly atMs: number
  /** When the person logged in, in wall-clock milliseconds. Absent if that is not known. */
  readonly loginAt?: number | undefined
  /** Everyone behind the person's credential, and other names of the person. None of them may be behind the call. */
  readonly behind?: readonly string[] | undefined
  readonly fills?: ApproverPlaces | undefined
  /** To approve a changed input: a JSON merge patch (RFC 7396) with the changed fields. */
  readonly input?: Readonly<Record<string, unknown>> | undefined
}

/** A decision as its person made it, for the record. */
export interface DecisionMade {
  readonly decision: ApprovalDecision
  readonly by: string
  readonly reason?: string | undefined
}

/** Selects the approvals that match every given field. */
export interface ApprovalFilter {
  readonly status?: ApprovalStatus
  readonly tenant?: string
  readonly user?: string
  readonly tool?: string
  readonly chat?: string
  /** Only approvals older than the one with this id: the next page. Empty for an unknown id. */
  readonly before?: string
  /** Default 100. */
  readonly limit?: number
}

/** Keeps approvals: single use, expiring. Times are wall-clock milliseconds. */
export interface ApprovalStore {
  /**
   * Returns the live approval (pending, approved, rejected or revoked) of this binding, or makes a pending one.
   *
   * @throws {ToolgateError} `approval_too_many` when too many of this user, or of all users, wait for a person
   */
  request(binding: ApprovalBinding, input: unknown, nowMs: number, about?: ApprovalAbout): MaybePromise<Approval>
  get(id: string, nowMs: number): MaybePromise<Approval | undefined>
  /** Returns approvals, newest first. Includes finished ones for as long as the store keeps them. */
  list(filter: ApprovalFilter, nowMs: number): MaybePromise<readonly Approval[]>
  /**
   * Approves or rejects a pending approval, or revokes an approved one. If a `revoke` and a `consume` race, exactly one
   * succeeds.
   *
   * An approval that needs several people stays pending until the last of them approves.
   *
   * @throws {ToolgateError} `approval_unknown`, `approval_decided`, `approval_not_revocable`, `approval_edit_refused`
   */
  decide(id: string, verdict: ApprovalVerdict): MaybePromise<Approval>
  /**
   * Consumes an approved approval, exactly once. Returns `false` if it was already consumed or has expired. `spend` names
   * this use: a repeated call with the same name returns the same answer.
   */
  consume(id: string, nowMs: number, spend?: string): MaybePromise<boolean>
  /** Sets a consumed approval back to approved, because the call did not run. With `spend`, only if that use consumed it. */
  giveBack(id: string, spend?: string): MaybePromise<void>
}

/** The events of an attempt: `tool_call` when the tool is about to run, and one of the others when the attempt ends. */
const ATTEMPT_EVENTS = [
  'tool_call',
  'tool_result',
  'tool_blocked',
  'tool_rate_limited',
  'tool_approval_required',
  'tool_input_required',
  'tool_abandoned',
] as const
/** Events of the gate and of the audit itself, outside attempts. */
const GATE_EVENTS = [
  'policy_changed',
  'policy_recorded',
  'config_changed',
  'approval_decided',
  'grant_made',
  'grant_revoked',
  'approval_refused',
  'notification_sent',
  'notification_failed',
  'tool_changed',
  'tool_flagged',
  'tool_accepted',
  'halt_set',
  'halt_released',
  'group_changed',
  'server_changed',
  'server_asked',
  'connection_made',
  'connection_ended',
  'run_started',
  'run_ended',
  'login_failed',
  'login_ended',
  'audit_opened',
  'audit_closed',
  'audit_dropped',
  'audit_pruned',
  'audit_restored',
  'inputs_pruned',
  'input_opened',
] as const
export const AUDIT_EVENTS = [...ATTEMPT_EVENTS, ...GATE_EVENTS] as const
export type AttemptEvent = (typeof ATTEMPT_EVENTS)[number]
export type GateEvent = (typeof GATE_EVENTS)[number]
export type AuditEvent = AttemptEvent | GateEvent
/** The events that end an attempt. Each attempt has exactly one. */
export const TERMINAL_EVENTS: ReadonlySet<AuditEvent> = new Set(ATTEMPT_EVENTS.filter((event) => event !== 'tool_call'))

/** One line of the audit, as it is stored and shown. Absent means unknown or not applicable. */
export interface AuditRecord {
  /** The sink numbers records 1, 2, 3 … as it writes them, without gaps. Replicas share one numbering. */
  readonly seq: number
  /** The replica that wrote the record. `incarnation` is one of its starts. Each start has its own chain. */
  readonly replica?: string
  readonly incarnation?: string
  readonly chain_seq?: number
  readonly event: AuditEvent
  /** RFC 3339, UTC, milliseconds. */
  readonly ts: string
  /**
   * The requested id: at most 256 characters for a tool, and 2,400 for other kinds. Absent from events of the gate that
   * are not about a tool.
   */
  readonly tool?: string
  /** Absent for tools. */
  readonly kind?: 'resource' | 'template' | 'prompt'
  /** The purpose of the call, if it was not to run the item. */
  readonly purpose?: 'complete' | 'subscribe' | 'compare'
  /** Absent only on events of the gate. */
  readonly tool_call_id?: string
  readonly chat_id?: string
  readonly user_id?: string
  readonly session_id?: string
  readonly tenant?: string
  readonly agent?: string
  /** The OAuth client. */
  readonly client?: string
  /** Who acted for the user. */
  readonly actor?: string
  /** All who acted for the user, the current actor first, as a JSON list. */
  readonly act_chain?: string
  /** The person who made the key of the call, unless its user made it. */
  readonly key_made_by?: string
  readonly app?: string
  readonly run_id?: string
  /**
   * The history that the call used, if it was not that of its own run. As JSON: `["run", id]`, or
   * `["caller", user, client]` for a run that began in a call without a run.
   */
  readonly run_history?: string
  /** The step of the run, counted from 0. */
  readonly step?: number
  /** The model that made the call, as the host names it. */
  readonly model?: string
  /** W3C trace id, 32 hex digits. */
  readonly trace_id?: string
  /** Code of the deciding reason, such as `policy_denied`. */
  readonly reason?: string
  /** The deciding rule, for people: the policy, clause, group or rule. Never shown to the model. */
  readonly detail?: string
  /** The deciding clause, such as `baseline#deny[2]`, or only the policy if it decided as a whole. */
  readonly clause?: string
  /**
   * The decision of the shadows of policies, if it is stricter than the real one; `would_clause` is its clause.
   * `unknown`: their decision depends on the history of the run, which is not known.
   */
  readonly would_outcome?: 'ask' | 'deny' | 'unknown'
  readonly would_clause?: string
  readonly limit?: string
  readonly reset_ms?: number
  readonly duration_ms?: number
  readonly error?: string
  /** The tool answered with a result that reports a failure (MCP `isError`). `error` is its text. */
  readonly is_error?: true
  readonly approval_id?: string
  /** The grant that let the call through, or that was made or revoked. It has the id of the approval that made it. */
  readonly grant?: string
  /** The hash of the input as the caller sent it, if an approver changed it. `input_hash` is that of the changed input. */
  readonly asked_hash?: string
  /**
   * The fields that an approver changed, as a JSON list of `{ field, from, to }`. The values are redacted, and absent if
   * previews are switched off.
   */
  readonly edited?: string
  /** The labels of the output of a call that began, sorted and separated by spaces. Present if a rule reads runs. */
  readonly labels?: string
  /** The labels of the run when a rule that reads the run decided, in the same form as `labels`. */
  readonly run_labels?: string
  /**
   * The facts about the run that led to the decision, as a JSON list of at most 4,096 characters: labels, earlier
   * calls and origins of values. Values are redacted, and absent if previews are switched off.
   */
  readonly operands?: string
  /** The `tool_call_id` of the first round, if this is a later round of that call. */
  readonly continues?: string
  readonly policy_revision: number
  readonly catalog_revision: number
  /** SHA-256, hex, of the policies that decided, see {@link PolicyDocument}. */
  readonly policy_hash?: string
  /** Only in `policy_recorded`: the policies with that hash, as JSON in RFC 8785 form. */
  readonly policy?: string
  /**
   * `hmac-sha256:` and the HMAC, hex, of the input in RFC 8785 form. Its key is the audit's own, so a short input
   * cannot be guessed from the hash. Equal inputs in one audit have equal hashes. Records of earlier versions have a
   * plain SHA-256.
   */
  readonly input_hash?: string
  /** About the first 200 characters of the input in RFC 8785 form, redacted. Absent if previews are switched off. */
  readonly input_preview?: string
  /** The parts of the call that rules read, as JSON. Only with `inputs: facts` and sealed inputs. */
  readonly facts?: string
  /** SHA-256, hex, of the sealed input, which is stored beside the records; `too_large` if it was not stored. */
  readonly input_box?: string
  /** Only in `inputs_pruned`: the sealed inputs of records before this time were removed. RFC 3339, UTC. */
  readonly inputs_before?: string
  /** Only in `audit_opened` and `audit_closed`, with checkpoints: the last record that a checkpoint signed, or 0. */
  readonly signed_seq?: number
  /** Hash of the previous record, 64 hex digits. Absent in an audit that is not chained. */
  readonly prev?: string
  /** SHA-256, hex, of `prev` and of this record in RFC 8785 form without this field. */
  readonly hash?: string
}

/** A record before a sink writes it. It has no `seq` yet, and holds the input, which the sink hashes and does not store. */
export type AuditEntry = Pick<AuditRecord, AlwaysRecorded> & {
  readonly [Field in Exclude<keyof AuditRecord, AlwaysRecorded | GivenBySink>]?: AuditRecord[Field] | undefined
} & {
  readonly labels?: readonly string[] | undefined
  readonly run_labels?: readonly string[] | undefined
  /** The facts that counted against the call. The sink redacts them. */
  readonly read?: readonly FactRead[] | undefined
  readonly wallMs: number
  readonly input?: unknown
  /** The input before an approver changed it, and the changes, redacted. */
  readonly edited?:
    | {
        readonly original: unknown
        readonly changes: readonly { readonly field: string; readonly from: unknown; readonly to: unknown }[]
      }
    | undefined
  /** What rules read of the call. See the sink's `inputs` option. */
  readonly asked?: AskedCall | undefined
  /** The policies that decided. The sink records their hash with each entry, and their text once. */
  readonly in_force?: PolicyDocument | undefined
  /** Supplies `run_id`, `step` and `model` if they are absent. One field for data that most calls lack. */
  readonly run?: RunOfCall | undefined
}

/** What the loaded rules read of a call: input paths and caller attributes. */
export interface AskedCall {
  readonly caller: Caller
  /** Computed once for each tool. */
  operands(): {
    /** `equality`: conditions only compare the value with texts. */
    readonly input: ReadonlyMap<string, 'equality' | 'value'>
    readonly attributes: readonly string[]
  }
}

/** Policies and groups as data. Both are made when first read. */
export interface PolicyDocument {
  /** SHA-256, hex, of `text`. */
  readonly hash: string
  /** JSON in RFC 8785 form: `{ groups, policies }`, with `{ "$function": <name> }` in the place of a function. */
  readonly text: string
}

/** The run that a call belongs to. */
export interface RunOfCall {
  readonly id: string
  /** Counted from 0. */
  readonly step?: number | undefined
  /** The model that made the call, as the host names it. */
  readonly model?: string | undefined
  readonly app?: string | undefined
  /** `false` if approvals are not bound to the run and its id is only for the audit. Default `true`. */
  readonly bindsApprovals?: boolean | undefined
  /** The run whose history this run shares. A sub-agent shares the history of its root run. Default: its own `id`. */
  readonly history?: string | undefined
  /**
   * The user's own words, for `origin`. Ignored if the history belongs to another run, because a model wrote this run's
   * prompt.
   */
  readonly userWords?: string | readonly string[] | undefined
  /** Results in the conversation from before the run, which the gate has not seen. They count as untrusted. */
  readonly earlierResults?: readonly unknown[] | undefined
  /** The run continues after a pause, maybe in another process. If its history is missing, it counts as lost, not as empty. */
  readonly resumed?: boolean | undefined
}

type AlwaysRecorded = 'event' | 'policy_revision' | 'catalog_revision'
type GivenBySink =
  | 'seq'
  | 'replica'
  | 'incarnation'
  | 'chain_seq'
  | 'ts'
  | 'input_hash'
  | 'asked_hash'
  | 'edited'
  | 'input_preview'
  | 'facts'
  | 'labels'
  | 'run_labels'
  | 'operands'
  | 'prev'
  | 'hash'

/**
 * Writes audit entries.
 *
 * A batched sink returns from `write` at once. A sink that makes every record durable first returns a promise that resolves
 * once the record is durable. If `write` throws or rejects for the `tool_call` entry, the call is refused.
 */
export interface AuditSink {
  write(entry: AuditEntry): MaybePromise<void>
  /** Resolves when everything written before is durable. */
  flush(): Promise<void>
  close(): Promise<void>
}

/** How an attempt ended, taken from its terminal record. */
export const AUDIT_OUTCOMES = [
  'done',
  'failed',
  'refused',
  'limited',
  'waiting',
  'input_required',
  'abandoned',
] as const
export type AuditOutcome = (typeof AUDIT_OUTCOMES)[number]

/** Selects the records that match every given field. */
export interface AuditFilter {
  readonly tool?: string
  readonly user?: string
  readonly session?: string
  readonly tenant?: string
  readonly event?: AuditEvent
  readonly outcome?: AuditOutcome
  /** The `tool_call_id`. */
  readonly call?: string
  /** The `run_id`. */
  readonly run?: string
  /** Wall-clock milliseconds, inclusive. */
  readonly since?: number
  /** Wall-clock milliseconds, exclusive. */
  readonly until?: number
}

export interface AuditQuery extends AuditFilter {
  /** 1 to 1,000; default 100. */
  readonly limit?: number
  /** Only records with a smaller `seq`. Use it for the next page. */
  readonly beforeSeq?: number
  /** Only records with a greater `seq`. Use it for new records. */
  readonly afterSeq?: number
}

/** Reads the audit, newest first. Returns every record whose `flush` or `write` has resolved. */
export interface AuditReader {
  query(query: AuditQuery): MaybePromise<readonly AuditRecord[]>
}

/** Selects the records to export: all that match, without a limit. */
export type AuditExportQuery = Omit<AuditQuery, 'limit'>

/** Returns records oldest first, without holding all of them in memory. */
export interface AuditExporter {
  /** Calls `onUnreadable` with the number of unreadable records before the next record, or at the end. */
  exportRecords(query?: AuditExportQuery, onUnreadable?: (records: number) => void): AsyncIterable<AuditRecord>
}

/** Selects the records to count and the buckets, at most 500, from `since` on. All times are whole milliseconds. */
export interface AuditCountQuery extends AuditFilter {
  readonly since: number
  /** Greater than `since`. */
  readonly until: number
  readonly bucketMs: number
}

/** How many attempts ended in each way. */
type OutcomeCounts = Readonly<Record<AuditOutcome, number>>

export interface AuditCounts {
  /** Wall-clock milliseconds: the start of the first bucket. */
  readonly since: number
  readonly bucketMs: number
  /** Oldest first; the last one ends at `until` or later, and counts only what is before `until`. */
  readonly buckets: readonly OutcomeCounts[]
  /** The `seq` of the newest record of the audit when it was counted; 0 for none. A later record can be added on top. */
  readonly newestSeq: number
}

/** Counts the records that end an attempt, by outcome and time, without returning them. */
export interface AuditCounter {
  countOutcomes(query: AuditCountQuery): MaybePromise<AuditCounts>
}

/** Stores small values that outlive a process or reach every replica: halts, pins, pauses, preferences. Plain JSON. */
export interface StateStore {
  /** Returns the value of a key; `undefined` if it is absent or has expired. */
  get(key: string): MaybePromise<unknown>
  set(key: string, value: unknown, options?: StateOptions): MaybePromise<void>
  /** Sets the value of an absent key. Returns `false` if the key has a value. */
  add(key: string, value: unknown, options?: StateOptions): MaybePromise<boolean>
  /** Returns the value and removes the key. Of concurrent calls, exactly one gets the value. */
  take(key: string): MaybePromise<unknown>
  /** Returns the entries whose keys begin with the prefix, sorted bytewise by key. */
  list(prefix: string): MaybePromise<readonly StateEntry[]>
  /** Calls the listener within a second after a change by any process. Returns a function that unsubscribes. */
  subscribe(listener: (change?: StateChange) => void): () => void
}

/** A change in a state store. A store that must know when the change is in effect passes it to listeners. */
export interface StateChange {
  /** Takes a promise that resolves when the listener has applied the change, and rejects if the listener failed. */
  waitUntil(applied: Promise<void>): void
}

export interface StateOptions {
  /** Wall-clock milliseconds after which the entry no longer exists. Default: never. */
  readonly expiresAt?: number | undefined
  /**
   * Writes only while this lease is valid; otherwise throws `lock_lost`. Ignored if leases of this store cannot be lost. A
   * lease from the lock of another store counts as lost.
   */
  readonly fence?: Fence | undefined
}

/** The identity of a lease on a session. */
export interface Fence {
  readonly session: string
  readonly fencingToken: number
}

export interface StateEntry {
  readonly key: string
  readonly value: unknown
}

/** Returns which servers a caller must connect to their own account first. */
export interface ConnectionSource {
  /** Returns the missing connections. Callers who get the same object share decisions. */
  missing(caller: Caller): readonly MissingConnection[]
  /** Calls the listener synchronously after each change. Returns a function that unsubscribes. */
  subscribe(listener: () => void): () => void
}

export interface MissingConnection {
  /** The namespace of the tools that need the connection. */
  readonly namespace: string
  /** Why the tools are not available. Shown to people. */
  readonly text: string
  /** Why the tools are not available, as a clause without a full stop. Shown to the caller. */
  readonly message: string
  /** How to connect, as a sentence. */
  readonly suggestion?: string | undefined
}

/** Gives each session to one holder at a time, in the order of requests. Keeps no data about idle sessions. */
export interface SessionLock {
  /**
   * Resolves with a lease when the session is free.
   *
   * @throws the signal's reason when it aborts before; {@link ToolgateError} `lock_timeout` after `deadlineMs`
   */
  acquire(session: string, options?: LockOptions): Promise<Lease>
}

export interface LockOptions {
  readonly signal?: AbortSignal | Cancelling | undefined
  /** Milliseconds to wait at most. Default: no limit. */
  readonly deadlineMs?: number | undefined
}

/** The exclusive right to use a session. */
export interface Lease {
  /** Grows with every lease of a session, so that a store can reject a write by an earlier holder. */
  readonly fencingToken: number
  /**
   * Aborts when the lease is lost before its release, because another holder may have the session. Absent if leases cannot
   * be lost.
   */
  readonly lost?: AbortSignal
  /** Releases the session. Later calls do nothing. */
  release(): MaybePromise<void>
}

/** Reports calls to a tracing system. Calls pay no cost without it. */
export interface Telemetry {
  startCall(call: TracedCall): CallTrace | undefined
}

export interface TracedCall {
  /** The tool, if the catalog has it. A name that a client made up must not name a span. */
  readonly tool:
    | {
        readonly id: string
        readonly namespace?: string | undefined
        readonly name: string
        readonly description: string
      }
    | undefined
  readonly callId: string
  readonly caller: Caller
  readonly run: string | undefined
}

export interface CallTrace {
  /** W3C trace id, 32 hex digits. */
  readonly traceId: string | undefined
  /** Runs the tool so that the spans it starts are children of the call's span. Absent if the call has no span. */
  readonly within?: (<T>(work: () => T) => T) | undefined
  end(result: CallEnd): void
}

/** How a call ended. */
export interface CallEnd {
  readonly status: 'done' | 'failed' | 'refused' | 'waiting' | 'input_required'
  readonly code: string | undefined
  /** The frozen input, if there is one. Recorded only if the host enables it. */
  readonly input?: unknown
  /** The tool's output. Recorded only if the host enables it. */
  readonly output?: unknown
}

/** The known state of a group's dependency. */
export interface GroupState {
  readonly available: boolean
  /** Not checked yet. The tools of the group are not offered. */
  readonly unknown?: boolean
  /** Why it is unavailable, as a clause without a full stop: `nothing listens on 127.0.0.1:4444`. Shown to callers. */
  readonly reason?: string
  /** Details for people only, because they may quote a server's output: `exited with code 1 (…)`. */
  readonly detail?: string
  /** What to do, as a sentence. */
  readonly suggestion?: string
  /** Wall-clock milliseconds of the latest change. */
  readonly since?: number
}

export const PROBE_KINDS = ['server', 'tcp', 'http', 'command', 'env', 'function'] as const
export type ProbeKind = (typeof PROBE_KINDS)[number]

/** The last answer of one probe. */
export interface ProbeState extends GroupState {
  /** Equal for groups that name the same probe. */
  readonly key: string
  readonly kind: ProbeKind
  /** What is checked, as a noun, if the probe names it. */
  readonly what?: string
}

/** Returns which conditional groups are available now. Unknown groups count as unavailable. */
export interface AvailabilitySource {
  readonly revision: number
  get(group: string): GroupState | undefined
  /** Returns the probes of a group; `undefined` for an unknown group. Absent if the source has no probes. */
  probesOf?(group: string): readonly ProbeState[] | undefined
  subscribe(listener: () => void): () => void
}

/**
 * Limits calls to tools that need a resource of which each caller has few, such as a process of their own.
 *
 * Use it where availability and concurrency caps do not fit: availability is the same for all callers, and a cap counts
 * calls. Neither knows which callers have the resource, or how many more can get it.
 */
export interface Admission {
  /** `false` while no tool needs a place. Calls do not ask for one then. Default: `true`. */
  readonly isNeeded?: boolean | undefined
  /**
   * Takes a place for a call, or returns why there is none. The place is released when the call ends. `undefined`: the tool
   * needs no place. A promise is awaited for as long as the caller waits, and the call is decided again afterwards.
   */
  admit(tool: { readonly namespace: string | undefined }, caller: Caller): MaybePromise<Place | NoPlace | undefined>
}

/** The right of one call to use the resource. */
export interface Place {
  release(): void
}

export interface NoPlace {
  /** For people. */
  readonly text: string
  /** Shown to the caller, as a clause without a full stop: `all 4 of your instances are in use`. */
  readonly message: string
}

/**
 * Returns whether this process may start calls. A replica may not start calls once it cannot know what other replicas have
 * halted, denied or revoked.
 */
export interface ReplicaLease {
  /** Returns why no call may start now. Must answer synchronously, because the gate asks right before a call starts. */
  lapse(): ReplicaLapse | undefined
  /** Calls the listener when running calls must end, too. Returns a function that unsubscribes. */
  onEnd(listener: () => void): () => void
}

/** Why a replica may not start calls. */
export interface ReplicaLapse {
  /** For people. */
  readonly text: string
  /** Shown to the caller, as a clause without a full stop. */
  readonly message: string
}

/** Checks an input against a tool's schema. Returns the first problem, or `undefined` if it is valid. */
export type ValidateInput = (schema: object, input: unknown) => InputProblem | undefined

/** Returns whether a person may decide this approval. */
export type MayApprove = (approver: Caller, approval: Approval) => boolean
