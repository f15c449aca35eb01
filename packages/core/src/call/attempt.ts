import type { RunSource } from './run-source.ts'
import type { Caller } from '../ports/caller.ts'
import { type Cancelling, toCancelling } from '../util/cancelling.ts'
import type { Coverage } from '../decide/coverage.ts'
import type { Decided, Visible } from '../decide/decide.ts'
import { type Decision, mayGoOn, type ReasonCode } from '../decide/decision.ts'
import type { ParsedClause } from '../policy/parse.ts'
import { catchRejection, withDeadline, isThenable } from '../util/async.ts'
import { ConfigError } from '../util/errors.ts'
import type { Names } from '../decide/message.ts'
import type { CallHistory } from '../history/call-history.ts'
import type { Budgets } from './budgets.ts'
import type { RunFacts } from '../history/facts.ts'
import type { Histories, Kept } from '../history/histories.ts'
import type {
  Admission,
  Approval,
  ApprovalStore,
  AttemptEvent,
  AuditEntry,
  AuditSink,
  CallTrace,
  Clock,
  CounterStore,
  LimitAnswer,
  LimitUse,
  MaybePromise,
  Place,
  ReplicaLease,
  RunOfCall,
  Telemetry,
  ValidateInput,
} from '../ports/ports.ts'
import type { Redactor } from '../redact/redact.ts'
import { kindOfId, recordedKind } from '../tools/tool-id.ts'
import type { CallContext, Progress, Tool } from '../tools/tool.ts'
import type { Deadlines } from '../util/deadlines.ts'
import { sha256Hex } from '../util/hash.ts'
import { checkShape, shapeOf } from '../util/shape.ts'
import { type Hooks, type HooksInput, parseHooks, type HookedCall, type HookPorts } from './hooks.ts'
import { Asked } from './asked-call.ts'
import type { LimitUseOf } from './costs.ts'
import type { LiveCalls } from './lifetime.ts'
import type { CallOutcome, Continuation } from './outcome.ts'
import type { HeldSlots, Slots } from './slots.ts'

/** A person who is to decide an approval reads what is there, with the rights of the caller who asked for it. */
export interface Comparing {
  /** The id of the approval. */
  readonly approval: string
  /** The person's name. */
  readonly by: string
}

/** Why an item is called other than to run it: to complete an argument, or to be told of its updates. */
export const CALL_PURPOSES = ['complete', 'subscribe'] as const
export type CallPurpose = (typeof CALL_PURPOSES)[number]

export interface CallRequest<Name extends string = string> {
  /** The id of a tool, a resource or a prompt. Adapters map wire names back; `undefined` where a name maps to none. */
  readonly tool: Name | undefined
  readonly input?: unknown
  /** Default: a random UUID. */
  readonly callId?: string | undefined
  /**
   * The host's own name of the call, for a host that makes it again, as a durable runner that replays a step does. The limits
   * are taken once for all calls of a user to a tool with one key, until the longest of their windows has passed. It must not
   * come from a model or a client, who would be free of limits with it.
   */
  readonly idempotencyKey?: string | undefined
  readonly signal?: AbortSignal | Cancelling | undefined
  readonly onProgress?: ((progress: Progress) => void) | undefined
  /** Ends the execution after so many milliseconds. Default: the gate's. */
  readonly deadlineMs?: number | undefined
  /** Asked before those of the view's gate, which have the last word. */
  readonly hooks?: HooksInput | undefined
  /** The run that the call belongs to: for the audit, and what an approval of the call is bound to. */
  readonly run?: RunOfCall | undefined
  /**
   * The next round of a call that ended `input_required`: its limit and its approval are not taken again. Everything else
   * is decided again.
   */
  readonly continues?: Continuation | undefined
  /**
   * The id of the approval that the call spends, where the host makes a call that a person has approved. The call is
   * refused without it, also if the policy no longer asks, and nobody is asked again.
   *
   * `true` spends any that exists for this call, and asks nobody for a new one: for a call of which the host has read in
   * messages, which anyone can write and send again, that a person was asked.
   */
  readonly spends?: string | true | undefined
  /** The host's own name of who calls, such as the id of their credential. Kept with an approval of the call; it decides nothing. */
  readonly asker?: string | undefined
  /**
   * The call is not the caller's: a person reads what their call would change. It passes the same checks, but it takes no
   * limit, leaves nothing in the history of the run, counts for no clause, and no `afterToolCall` hook is called. Where a person
   * would have to approve it, it is refused.
   */
  readonly comparing?: Comparing | undefined
  /**
   * Returns the caller as they are now, of the same user and tenant; `undefined` where they may no longer call. Read when
   * the call is decided, and again before it runs. Default: the view's caller.
   */
  readonly callerNow?: (() => Caller | undefined) | undefined
  /** The host's data for the tool beside its input, such as the framework's own execution options. */
  readonly context?: unknown
  /** The host's description of a malformed request: the call is refused and recorded, and runs nothing. */
  readonly malformed?: string | undefined
  /**
   * Why nobody goes on with the call that this request continues. It is recorded as abandoned, whatever the policy says,
   * and runs nothing.
   */
  readonly abandoned?: string | undefined
  /** The name as the client spelled it, for refusals and the audit. Default: `tool`. */
  readonly calledAs?: string | undefined
  /** Returns the name of a tool as the client knows it, for refusals. Default: its id. */
  readonly nameOf?: ((id: string) => string) | undefined
  /**
   * Returns the id of a name, for tools that take names of tools; `undefined` for an unknown name. Default: names are
   * ids.
   */
  readonly idOf?: ((name: string) => string | undefined) | undefined
  /**
   * Runs `instead`, under the same decision, limits, hooks and records as the item itself. Where a person would have to
   * approve it, it is refused. The input of `complete` is not validated: its arguments are not complete.
   */
  readonly purpose?: CallPurpose | undefined
  /** Runs in place of the item's `execute`. Required with a `purpose`, and only allowed with one. */
  readonly instead?: ((input: unknown, call: CallContext) => unknown) | undefined
}

/** The questions of a call to its view. Each answer is today's. */
export interface CallView {
  readonly caller: Caller
  /** The view's app. A call through the view cannot belong to another. */
  readonly app: string | undefined
  /** Whether what happens in runs was kept when the view was made. */
  readonly kept: Kept
  /** The ids that are visible in the view and today, for refusals. */
  idsToday(): readonly string[]
  /** `caller` takes the place of the view's in today's part of the decision. */
  decide(id: string | undefined, caller?: Caller): Decided
  /** Returns the decision of the clauses that read the input or the run. `hits` receives those that hold. */
  decideInput(decided: Decided, input: unknown, facts?: RunFacts, hits?: ParsedClause[]): Decision
  explainDecided(decided: Decided): Decision
  /** Whether anything has changed since; if not, the answer would be the same. */
  isStale(decided: Decided): boolean
  /** Returns the uses that a call takes from the limits. */
  usesOf(decided: Decided): readonly LimitUseOf[]
  /** The same object for as long as nothing changes. */
  visibleToday(): Visible
  /** Those, and the ones that a search would open. */
  findableToday(): Visible
  /** The locked groups that a call of `request_tools` through this view opens. */
  openable(): readonly string[]
  /** The ids that are visible from the next step on, as known today. */
  idsOfNextStep(): readonly string[]
  call(request: CallRequest): Promise<CallOutcome>
  /** Returns the request with the run that the caller's token is for, if it is for one, and a resource as it is decided. */
  ofRun(request: CallRequest): CallRequest
}

export interface CallPorts {
  /** The checks of a call, in order; and those up to the approval, for an attempt that only asks for one. */
  readonly checks: { readonly call: readonly Check[]; readonly approval: readonly Check[] }
  readonly counters: CounterStore
  readonly budgets: Budgets
  readonly approvals: ApprovalStore
  readonly audit: AuditSink
  readonly clock: Clock
  readonly deadlines: Deadlines
  readonly validate: ValidateInput
  readonly newCallId: () => string
  /** Of the gate and the gates above it, its own first. */
  readonly hooks: readonly Hooks[]
  /** Absent where nothing caps how many calls run at once. */
  readonly slots: Slots | undefined
  /** Absent where no tool needs a place for each caller. */
  readonly admission: Admission | undefined
  readonly histories: Histories
  readonly coverage: Coverage
  readonly runs: RunSource | undefined
  /** Absent where this process shares its state with no other. */
  readonly lease: ReplicaLease | undefined
  readonly live: LiveCalls
  readonly telemetry: Telemetry | undefined
  readonly redactor: Redactor
  readonly deadlineMs: number
  /** Ends the wait for a store. */
  readonly storeDeadlineMs: number
  /** Ends the wait for a hook. */
  readonly hookDeadlineMs: number
  /** Characters of JSON. */
  readonly maxOutputChars: number
  /** A person is asked to approve. */
  readonly onApproval: (approval: Approval) => void
  /** Receives faults that must not change an answer, such as a terminal record that could not be written. */
  readonly onFault: (error: unknown) => void
}

/** Why a call ends before its tool runs. With an approval it is not refused: it waits for a person. */
export interface Stop {
  readonly decision: Decision
  readonly approval?: Approval | undefined
}

/** One question that a call must pass before its tool runs. */
export interface Check {
  readonly name: string
  readonly asks: string
  /** The reasons of its own; the layers of the decision have theirs. */
  readonly refusesWith: readonly ReasonCode[]
  /** Only gates that have some of these ask it. */
  readonly needs?: 'limits' | 'slots' | 'admission' | 'lease' | 'history'
  /** It is asked for a preview too: it takes nothing, asks nobody, and answers at once. */
  readonly inPreview?: true
  /**
   * Returns what stops the call, at once where everything that it asks answers at once. What it throws refuses the
   * call.
   */
  readonly run: (attempt: Attempt, tool: Tool) => MaybePromise<Stop | undefined>
}

/** The decision that shadows of policies would have made. `unknown`: it depends on what the run has done, which nobody knows. */
export interface Would {
  readonly outcome: 'ask' | 'deny' | 'unknown'
  readonly clause: string | undefined
}

/** One call under way. */
export interface Attempt {
  readonly view: CallView
  readonly request: CallRequest
  readonly ports: CallPorts
  readonly callId: string
  readonly cancelling: Cancelling | undefined
  readonly decided: Decided
  /** The caller that it was decided for, where the host reads callers again. */
  readonly asked: Caller | undefined
  uses: readonly LimitUseOf[]
  readonly hooks: readonly Hooks[]
  /** Of one that only asks, from when it is known to have been an attempt. */
  trace: CallTrace | undefined
  /** It goes as far as the approval, and takes and runs nothing. */
  readonly onlyAsks: boolean
  /** How many of the checks were asked. */
  passed: number
  /** The frozen input, once it is known to be one. */
  input: unknown
  /** What is known of its run, where rules read that. Read before the first decision with the input. */
  facts: RunFacts | undefined
  /** The labels of its output, once it has begun and where rules read runs. */
  labels: readonly string[] | undefined
  /** The call in the history of its run, where rules read that. */
  history: CallHistory | undefined
  /** The same for shadows of rules. */
  shadowFacts: RunFacts | undefined
  shadowHistory: CallHistory | undefined
  /** The decision of the clauses that read the input or the run. */
  withInput: Decision | undefined
  /** The clauses that hold for its input and its run. */
  hits: readonly ParsedClause[]
  /** What the shadows of policies would decide, if that is stricter. */
  would: Would | undefined
  /** Whether its clauses are counted. */
  isCounted: boolean
  /** The approval that this call would use. */
  approval: Approval | undefined
  /** These must be given back if the call does not go ahead. */
  taken: LimitAnswer | undefined
  approvalId: string | undefined
  /** The name of this use of the approval. */
  spend: string | undefined
  /** Whether it is a later round of a call. Known once the input is. */
  continues: Continuation | undefined
  slots: HeldSlots | undefined
  place: Place | undefined
}

export function openAttempt(view: CallView, request: CallRequest, ports: CallPorts, onlyAsks: boolean): Attempt {
  checkRequest(request)
  const { signal } = request
  const callId = textOf(request.callId) ?? ports.newCallId()
  const hooks = request.hooks === undefined ? ports.hooks : [...parseHooks(request.hooks), ...ports.hooks]
  const asked = callerNow(view, request)
  const decided = view.decide(request.tool, asked)
  const uses = usesOf(view, decided, request)
  // Nothing throws from here on: an attempt that has begun must end.
  ports.live.begin()
  const attempt: Attempt = {
    view,
    request,
    ports,
    callId,
    cancelling: signal && toCancelling(signal),
    decided,
    asked,
    uses,
    hooks,
    onlyAsks,
    trace: undefined,
    passed: 0,
    input: undefined,
    facts: undefined,
    labels: undefined,
    history: undefined,
    shadowFacts: undefined,
    shadowHistory: undefined,
    withInput: undefined,
    hits: NO_HITS,
    would: undefined,
    isCounted: false,
    approval: undefined,
    taken: undefined,
    approvalId: undefined,
    spend: undefined,
    continues: undefined,
    slots: undefined,
    place: undefined,
  }
  if (ports.telemetry && !onlyAsks) startTrace(attempt)
  return attempt
}

const NO_HITS: readonly ParsedClause[] = []
const NO_USES: readonly LimitUseOf[] = []

/** Returns what a call takes from the limits. */
export function usesOf(view: CallView, decided: Decided, { comparing }: CallRequest): readonly LimitUseOf[] {
  return comparing === undefined ? view.usesOf(decided) : NO_USES
}

/** Returns the caller as the host reads them now; `undefined` where it does not, or where they may no longer call. */
export function callerNow({ caller }: CallView, request: CallRequest): Caller | undefined {
  const now = request.callerNow?.()
  return now && now.user === caller.user && now.tenant === caller.tenant ? now : undefined
}

export function startTrace(attempt: Attempt): void {
  const { ports, decided, callId, view, request } = attempt
  attempt.trace = ports.telemetry?.startCall({ tool: decided.tool, callId, caller: view.caller, run: request.run?.id })
}

/**
 * Checks the fields that only a host sets. Faults of a model or a client are refusals instead. @throws {ConfigError}
 */
export function checkRequest(request: CallRequest): void {
  checkShape('call', request, REQUEST)
  const { signal, deadlineMs, run, continues, purpose, instead, idempotencyKey, asker, comparing } = request
  if (continues !== undefined) checkShape('call.continues', continues, CONTINUES)
  if (run !== undefined) checkRun(run)
  if (asker !== undefined && typeof asker !== 'string') throw new ConfigError('call.asker', 'must be a text')
  if (comparing !== undefined) checkComparing(comparing, request)
  if (idempotencyKey !== undefined && (typeof idempotencyKey !== 'string' || idempotencyKey === ''))
    throw new ConfigError('call.idempotencyKey', 'must be a text that is not empty')
  if (deadlineMs !== undefined && (typeof deadlineMs !== 'number' || Number.isNaN(deadlineMs)))
    throw new ConfigError('call.deadlineMs', 'must be a number of milliseconds')
  if (purpose !== undefined && !CALL_PURPOSES.includes(purpose))
    throw new ConfigError('call.purpose', `must be one of ${CALL_PURPOSES.join(', ')}`)
  if ((purpose === undefined) !== (instead === undefined) || (instead !== undefined && typeof instead !== 'function'))
    throw new ConfigError('call.instead', 'must be a function, with a purpose')
  if (signal && !isCancelling(signal)) throw new ConfigError('call.signal', 'must be an AbortSignal')
}

function checkComparing(comparing: Comparing, { purpose, continues, spends }: CallRequest): void {
  checkShape('call.comparing', comparing, COMPARING)
  for (const field of ['approval', 'by'] as const)
    if (typeof comparing[field] !== 'string') throw new ConfigError(`call.comparing.${field}`, 'must be a text')
  if (purpose !== undefined || continues !== undefined || spends !== undefined)
    throw new ConfigError('call.comparing', 'must not be with purpose, continues or spends')
}

function checkRun(run: RunOfCall): void {
  checkShape('call.run', run, RUN)
  const { history, userWords = [], earlierResults = [] } = run
  if (history !== undefined && typeof history !== 'string')
    throw new ConfigError('call.run.history', 'must be the id of a run')
  const words = typeof userWords === 'string' ? [userWords] : userWords
  if (!Array.isArray(words) || !words.every((text) => typeof text === 'string'))
    throw new ConfigError('call.run.userWords', 'must be a text or a list of texts')
  if (!Array.isArray(earlierResults)) throw new ConfigError('call.run.earlierResults', 'must be a list')
}

const REQUEST = shapeOf<CallRequest>({
  tool: true,
  input: true,
  callId: true,
  idempotencyKey: true,
  signal: true,
  onProgress: true,
  deadlineMs: true,
  hooks: true,
  run: true,
  continues: true,
  spends: true,
  callerNow: true,
  context: true,
  malformed: true,
  abandoned: true,
  calledAs: true,
  nameOf: true,
  idOf: true,
  purpose: true,
  instead: true,
  asker: true,
  comparing: true,
})
const COMPARING = shapeOf<Comparing>({ approval: true, by: true }, 'field')
const CONTINUES = shapeOf<Continuation>(
  { callId: true, round: true, binding: true, approvalId: true, approver: true, asked: true, inner: true, event: true },
  'field',
)
const RUN = shapeOf<RunOfCall>(
  {
    id: true,
    step: true,
    model: true,
    app: true,
    bindsApprovals: true,
    history: true,
    userWords: true,
    earlierResults: true,
    resumed: true,
  },
  'field',
)

function isCancelling(signal: object): boolean {
  return signal instanceof AbortSignal || typeof (signal as Partial<Cancelling>).onAbort === 'function'
}

/**
 * Gives back the limit, the approval, the place and the slots that were taken for a call that does not go ahead. Never rejects.
 *
 * Where nothing was taken it does not wait: the refusal is recorded in the turn in which the call was made.
 */
export function giveBack(attempt: Attempt): MaybePromise<void> {
  releaseSlots(attempt)
  if (attempt.taken !== undefined || attempt.approvalId !== undefined) return giveBackTaken(attempt)
}

async function giveBackTaken(attempt: Attempt): Promise<void> {
  const { taken, approvalId, spend, ports } = attempt
  attempt.taken = undefined
  attempt.approvalId = undefined
  // Each by itself: that one store fails must not keep the other from giving back.
  if (taken) await tryStep(ports, () => ports.counters.giveBack(usesToTake(attempt), taken))
  if (approvalId !== undefined) await tryStep(ports, () => ports.approvals.giveBack(approvalId, spend))
}

/**
 * Returns the uses that are taken for a call. One that its host may make again has a use more, of which there is one: it is the
 * first, so where it is refused the others were taken before.
 */
export function usesToTake({ uses, request, view: { caller } }: Attempt): readonly LimitUse[] {
  const { idempotencyKey, tool } = request
  if (idempotencyKey === undefined) return uses
  const named = JSON.stringify([caller.tenant ?? null, caller.user ?? null, tool ?? null, idempotencyKey])
  const windowMs = uses.reduce((longest, use) => Math.max(longest, use.windowMs), 0)
  return [{ key: `repeated|${sha256Hex(named)}`, max: 1, windowMs }, ...uses]
}

export function releaseSlots(attempt: Attempt): void {
  const { slots, place } = attempt
  attempt.slots = undefined
  attempt.place = undefined
  place?.release()
  slots?.release()
}

/** Runs a step that must not change an answer. Its fault, or a late answer, goes to `onFault`. */
async function tryStep(ports: CallPorts, step: () => MaybePromise<void>): Promise<void> {
  try {
    await storeInTime(ports, step())
  } catch (error) {
    ports.onFault(error)
  }
}

export type StorePorts = Pick<CallPorts, 'deadlines' | 'clock' | 'storeDeadlineMs'>

/** Returns a store's answer. Rejects when it does not come in time. */
export function storeInTime<T>(ports: StorePorts, answer: MaybePromise<T>): MaybePromise<T> {
  return isThenable(answer) ? withDeadline(answer, ports.deadlines, ports.clock, ports.storeDeadlineMs) : answer
}

/** Returns the names that a refusal may use: those of the client. */
export function namesOf({ view, request }: Attempt): Names {
  const { nameOf } = request
  const kind = kindOfId(textOf(request.tool) ?? '')
  return {
    asked: calledAs(request),
    kind,
    nameOf: (id) => (mayGoOn(view.decide(id).outcome) ? (nameOf?.(id) ?? id) : undefined),
    visible: () => (nameOf ? view.idsToday().map(nameOf) : view.idsToday()),
  }
}

export function calledAs({ calledAs: name, tool }: CallRequest): string {
  return textOf(name) ?? textOf(tool) ?? ''
}

/** A name that is not a string is no name. */
function textOf(name: unknown): string | undefined {
  return typeof name === 'string' ? name : undefined
}

/** The fields of a record beside who, which tool and when. */
export type AuditFields = Pick<
  AuditEntry,
  'reason' | 'detail' | 'clause' | 'limit' | 'reset_ms' | 'duration_ms' | 'error' | 'is_error' | 'approval_id' | 'read'
>

const MAX_NAME_LENGTH = 256
/** The redactor sees this much, so that a secret that the cut would halve is still found. */
const MAX_LOOKED_AT = 2 * MAX_NAME_LENGTH

/** An unknown name is free text from the client, so it is redacted before it is recorded. */
function unknownName({ request, ports }: Attempt): string {
  const name = (textOf(request.tool) ?? calledAs(request)).slice(0, MAX_LOOKED_AT)
  try {
    const redacted = ports.redactor.redactText(name)
    catchRejection(redacted, ports.onFault)
    return redacted.slice(0, MAX_NAME_LENGTH)
  } catch (error) {
    ports.onFault(error)
    return '[not shown: it could not be redacted]'
  }
}

/** Tools have no `kind` in records. */
function kindOf({ decided, request }: Attempt): AuditEntry['kind'] {
  return recordedKind(decided.tool?.id ?? textOf(request.tool) ?? '')
}

/** Returns what counted against a call, of the reasons that decided. */
export function countedIn({ outcome, reasons }: Decision): AuditEntry['read'] {
  if (reasons.length === 0) return undefined
  const read = reasons.flatMap((one) => (one.outcome === outcome ? (one.read ?? []) : []))
  return read.length === 0 ? undefined : read
}

function labelsOf(facts: RunFacts | undefined): AuditEntry['run_labels'] {
  return facts?.isUnknown ? undefined : facts?.labels
}

/** Writes a record; throws or rejects as the sink does. */
export function write(attempt: Attempt, event: AttemptEvent, fields: AuditFields): MaybePromise<void> {
  const { view, request, callId, decided, ports, input, trace, would } = attempt
  const { caller } = view
  const { run, comparing } = request
  const wallMs = ports.clock.wallMs()
  if (!attempt.isCounted && !comparing) {
    attempt.isCounted = true
    ports.coverage.tallies.count(decided, attempt.hits, wallMs)
  }
  // One shape for every entry and no spread, as this runs twice in each call.
  const written = ports.audit.write({
    event,
    wallMs,
    tool: decided.tool?.id ?? unknownName(attempt),
    kind: kindOf(attempt),
    purpose: comparing ? 'compare' : request.purpose,
    tool_call_id: callId,
    chat_id: caller.chat?.id,
    user_id: caller.user,
    session_id: caller.session,
    tenant: caller.tenant,
    agent: caller.agent,
    client: caller.client,
    actor: caller.actor,
    act_chain: caller.actChain && JSON.stringify(caller.actChain),
    key_made_by: caller.keyMadeBy,
    app: view.app ?? run?.app,
    run,
    run_history: run && ports.histories.sharedBy(caller, run),
    trace_id: trace?.traceId,
    policy_revision: decided.today.policyRevision,
    in_force: decided.today.policy,
    catalog_revision: decided.today.catalogRevision,
    reason: fields.reason,
    detail: fields.detail ?? (comparing && `read for ${comparing.by}, who decides the approval`),
    clause: fields.clause,
    limit: fields.limit,
    reset_ms: fields.reset_ms,
    duration_ms: fields.duration_ms,
    error: fields.error,
    is_error: fields.is_error,
    approval_id: fields.approval_id ?? comparing?.approval,
    continues: request.continues?.callId,
    labels: attempt.labels,
    run_labels: labelsOf(attempt.facts ?? attempt.shadowFacts),
    read: fields.read ?? (attempt.withInput && countedIn(attempt.withInput)),
    input: event === 'tool_result' ? undefined : input,
    asked: event === 'tool_result' ? undefined : new Asked(decided, attempt.uses),
    would_outcome: event === 'tool_call' ? undefined : would?.outcome,
    would_clause: event === 'tool_call' ? undefined : would?.clause,
  })
  return written === undefined ? undefined : storeInTime(ports, written)
}

/**
 * Writes the terminal record, which ends the attempt. A fault here goes to
 * `onFault` and does not change the answer.
 */
export function writeLast(attempt: Attempt, event: AttemptEvent, fields: AuditFields): MaybePromise<void> {
  const { onFault, live } = attempt.ports
  try {
    const written = write(attempt, event, fields)
    if (written instanceof Promise) return written.catch(onFault).finally(() => live.end())
  } catch (error) {
    onFault(error)
  }
  live.end()
}

/** Returns an attempt as its hooks are asked about it. */
export function toHooked(attempt: Attempt, tool: Tool, cancelling: Cancelling | undefined): HookedCall {
  const { callId, input, view, onlyAsks } = attempt
  return { tool, callId, input, caller: view.caller, cancelling, onlyAsks, visibleIds: () => view.idsToday() }
}

export function hookPorts({ deadlines, clock, hookDeadlineMs, onFault }: CallPorts): HookPorts {
  return { deadlines, clock, deadlineMs: hookDeadlineMs, onFault }
}
