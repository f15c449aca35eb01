import type { RunSource } from './run-source.ts'
import type { Caller } from '../ports/caller.ts'
import {
  type Cancelling,
  checkObject,
  checkShape,
  ConfigError,
  type Deadlines,
  isThenable,
  sha256Hex,
  type Shape,
  shapeOf,
  toCancelling,
  withDeadline,
} from '@toolgate/values'
import type { Coverage } from '../decide/coverage.ts'
import type { CallFacts, Decided, Visible } from '../decide/decide.ts'
import { type Decision, mayGoOn, type ReasonCode } from '../decide/decision.ts'
import type { ParsedClause } from '../policy/parse.ts'
import type { Names } from '../decide/message.ts'
import type { CallHistory } from '../history/call-history.ts'
import type { NotedBudgets } from './budgets.ts'
import type { RunFacts } from '../history/facts.ts'
import type { OpenGrants } from '../memory/grant-rules.ts'
import type { Grant } from '../ports/grants.ts'
import type { Histories, Kept } from '../history/histories.ts'
import type {
  Admission,
  Approval,
  ApprovalEdit,
  ApprovalStore,
  AuditSink,
  CallTrace,
  Clock,
  CounterStore,
  LimitAnswer,
  LimitUse,
  MaybePromise,
  ReplicaLease,
  RunOfCall,
  Telemetry,
  ValidateInput,
} from '../ports/ports.ts'
import type { Redactor } from '@toolgate/values/redact'
import type { ParsedInput } from '../tools/standard-schema.ts'
import { kindOfId } from '../tools/tool-id.ts'
import type { CallContext, Progress, Tool } from '../tools/tool.ts'
import { type Hooks, type HooksInput, parseHooks, type HookedCall, type HookPorts } from './hooks.ts'
import type { LimitUseOf } from './costs.ts'
import type { LiveCalls } from './lifetime.ts'
import type { CallDone, CallFailed, CallInputRequired, CallOutcome, Continuation } from './outcome.ts'
import type { Slots } from './slots.ts'

/** The purpose of a call that is not made for the item's result. Each kind has its own list of checks. */
type CallAs = CallInstead | CallToCompare | CallAbandoned

/**
 * Completes an argument or subscribes to updates. `run` replaces the item's `execute`, under the same decision, limits,
 * hooks and records. A call that would need an approval is refused. The input of `complete` is not validated, because its
 * arguments are incomplete.
 */
interface CallInstead {
  readonly kind: 'complete' | 'subscribe'
  readonly run: (input: unknown, call: CallContext) => unknown
}

/**
 * Reads current data for a person who decides an approval, with the rights of the caller who requested it. The call passes
 * the same checks, but does not count towards limits or the hits of clauses. It is not in the history of the run and
 * calls no `afterToolCall` hook. A call that would need an approval is refused.
 */
interface CallToCompare {
  readonly kind: 'compare'
  /** The id of the approval. */
  readonly approval: string
  /** The person's name. */
  readonly by: string
}

/** The client no longer continues the call. It is recorded as abandoned whatever the policy decides, and runs nothing. */
interface CallAbandoned {
  readonly kind: 'abandoned'
  readonly why: string
}

export interface CallRequest<Name extends string = string> {
  /** The id of a tool, a resource or a prompt. Adapters translate the client's names; `undefined` for an unknown name. */
  readonly tool: Name | undefined
  readonly input?: unknown
  /** Default: a random UUID. */
  readonly callId?: string | undefined
  /**
   * The host's own key of the call, for a host that may repeat it, such as a durable runner that replays a step. All calls
   * of a user to a tool with the same key take from the limits once, until the longest window has passed. Never take the
   * key from a model or a client, who could evade limits with it.
   */
  readonly idempotencyKey?: string | undefined
  readonly signal?: AbortSignal | Cancelling | undefined
  readonly onProgress?: ((progress: Progress) => void) | undefined
  /** Milliseconds after which the execution is ended. Default: the gate's. */
  readonly deadlineMs?: number | undefined
  /** Called before the hooks of the view's gate, which have the last word. */
  readonly hooks?: HooksInput | undefined
  /** The run that the call belongs to. It is recorded in the audit, and an approval of the call is bound to it. */
  readonly run?: RunOfCall | undefined
  /**
   * The earlier round of a call that ended `input_required`. Its limit and its approval are not taken again; all other
   * checks are repeated.
   */
  readonly continues?: Continuation | undefined
  /**
   * The id of the approval that the call spends. Use it when the host makes a call that a person has approved. Without that
   * approval the call is refused, even if the policy no longer asks, and no new approval is requested.
   *
   * `true` spends any existing approval for this call and requests no new one. Use it if messages claim that a person was
   * asked, because anyone can write and resend messages.
   */
  readonly spends?: string | true | undefined
  /**
   * The host's own name of the requester, such as the id of their credential. It is stored with an approval of the call
   * and does not affect decisions.
   */
  readonly asker?: string | undefined
  /**
   * Returns the caller as they are now, of the same user and tenant; `undefined` if they may no longer call. Called when
   * the call is decided, and again before it runs. Default: the view's caller.
   */
  readonly callerNow?: (() => Caller | undefined) | undefined
  /** The host's data for the tool besides its input, such as the framework's execution options. */
  readonly context?: unknown
  /** The host's description of a malformed request. The call is refused and recorded, and runs nothing. */
  readonly malformed?: string | undefined
  /** The name as the client spelled it, for refusals and the audit. Default: `tool`. */
  readonly calledAs?: string | undefined
  /** Returns the name of a tool as the client knows it, for refusals. Default: its id. */
  readonly nameOf?: ((id: string) => string) | undefined
  /**
   * Returns the id for a tool name, for tools whose input names tools; `undefined` for an unknown name. Default: names are
   * ids.
   */
  readonly idOf?: ((name: string) => string | undefined) | undefined
  /** The purpose of the call, if it is not made for the item's result. */
  readonly as?: CallAs | undefined
  /**
   * `true` lets approvers change the input where the policy allows it. The host must pass `outcome.note`, which says what
   * was changed, or `outcome.text`, which begins with it, to the model.
   */
  readonly edits?: boolean | undefined
}

/** What a call asks of its view. Each answer is current. */
export interface CallView {
  readonly caller: Caller
  /** The view's app. A call through the view cannot use another app. */
  readonly app: string | undefined
  /** Whether histories of runs were kept when the view was made. */
  readonly kept: Kept
  /** The ids that the view shows and that are available today, for refusals. */
  idsToday(): readonly string[]
  /** Decides an id. `caller` replaces the view's caller in today's part of the decision. */
  decide(id: string | undefined, caller?: Caller): Decided
  /** Returns the decision of the clauses that read the input or the run. Adds the clauses that hold to `hits`. */
  decideInput(decided: Decided, input: unknown, facts?: RunFacts, hits?: ParsedClause[]): Decision
  explainDecided(decided: Decided): Decision
  /** Returns whether a decision is out of date. If not, a new decision would be the same. */
  isStale(decided: Decided): boolean
  /** Returns the uses that a call takes from the limits. */
  usesOf(decided: Decided): readonly LimitUseOf[]
  /** Returns the same object until something changes. */
  visibleToday(): Visible
  /** Returns the tools that a search can find: the visible ones, and those that the search would unlock. */
  findableToday(): Visible
  /** The locked groups that a call of `request_tools` through this view opens. */
  openable(): readonly string[]
  /** The ids that will be visible from the next step on, as far as known today. */
  idsOfNextStep(): readonly string[]
  /** Checks a name if the gate's tools are fixed. @throws {UnknownToolError} for a name that no tool has had */
  checkName(id: string): void
  call(request: CallRequest): Promise<CallOutcome>
  /**
   * Returns the request with the run of the caller's token, if there is one, and with the name that a resource is decided
   * by.
   */
  ofRun(request: CallRequest): CallRequest
}

/**
 * Optional parts of a gate that exist only if its rules need them. A call does not enter absent parts.
 *
 * A gate and its forks share one object, which changes with the rules. Parts other than the checks are never removed,
 * because calls under way may need them.
 */
export interface Collaborators {
  checks: Readonly<Record<CheckList, readonly Check[]>>
  /** Present if a rule reads the history of runs. */
  history?: Histories | undefined
  /** Present if a policy has a shadow. Notes what shadows would decide. */
  noteShadows?: ((attempt: Attempt, call?: CallFacts) => void) | undefined
  /** Present if a limit has a cost. */
  costs?: CostsOfCalls | undefined
}

/** The lists of checks, one for each kind of call, and `approval` for an attempt that only requests an approval. */
export type CheckList = 'call' | 'approval' | 'preview' | Exclude<CallAs['kind'], 'abandoned'>

/** Computes what calls cost, for limits that have a `cost`. */
export interface CostsOfCalls {
  /** Returns the uses with the cost of this call, or why the cost is unknown. */
  priced(attempt: Attempt, tool: Tool, uses: readonly LimitUseOf[]): readonly LimitUseOf[] | Stop
  /** Sets the costs in the limits to the real cost of the call. Returns the costs to record. Never rejects. */
  settle(attempt: Attempt, tool: Tool, outcome: Ran, output: unknown): MaybePromise<string | undefined>
}

export interface CallPorts {
  readonly current: Collaborators
  readonly counters: CounterStore
  readonly budgets: NotedBudgets
  readonly approvals: ApprovalStore
  readonly grants: OpenGrants
  readonly audit: AuditSink
  readonly clock: Clock
  readonly deadlines: Deadlines
  readonly validate: ValidateInput
  readonly newCallId: () => string
  /** The hooks of the gate, then those of the gates above it. */
  readonly hooks: readonly Hooks[]
  /** Absent if no cap limits concurrent calls. */
  readonly slots: Slots | undefined
  /** Absent if no tool needs a place for each caller. */
  readonly admission: Admission | undefined
  readonly histories: Histories
  readonly coverage: Coverage
  readonly runs: RunSource | undefined
  /** Absent if this process shares its state with no other. */
  readonly lease: ReplicaLease | undefined
  readonly live: LiveCalls
  readonly telemetry: Telemetry | undefined
  readonly redactor: Redactor
  readonly deadlineMs: number
  /** The longest time to wait for a store, in milliseconds. */
  readonly storeDeadlineMs: number
  /** The longest time to wait for a hook, in milliseconds. */
  readonly hookDeadlineMs: number
  /** The maximum length of an output, in characters of JSON. */
  readonly maxOutputChars: number
  /** Called when an approval is requested. */
  readonly onApproval: (approval: Approval) => void
  /** Returns who can decide an approval, as a sentence for the model. */
  readonly whoDecides?: ((approval: Approval) => string | undefined) | undefined
  /** Receives errors that do not change an answer, such as a terminal record that could not be written. */
  readonly onFault: (error: unknown) => void
}

/** Why a call ends before its tool runs. With an approval, the call waits for a person instead of being refused. */
export interface Stop {
  readonly decision: Decision
  readonly approval?: Approval | undefined
}

/** The result of a check: the reason to stop the call, or `undefined`. Synchronous unless the check must wait. */
export type CheckResult = MaybePromise<Stop | undefined>

/** One check that a call must pass before its tool runs. */
export interface Check {
  readonly name: string
  readonly asks: string
  /** The reasons that this check itself refuses with, besides those of the decision's layers. */
  readonly refusesWith: readonly ReasonCode[]
  /** The check runs only in gates that have these parts. */
  readonly needs?: 'stepUp' | 'limits' | 'slots' | 'admission' | 'lease' | 'history'
  /** The check runs only for calls with hooks, with a person who must approve, or while a tool needs a place. */
  readonly of?: 'hooks' | 'person' | 'place'
  /** An error refuses the call. */
  readonly run: (attempt: Attempt, tool: Tool) => CheckResult
}

/** One call under way. */
export interface Attempt {
  readonly view: CallView
  readonly request: CallRequest
  readonly ports: CallPorts
  readonly callId: string
  readonly cancelling: Cancelling | undefined
  readonly decided: Decided
  /** The caller that the call was decided for, if the host reads callers again. */
  readonly asked: Caller | undefined
  readonly hooks: readonly Hooks[]
  /** Set after the attempt is recorded, if the attempt only requests an approval. */
  trace: CallTrace | undefined
  /** The attempt stops at the approval, and takes and runs nothing. */
  readonly onlyAsks: boolean
  /** The frozen input, once it has been parsed. */
  input: unknown
  /** Whether texts of the given input were replaced by the values that the tool's schema wants. */
  isCoerced: boolean
  /** The input for the tool, if it is not `input`: a schema may return what JSON cannot express. */
  forTool: ParsedInput['forTool']
  /** The decision of the clauses that read the input or the run. */
  withInput: Decision | undefined
  /** The clauses that hold for its input and its run. */
  hits: readonly ParsedClause[]
  /** What shadow policies would decide, if that is stricter. */
  would: { readonly outcome: 'ask' | 'deny' | 'unknown'; readonly clause: string | undefined } | undefined
  /** Whether its clauses are counted. */
  isCounted: boolean
  /** Whether policy requires an approval. Known once the input is decided. */
  asksPerson: boolean
  /** The approval that the call would use or has used. */
  approval: ApprovalOfCall | undefined
  /** What approvers changed of the input. */
  edited: EditedCall | undefined
  /** The earlier round, if this is a later round of a call. Known once the input is known. */
  continues: Continuation | undefined
  /** The uses that the call takes from the limits, and the taken ones, which are returned if the call does not run. */
  uses: readonly LimitUseOf[]
  taken: LimitAnswer | undefined
  /** The history of its run, if rules read it. */
  history: HistoryOfCall | undefined
  /** The slots and the place that the call holds until it ends. */
  held: readonly HeldResource[]
}

/** The approval of a call. `spend`: the name of this use, once the approval is used up. */
export interface ApprovalOfCall {
  readonly approval: Pick<Approval, 'id' | 'decidedBy' | 'approver' | 'asked' | 'approvedBy' | 'edit'>
  spend: string | undefined
  /** The grant that the call uses, which the approval made. The approval itself is not used then. */
  readonly grant?: Grant
  /** The approval of the original call, if its approver changed the input and the changed call needed this one. */
  readonly before?: ApprovalOfCall | undefined
}

/** The change of a call by its approvers. */
interface EditedCall {
  /** The input before the change. */
  readonly original: unknown
  readonly edit: ApprovalEdit
  /** Redacted. */
  readonly changes: readonly { readonly field: string; readonly from: unknown; readonly to: unknown }[]
}

/** What a call reads and adds in the history of its run. Shadow rules have histories of their own, of the same form. */
export interface HistoryOfCall {
  /** The known facts about its run, read before the first decision with the input. */
  facts: RunFacts | undefined
  shadowFacts: RunFacts | undefined
  /** The entry of this call in the history of its run. */
  entered: CallHistory | undefined
  shadow: CallHistory | undefined
  /** The labels of its output, once it has begun. */
  labels: readonly string[] | undefined
}

/** A resource that one call holds at a time. */
interface HeldResource {
  release(): void
}

/** The end of a call that has run. */
export type Ran = CallDone | CallFailed | CallInputRequired

export function openAttempt(view: CallView, request: CallRequest, ports: CallPorts, onlyAsks: boolean): Attempt {
  checkRequest(request)
  const { signal } = request
  const callId = typeof request.callId === 'string' ? request.callId : ports.newCallId()
  const hooks = request.hooks === undefined ? ports.hooks : [...parseHooks(request.hooks), ...ports.hooks]
  const asked = request.callerNow && callerNow(view, request)
  const decided = view.decide(request.tool, asked)
  const uses = request.as?.kind === 'compare' ? NO_USES : view.usesOf(decided)
  // Nothing throws from here on, because an attempt that has begun must end.
  ports.live.begin()
  const attempt: Attempt = {
    view,
    request,
    ports,
    callId,
    cancelling: signal && toCancelling(signal),
    decided,
    asked,
    hooks,
    trace: undefined,
    onlyAsks,
    input: undefined,
    isCoerced: false,
    forTool: undefined,
    withInput: undefined,
    hits: NO_HITS,
    would: undefined,
    isCounted: false,
    asksPerson: false,
    approval: undefined,
    edited: undefined,
    continues: undefined,
    uses,
    taken: undefined,
    history: undefined,
    held: NOTHING_HELD,
  }
  if (ports.telemetry && !onlyAsks) startTrace(attempt)
  return attempt
}

const NO_HITS: readonly ParsedClause[] = []
const NO_USES: readonly LimitUseOf[] = []

const NOTHING_HELD: readonly HeldResource[] = []

/** Returns the current caller from the host; `undefined` if the host does not read callers again or they may no longer call. */
export function callerNow({ caller }: CallView, request: CallRequest): Caller | undefined {
  const now = request.callerNow?.()
  return now && now.user === caller.user && now.tenant === caller.tenant ? now : undefined
}

export function startTrace(attempt: Attempt): void {
  const { ports, decided, callId, view, request } = attempt
  attempt.trace = ports.telemetry?.startCall({ tool: decided.tool, callId, caller: view.caller, run: request.run?.id })
}

/**
 * Checks the fields that only a host sets. Errors of a model or a client are refusals instead.
 * @throws {ConfigError}
 */
export function checkRequest(request: CallRequest): void {
  checkShape('call', request, REQUEST)
  const { signal, deadlineMs, run, continues, as, idempotencyKey, asker, edits } = request
  if (continues !== undefined) checkShape('call.continues', continues, CONTINUES)
  if (run !== undefined) checkRun(run)
  if (edits !== undefined && typeof edits !== 'boolean') throw new ConfigError('call.edits', 'must be true or false')
  if (asker !== undefined && typeof asker !== 'string') throw new ConfigError('call.asker', 'must be a text')
  if (as !== undefined) checkAs(as, request)
  if (idempotencyKey !== undefined && (typeof idempotencyKey !== 'string' || idempotencyKey === ''))
    throw new ConfigError('call.idempotencyKey', 'must be a text that is not empty')
  if (deadlineMs !== undefined && (typeof deadlineMs !== 'number' || Number.isNaN(deadlineMs)))
    throw new ConfigError('call.deadlineMs', 'must be a number of milliseconds')
  if (signal && !isCancelling(signal)) throw new ConfigError('call.signal', 'must be an AbortSignal')
}

function checkAs(as: CallAs, { continues, spends }: CallRequest): void {
  checkObject('call.as', as)
  switch (as.kind) {
    case 'complete':
    case 'subscribe':
      checkShape('call.as', as, INSTEAD)
      if (typeof as.run !== 'function') throw new ConfigError('call.as.run', 'must be a function')
      return
    case 'compare':
      checkTexts(as, COMPARE, ['approval', 'by'])
      if (continues !== undefined || spends !== undefined)
        throw new ConfigError('call.as', 'must not compare with continues or spends')
      return
    case 'abandoned':
      return checkTexts(as, ABANDONED, ['why'])
    default:
      throw new ConfigError('call.as.kind', 'must be one of complete, subscribe, compare, abandoned')
  }
}

function checkTexts<As extends CallAs>(as: As, shape: Shape, fields: readonly (keyof As & string)[]): void {
  checkShape('call.as', as, shape)
  const wrong = fields.find((field) => typeof as[field] !== 'string')
  if (wrong !== undefined) throw new ConfigError(`call.as.${wrong}`, 'must be a text')
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
  calledAs: true,
  nameOf: true,
  idOf: true,
  asker: true,
  as: true,
  edits: true,
})
const INSTEAD = shapeOf<CallInstead>({ kind: true, run: true }, 'field')
const COMPARE = shapeOf<CallToCompare>({ kind: true, approval: true, by: true }, 'field')
const ABANDONED = shapeOf<CallAbandoned>({ kind: true, why: true }, 'field')
const CONTINUES = shapeOf<Continuation>(
  {
    callId: true,
    round: true,
    binding: true,
    approvalId: true,
    approver: true,
    asked: true,
    edit: true,
    inner: true,
    event: true,
  },
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
 * Returns the limit, the approval, the place and the slots that a call took but did not use. Never rejects.
 *
 * Does not wait if nothing was taken, so the refusal is recorded synchronously.
 */
export function giveBack(attempt: Attempt): MaybePromise<void> {
  releaseHeld(attempt)
  const { taken, approval } = attempt
  if (taken !== undefined || approval?.spend !== undefined || approval?.before?.spend !== undefined)
    return giveBackTaken(attempt)
}

async function giveBackTaken(attempt: Attempt): Promise<void> {
  const { taken, approval, ports } = attempt
  attempt.taken = undefined
  attempt.approval = undefined
  // Each store is tried separately, so that one failing store does not keep the other from its return.
  if (taken) await tryStep(ports, () => ports.counters.giveBack(usesToTake(attempt), taken))
  for (const one of [approval, approval?.before]) {
    const spend = one?.spend
    if (one && spend !== undefined) await tryStep(ports, () => giveBackSpent(ports, one, spend))
  }
}

/**
 * Returns the uses to take for a call. A call that its host may repeat has one more use, of which there is only one. It is
 * the first, so its refusal means that the others were taken before.
 */
export function usesToTake({ uses, request, view: { caller } }: Attempt): readonly LimitUse[] {
  const { idempotencyKey, tool } = request
  if (idempotencyKey === undefined) return uses
  const named = JSON.stringify([caller.tenant ?? null, caller.user ?? null, tool ?? null, idempotencyKey])
  const windowMs = uses.reduce((longest, use) => Math.max(longest, use.windowMs), 0)
  return [{ key: `repeated|${sha256Hex(named)}`, max: 1, windowMs }, ...uses]
}

/** Returns the approval, or the use of a grant, that a call took. */
export function giveBackSpent(
  { grants, approvals }: Pick<CallPorts, 'grants' | 'approvals'>,
  { approval, grant }: ApprovalOfCall,
  spend: string,
): MaybePromise<void> {
  return grant ? grants.store.giveBack(grant.id, spend) : approvals.giveBack(approval.id, spend)
}

/** Releases the latest first. */
export function releaseHeld(attempt: Attempt): void {
  const { held } = attempt
  attempt.held = NOTHING_HELD
  for (const one of held.toReversed()) one.release()
}

/** Runs a step that must not change an answer. Passes its error or a late answer to `onFault`. */
async function tryStep(ports: CallPorts, step: () => MaybePromise<void>): Promise<void> {
  try {
    await storeInTime(ports, step())
  } catch (error) {
    ports.onFault(error)
  }
}

/** Returns the function that replaces the item's own `execute`, if any. */
export function insteadOf({ as }: CallRequest): CallInstead['run'] | undefined {
  return as && 'run' in as ? as.run : undefined
}

type StorePorts = Pick<CallPorts, 'deadlines' | 'clock' | 'storeDeadlineMs'>

/** Returns a store's answer. Rejects if it is late. */
export function storeInTime<T>(ports: StorePorts, answer: MaybePromise<T>): MaybePromise<T> {
  return isThenable(answer) ? withDeadline(answer, ports.deadlines, ports.clock, ports.storeDeadlineMs) : answer
}

/** Returns the client's names, for refusals. */
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

/** Returns `undefined` for a name that is not a string. */
export function textOf(name: unknown): string | undefined {
  return typeof name === 'string' ? name : undefined
}

/** Returns the form of an attempt that hooks receive. */
export function toHooked(attempt: Attempt, tool: Tool, cancelling: Cancelling | undefined): HookedCall {
  const { callId, input, view, onlyAsks } = attempt
  return { tool, callId, input, caller: view.caller, cancelling, onlyAsks, visibleIds: () => view.idsToday() }
}

export function hookPorts({ deadlines, clock, hookDeadlineMs, onFault }: CallPorts): HookPorts {
  return { deadlines, clock, deadlineMs: hookDeadlineMs, onFault }
}
