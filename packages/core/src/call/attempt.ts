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
import type { Budgets } from './budgets.ts'
import type { RunFacts } from '../history/facts.ts'
import type { Histories, Kept } from '../history/histories.ts'
import type {
  Admission,
  Approval,
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
import { kindOfId } from '../tools/tool-id.ts'
import type { CallContext, Progress, Tool } from '../tools/tool.ts'
import { type Hooks, type HooksInput, parseHooks, type HookedCall, type HookPorts } from './hooks.ts'
import type { LimitUseOf } from './costs.ts'
import type { LiveCalls } from './lifetime.ts'
import type { CallDone, CallFailed, CallInputRequired, CallOutcome, Continuation } from './outcome.ts'
import type { Slots } from './slots.ts'

/** What a call is for that is not made for what the item returns. Each kind has a list of checks of its own. */
export type CallAs = CallInstead | CallToCompare | CallAbandoned

/**
 * To complete an argument, or to be told of updates. `run` takes the place of the item's `execute`, under the same decision,
 * limits, hooks and records. Where a person would have to approve the call, it is refused. The input of `complete` is not
 * validated: its arguments are not complete.
 */
export interface CallInstead {
  readonly kind: 'complete' | 'subscribe'
  readonly run: (input: unknown, call: CallContext) => unknown
}

/**
 * A person who is to decide an approval reads what is there, with the rights of the caller who asked for it. The call passes the
 * same checks, but it takes no limit, leaves nothing in the history of the run, counts for no clause, and no `afterToolCall` hook is
 * called. Where a person would have to approve it, it is refused.
 */
export interface CallToCompare {
  readonly kind: 'compare'
  /** The id of the approval. */
  readonly approval: string
  /** The person's name. */
  readonly by: string
}

/** Nobody goes on with the call that this request continues. It is recorded as abandoned, whatever the policy says, and runs nothing. */
export interface CallAbandoned {
  readonly kind: 'abandoned'
  readonly why: string
}

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
   * Returns the caller as they are now, of the same user and tenant; `undefined` where they may no longer call. Read when
   * the call is decided, and again before it runs. Default: the view's caller.
   */
  readonly callerNow?: (() => Caller | undefined) | undefined
  /** The host's data for the tool beside its input, such as the framework's own execution options. */
  readonly context?: unknown
  /** The host's description of a malformed request: the call is refused and recorded, and runs nothing. */
  readonly malformed?: string | undefined
  /** The name as the client spelled it, for refusals and the audit. Default: `tool`. */
  readonly calledAs?: string | undefined
  /** Returns the name of a tool as the client knows it, for refusals. Default: its id. */
  readonly nameOf?: ((id: string) => string) | undefined
  /**
   * Returns the id of a name, for tools that take names of tools; `undefined` for an unknown name. Default: names are
   * ids.
   */
  readonly idOf?: ((name: string) => string | undefined) | undefined
  /** What else the call is for. Default: for what the item returns. */
  readonly as?: CallAs | undefined
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

/**
 * What a gate has because its rules ask for it. A call does not enter what is absent.
 *
 * One object for a gate and its forks, which changes with the rules. All but the checks stay once they are there: calls under way
 * may need them.
 */
export interface Collaborators {
  checks: Readonly<Record<CheckList, readonly Check[]>>
  /** Some rule reads what has happened in runs. */
  history?: Histories | undefined
  /** Some policy has a shadow. Notes what shadows would decide. */
  noteShadows?: ((attempt: Attempt, call?: CallFacts) => void) | undefined
  /** Some limit has a cost. */
  costs?: CostsOfCalls | undefined
}

/** The checks of each kind of call, in order; and those up to the approval, for an attempt that only asks for one. */
export type CheckList = 'call' | 'approval' | 'preview' | Exclude<CallAs['kind'], 'abandoned'>

/** What calls cost of limits that have a `cost`. */
export interface CostsOfCalls {
  /** Returns the uses with what this call costs of each, or why that is not known. */
  priced(attempt: Attempt, tool: Tool, uses: readonly LimitUseOf[]): readonly LimitUseOf[] | Stop
  /** Sets what the limits count for a call to what it has really cost. Returns what is to be recorded of it. Never rejects. */
  settle(attempt: Attempt, tool: Tool, outcome: Ran, output: unknown): MaybePromise<string | undefined>
}

export interface CallPorts {
  readonly current: Collaborators
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
  readonly needs?: 'stepUp' | 'limits' | 'slots' | 'admission' | 'lease' | 'history'
  /** Only calls that have it ask it: hooks, or a person who must approve. */
  readonly of?: 'hooks' | 'person'
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
  readonly hooks: readonly Hooks[]
  /** Of one that only asks, from when it is known to have been an attempt. */
  trace: CallTrace | undefined
  /** It goes as far as the approval, and takes and runs nothing. */
  readonly onlyAsks: boolean
  /** The frozen input, once it is known to be one. */
  input: unknown
  /** The decision of the clauses that read the input or the run. */
  withInput: Decision | undefined
  /** The clauses that hold for its input and its run. */
  hits: readonly ParsedClause[]
  /** What the shadows of policies would decide, if that is stricter. */
  would: Would | undefined
  /** Whether its clauses are counted. */
  isCounted: boolean
  /** Whether policy lets it run only with a person's word. Known once the input is decided. */
  asksPerson: boolean
  /** The approval that it would use, or has used. */
  approval: ApprovalOfCall | undefined
  /** Whether it is a later round of a call. Known once the input is. */
  continues: Continuation | undefined
  /** What it takes from the limits; and what was taken, which is given back if it does not go ahead. */
  uses: readonly LimitUseOf[]
  taken: LimitAnswer | undefined
  /** What happens in its run, where rules read that. */
  history: HistoryOfCall | undefined
  /** The slots and the place that it holds until it has run. */
  held: readonly Held[]
}

/** The approval of a call. `spend`: the name of this use, once the approval is used up. */
export interface ApprovalOfCall {
  readonly approval: Approval
  spend: string | undefined
}

/** What a call knows and leaves of its run. The same for shadows of rules, which have histories of their own. */
export interface HistoryOfCall {
  /** What is known of its run. Read before the first decision with the input. */
  facts: RunFacts | undefined
  shadowFacts: RunFacts | undefined
  /** The call in the history of its run. */
  entered: CallHistory | undefined
  shadow: CallHistory | undefined
  /** The labels of its output, once it has begun. */
  labels: readonly string[] | undefined
}

/** Something that one call has at a time. */
export interface Held {
  release(): void
}

/** How a call ended that has run. */
export type Ran = CallDone | CallFailed | CallInputRequired

export function openAttempt(view: CallView, request: CallRequest, ports: CallPorts, onlyAsks: boolean): Attempt {
  checkRequest(request)
  const { signal } = request
  const callId = typeof request.callId === 'string' ? request.callId : ports.newCallId()
  const hooks = request.hooks === undefined ? ports.hooks : [...parseHooks(request.hooks), ...ports.hooks]
  const asked = request.callerNow && callerNow(view, request)
  const decided = view.decide(request.tool, asked)
  const uses = request.as?.kind === 'compare' ? NO_USES : view.usesOf(decided)
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
    hooks,
    trace: undefined,
    onlyAsks,
    input: undefined,
    withInput: undefined,
    hits: NO_HITS,
    would: undefined,
    isCounted: false,
    asksPerson: false,
    approval: undefined,
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

const NOTHING_HELD: readonly Held[] = []

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
  const { signal, deadlineMs, run, continues, as, idempotencyKey, asker } = request
  if (continues !== undefined) checkShape('call.continues', continues, CONTINUES)
  if (run !== undefined) checkRun(run)
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
})
const INSTEAD = shapeOf<CallInstead>({ kind: true, run: true }, 'field')
const COMPARE = shapeOf<CallToCompare>({ kind: true, approval: true, by: true }, 'field')
const ABANDONED = shapeOf<CallAbandoned>({ kind: true, why: true }, 'field')
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
  releaseHeld(attempt)
  if (attempt.taken !== undefined || attempt.approval?.spend !== undefined) return giveBackTaken(attempt)
}

async function giveBackTaken(attempt: Attempt): Promise<void> {
  const { taken, approval, ports } = attempt
  const spend = approval?.spend
  attempt.taken = undefined
  attempt.approval = undefined
  // Each by itself: that one store fails must not keep the other from giving back.
  if (taken) await tryStep(ports, () => ports.counters.giveBack(usesToTake(attempt), taken))
  if (approval && spend !== undefined) await tryStep(ports, () => ports.approvals.giveBack(approval.approval.id, spend))
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

/** The latest first. */
export function releaseHeld(attempt: Attempt): void {
  const { held } = attempt
  attempt.held = NOTHING_HELD
  for (const one of held.toReversed()) one.release()
}

/** Runs a step that must not change an answer. Its fault, or a late answer, goes to `onFault`. */
async function tryStep(ports: CallPorts, step: () => MaybePromise<void>): Promise<void> {
  try {
    await storeInTime(ports, step())
  } catch (error) {
    ports.onFault(error)
  }
}

/** Returns what runs in place of the item's own `execute`; `undefined` where nothing does. */
export function insteadOf({ as }: CallRequest): CallInstead['run'] | undefined {
  return as && 'run' in as ? as.run : undefined
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
export function textOf(name: unknown): string | undefined {
  return typeof name === 'string' ? name : undefined
}

/** Returns an attempt as its hooks are asked about it. */
export function toHooked(attempt: Attempt, tool: Tool, cancelling: Cancelling | undefined): HookedCall {
  const { callId, input, view, onlyAsks } = attempt
  return { tool, callId, input, caller: view.caller, cancelling, onlyAsks, visibleIds: () => view.idsToday() }
}

export function hookPorts({ deadlines, clock, hookDeadlineMs, onFault }: CallPorts): HookPorts {
  return { deadlines, clock, deadlineMs: hookDeadlineMs, onFault }
}
