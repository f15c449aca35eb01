import { type CallFacts, type Decided, decideShadows } from '../decide/decide.ts'
import type { ParsedClause } from '../policy/parse.ts'
import {
  compareStrictness,
  type Decision,
  mayGoOn,
  type OutcomeWord,
  type Reason,
  ruleText,
  strictest,
} from '../decide/decision.ts'
import type {
  Approval,
  ApprovalAbout,
  ApprovalBinding,
  LimitAnswer,
  MaybePromise,
  NoPlace,
  Place,
} from '../ports/ports.ts'
import { type Cancelling, catchRejection, chain, sizeOf, TimeoutError } from '@toolgate/values'
import type { ParseInput } from '../tools/standard-schema.ts'
import { CostError, type LimitUseOf, withCosts } from './costs.ts'
import type { Tool } from '../tools/tool.ts'
import { frozenCopy, type InputProblem } from '@toolgate/values/json'
import {
  type Attempt,
  type CallPorts,
  type CallRequest,
  type CallView,
  type Check,
  type Stop,
  storeInTime,
  write,
  hookPorts,
  toHooked,
  callerNow,
  usesOf,
  usesToTake,
} from './attempt.ts'
import { beginCall, readHistory, refreshFacts } from './history.ts'
import { askBefore } from './hooks.ts'
import {
  approvalImpossible,
  approvalNeeded,
  approvalRejected,
  approvalRevoked,
  approvalUsed,
  auditFailed,
  callerGone,
  costInvalid,
  credentialEnded,
  gateClosed,
  invalidInput,
  noCapacity,
  notExecutable,
  rateLimited,
  replicaUnsure,
  scopeNeeded,
  toolChanged,
} from './refusals.ts'
import { type ApprovalDemand, coversDemand, demandOf, whyAsked } from './approval-demand.ts'
import { findLive, keyOf, shownInput } from './approvals.ts'
import { comparedValues } from './compared-values.ts'
import { bindingOf, continuedBy } from './rounds.ts'
import { isHeld } from './slots.ts'
import { waitWhile } from './lifetime.ts'
import { trailOf } from './trail.ts'

/** What may come to be against a call while it waits. */
const MEANWHILE: Check['refusesWith'] = [
  'approval_required',
  'tool_changed',
  'caller_gone',
  'credential_ended',
  'gate_closed',
  'rate_limited',
]

/**
 * Everything that must say yes before a tool runs, in order. The first that stops the call ends it. The table in
 * docs/guide/the-call.md has a row for each.
 *
 * No check touches the tool. A slot, limit or approval is given back if a later check stops the call.
 */
export const CHECKS: readonly Check[] = [
  {
    name: 'decide',
    asks: 'what do catalog, policy, scopes, visibility, step, availability, locks, pins and halts say, as the view was made and as things are today? The stricter holds',
    refusesWith: [],
    inPreview: true,
    run: checkDecision,
  },
  {
    name: 'open',
    asks: 'is the gate open, is the caller’s credential still valid, and has the tool an `execute`?',
    refusesWith: ['gate_closed', 'credential_ended', 'tool_not_executable'],
    inPreview: true,
    run: checkOpen,
  },
  {
    name: 'lease',
    asks: 'does this replica know what the others have halted, denied and revoked?',
    refusesWith: ['replica_unsure'],
    needs: 'lease',
    inPreview: true,
    run: checkLease,
  },
  {
    name: 'step up',
    asks: 'does the caller hold every required scope? A tool is listed without those of the gate’s `stepUp`',
    refusesWith: ['scope_needed'],
    inPreview: true,
    run: checkScopes,
  },
  {
    name: 'validate',
    asks: 'does the input fit the tool’s JSON Schema? A frozen copy goes on from here',
    refusesWith: ['input_invalid'],
    inPreview: true,
    run: checkInput,
  },
  {
    name: 'history',
    asks: 'what has happened in the run? Where that cannot be read, the next check gets the strictest answer',
    refusesWith: ['history_full'],
    needs: 'history',
    inPreview: true,
    run: readHistory,
  },
  {
    name: 'decide with the input',
    asks: 'what do the clauses about the input and the run say?',
    refusesWith: ['input_denied', 'history_unknown', 'policy_error'],
    inPreview: true,
    run: decideInput,
  },
  {
    name: 'beforeToolCall',
    asks: 'do the hooks of the call, of the forks, and of the gate agree? An input that one of them replaces is validated and decided again',
    refusesWith: ['hook_denied', 'hook_error'],
    run: askHooks,
  },
  {
    name: 'peek at the limits',
    asks: 'would the limits allow it? Only asked where an approval is needed: nobody should approve what cannot run',
    refusesWith: ['rate_limited', 'cost_invalid'],
    needs: 'limits',
    run: peekLimits,
  },
  {
    name: 'approval',
    asks: 'has a person approved this very call? If not, it ends `waiting`. A later round of a call asks no more',
    refusesWith: ['approval_rejected', 'approval_revoked', 'approvals_full'],
    run: askPeople,
  },
  {
    name: 'slot',
    asks: 'may another one run now? If not, it waits its turn',
    refusesWith: ['too_busy'],
    needs: 'slots',
    run: takeSlots,
  },
  {
    name: 'admission',
    asks: 'is there a place for it, such as an instance of the server for this user?',
    refusesWith: ['no_capacity'],
    needs: 'admission',
    run: takePlace,
  },
  {
    name: 'take the limits',
    asks: 'do all the limits allow it now? The first round of a call takes them for all its rounds',
    refusesWith: ['rate_limited', 'cost_invalid'],
    needs: 'limits',
    run: takeLimits,
  },
  {
    name: 'take the approval',
    asks: 'is the approval still valid? It is used up by this call',
    refusesWith: ['approval_used'],
    run: takeApproval,
  },
  {
    name: 'decide again',
    asks: 'does the decision still hold after all that was waited for?',
    refusesWith: MEANWHILE,
    run: checkStillAllowed,
  },
  {
    name: 'record',
    asks: 'can it be recorded that the call goes ahead?',
    refusesWith: ['audit_failed'],
    run: recordCall,
  },
  {
    name: 'the last look',
    asks: 'does it hold after the record was waited for, too?',
    refusesWith: MEANWHILE,
    run: checkStillAllowed,
  },
  {
    name: 'enter the call',
    asks: 'does it hold on what has begun up to now? It begins: its labels rise, however it ends',
    refusesWith: [...MEANWHILE, 'history_full', 'store_failed'],
    needs: 'history',
    run: enterCall,
  },
  {
    name: 'the lease, at last',
    asks: 'does it still know that? Nothing happens between this and `execute`',
    refusesWith: ['replica_unsure'],
    needs: 'lease',
    run: checkLease,
  },
]

/** Returns the checks of a gate, without those that need what it does not have. */
export function checksOf(has: Readonly<Record<NonNullable<Check['needs']>, boolean>>): CallPorts['checks'] {
  const call = CHECKS.filter(({ needs }) => needs === undefined || has[needs])
  return { call, approval: call.slice(0, call.findIndex(({ run }) => run === askPeople) + 1) }
}

/** Only `true` counts, as a store may answer nonsense. */
function isYes(answer: unknown): boolean {
  return answer === true
}

function checkDecision(attempt: Attempt): Stop | undefined {
  const { view, decided } = attempt
  if (mayGoOn(decided.outcome)) return undefined
  noteShadows(attempt)
  return { decision: view.explainDecided(decided) }
}

/** Notes what the shadows of policies would decide, which stops nothing. */
function noteShadows(attempt: Attempt, call?: CallFacts): void {
  const { decided, withInput, ports } = attempt
  try {
    const { outcome = 'allow', reasons = [] } = decideShadows(decided, call) ?? {}
    const [first] = reasons
    const isStricter = [decided, withInput].every((by) => !by || compareStrictness(outcome, by.outcome) < 0)
    const isShadow = outcome === 'ask' || outcome === 'deny'
    attempt.would =
      isShadow && isStricter
        ? { outcome: isUnknown(reasons, outcome) ? 'unknown' : outcome, clause: first && ruleText(first) }
        : undefined
  } catch (error) {
    ports.onFault(error)
  }
}

/** Whether nothing but what is unknown of the run speaks for an outcome. */
function isUnknown(reasons: readonly Reason[], outcome: OutcomeWord): boolean {
  return reasons.every((one) => one.outcome !== outcome || one.code === 'history_unknown')
}

function checkOpen({ ports, request, asked }: Attempt, tool: Tool): Stop | undefined {
  if (ports.live.isClosed) return { decision: gateClosed() }
  if (request.callerNow && !asked) return { decision: credentialEnded() }
  return (request.instead ?? tool.execute) ? undefined : { decision: notExecutable() }
}

function checkLease({ ports }: Attempt): Stop | undefined {
  const lapse = ports.lease?.lapse()
  return lapse && { decision: replicaUnsure(lapse) }
}

function checkInput(attempt: Attempt, tool: Tool): Stop | undefined {
  const { malformed, input } = attempt.request
  if (malformed !== undefined) return { decision: invalidInput({ pointer: '', message: malformed }) }
  const copy = frozenCopy(input ?? {})
  return 'problem' in copy ? { decision: invalidInput(copy.problem) } : validate(attempt, tool, copy.value)
}

/** Makes a frozen input the attempt's, with the defaults that a schema of the tool's own may fill in. */
function validate(attempt: Attempt, tool: Tool, value: unknown): Stop | undefined {
  const { ports, request } = attempt
  // A completion has only some of the arguments.
  const parsed = request.purpose === 'complete' ? { value } : parseInput(tool, value, ports)
  attempt.input = 'problem' in parsed ? value : parsed.value
  return 'problem' in parsed ? { decision: invalidInput(parsed.problem) } : undefined
}

function parseInput(tool: Tool, value: unknown, ports: CallPorts): ReturnType<ParseInput> {
  if (tool.parseInput) return tool.parseInput(value)
  const problem: InputProblem | undefined = ports.validate(tool.inputSchema, value)
  if (problem === undefined) return { value }
  catchRejection(problem, ports.onFault)
  if (typeof problem?.message !== 'string') throw new TypeError('the validator answered nonsense')
  return { problem }
}

/** Returns an input as a call of a tool would be decided on it, with defaults; `undefined` if the tool does not take it. */
export function acceptedInput(tool: Tool, input: unknown, ports: CallPorts): { readonly value: unknown } | undefined {
  try {
    const copy = frozenCopy(input ?? {})
    const parsed = 'problem' in copy ? copy : parseInput(tool, copy.value, ports)
    return 'value' in parsed ? parsed : undefined
  } catch {
    // The call is refused where it is made.
    return undefined
  }
}

function decideInput(attempt: Attempt): Stop | undefined {
  const { view, decided, input, facts } = attempt
  const hits: ParsedClause[] = []
  const decision = view.decideInput(decided, input, facts, hits)
  attempt.withInput = decision
  attempt.hits = hits
  noteShadows(attempt, { input, facts: attempt.shadowFacts, hits })
  return mayGoOn(decision.outcome) ? undefined : { decision }
}

function askHooks(attempt: Attempt, tool: Tool): MaybePromise<Stop | undefined> {
  const { ports, hooks } = attempt
  if (hooks.length === 0) return undefined
  const asking = waitWhile(attempt, tool, (cancelling) =>
    askBefore(hooks, toHooked(attempt, tool, cancelling), hookPorts(ports)),
  )
  return chain(asking, (answer) => {
    if (!answer.ok) return stoppedBy(attempt, tool, answer.decision)
    return answer.replaced ? (validate(attempt, tool, answer.input) ?? decideInput(attempt)) : undefined
  })
}

function checkScopes({ view, decided }: Attempt): Stop | undefined {
  const lacking = lackingScopes(view, decided)
  return lacking && { decision: scopeNeeded(lacking) }
}

/** Returns why the caller would have to get scopes first, if nothing else is against the call. */
function lackingScopes(view: CallView, decided: Decided): Reason | undefined {
  if (decided.outcome !== 'ask') return undefined
  return view.explainDecided(decided).reasons.find(({ code }) => code === 'scope_step_up')
}

/** Returns whether a person would have to approve this call, as far as that is known before the hooks. */
export function asksPeople(view: CallView, { tool: id, input }: CallRequest, ports: CallPorts): boolean {
  const decided = view.decide(id)
  if (decided.tool === undefined || lackingScopes(view, decided)) return false
  if (decided.outcome !== 'allow') return decided.outcome === 'ask'
  const accepted = acceptedInput(decided.tool, input, ports)
  try {
    return accepted !== undefined && view.decideInput(decided, accepted.value).outcome === 'ask'
  } catch {
    // Nobody is asked about it: it is refused where it is made.
    return false
  }
}

/** Whether policy lets the call run only with a person's word. */
export function asksForPerson({ decided, withInput, request }: Attempt): boolean {
  return typeof request.spends === 'string' || decided.outcome === 'ask' || withInput?.outcome === 'ask'
}

function needsApproval(attempt: Attempt, tool: Tool): boolean {
  if (!asksForPerson(attempt)) return false
  const before = continuedBy(attempt, tool)
  // An earlier round's approval is as good as the rule that it was given under.
  return before?.approvalId === undefined || !coversDemand(before, wantedBy(attempt))
}

/** Returns what the clauses that ask demand, and what they are. */
function wantedBy({ view, decided, withInput }: Attempt): ApprovalDemand {
  return demandOf(askingReasons(view, decided, withInput))
}

function peekLimits(attempt: Attempt, tool: Tool): MaybePromise<Stop | undefined> {
  const takes = attempt.uses.length > 0 && continuedBy(attempt, tool) === undefined
  return takes && needsApproval(attempt, tool) ? peek(attempt, tool) : undefined
}

/** Asks the limits, and takes nothing. */
export async function peek(attempt: Attempt, tool: Tool): Promise<Stop | undefined> {
  const { ports } = attempt
  const uses = costedUses(attempt, tool, attempt.uses)
  if ('decision' in uses) return uses
  const peeked = await storeInTime(ports, ports.counters.peek(uses))
  return isYes(peeked.allowed) ? undefined : { decision: rateLimited(uses, peeked) }
}

function askPeople(attempt: Attempt, tool: Tool): MaybePromise<Stop | undefined> {
  if (!needsApproval(attempt, tool)) return undefined
  const { purpose, spends, comparing } = attempt.request
  if (comparing) return { decision: approvalImpossible('compare') }
  if (purpose !== undefined) return { decision: approvalImpossible(purpose) }
  return typeof spends === 'string' ? findApproval(attempt, tool, spends) : requestApproval(attempt, tool)
}

/** Finds the one approval that the call may spend. Nobody is asked for another. */
async function findApproval(attempt: Attempt, tool: Tool, id: string): Promise<Stop | undefined> {
  const { ports } = attempt
  const approval = await storeInTime(ports, ports.approvals.get(id, ports.clock.wallMs()))
  if (!approval || keyOf(bindingOf(attempt, tool, approval)) !== keyOf(approval)) return { decision: approvalUsed() }
  if (approval.status === 'rejected') return { decision: approvalRejected(approval) }
  if (approval.status === 'revoked') return { decision: approvalRevoked(approval) }
  if (approval.status !== 'approved') return { decision: approvalUsed() }
  if (!coversDemand(approval, wantedBy(attempt))) return { decision: approvalNeeded() }
  attempt.approval = approval
  return undefined
}

async function requestApproval(attempt: Attempt, tool: Tool): Promise<Stop | undefined> {
  const { view, ports, decided, withInput } = attempt
  const asking = askingReasons(view, decided, withInput)
  const binding = bindingOf(attempt, tool, demandOf(asking))
  await turnOf(attempt)
  const shown = shownOnce(attempt)
  const why = asking.map((one) => whyAsked(one, comparedBy(attempt, one, shown))).join('; ')
  await turnOf(attempt)
  const spends = attempt.request.spends === true
  const asked = () => chain(trailOf(attempt, tool), (trail) => ask(attempt, binding, shown, { why, trail }))
  const approval = await storeInTime(ports, spends ? findLive(ports, binding) : asked())
  if (spends && !approval) return { decision: approvalUsed() }
  switch (approval?.status) {
    case 'approved':
      attempt.approval = approval
      return undefined
    case 'rejected':
      return { decision: approvalRejected(approval) }
    case 'revoked':
      return { decision: approvalRevoked(approval) }
    case 'pending':
      break
    default:
      throw new TypeError('the store of approvals answered nonsense')
  }
  const stopped = decideNow(attempt, tool, { mayAsk: true })
  if (stopped) return { decision: stopped }
  ports.onApproval(approval)
  const byView = decided.outcome === 'ask' ? [view.explainDecided(decided)] : []
  return { decision: strictest(withInput ? [...byView, withInput] : byView), approval }
}

/** Hashing, masking and keeping an input of more characters take milliseconds each. */
const LARGE_CHARS = 64 * 1024

/** Lets other callers go first, where the input is large. */
async function turnOf({ input }: Attempt): Promise<void> {
  if (sizeOf(input, LARGE_CHARS) > LARGE_CHARS) await new Promise((resolve) => setImmediate(resolve))
}

/** Returns a function that masks the input at its first call. */
function shownOnce({ input, ports }: Attempt): () => unknown {
  let shown: { readonly input: unknown } | undefined
  return () => (shown ??= { input: shownInput(input, ports.redactor, ports.onFault) }).input
}

/** Returns what the clause of a reason compares of the input, as far as people may see it. */
function comparedBy({ hits }: Attempt, { path }: Reason, shown: () => unknown): string {
  const clause = hits?.find((one) => one.path === path)
  return clause?.input ? comparedValues(clause.input, shown()) : ''
}

async function ask(
  attempt: Attempt,
  binding: ApprovalBinding,
  shown: () => unknown,
  about: Pick<ApprovalAbout, 'why' | 'trail'>,
): Promise<Approval> {
  const { view, request, ports } = attempt
  const input = shown()
  await turnOf(attempt)
  return ports.approvals.request(binding, input, ports.clock.wallMs(), {
    chat: view.caller.chat?.id,
    asker: askerOf(view, request),
    ...about,
  })
}

function askerOf({ app, caller: { session } }: CallView, { asker: id }: CallRequest): ApprovalAbout['asker'] {
  return id === undefined
    ? undefined
    : { id, ...(app !== undefined && { app }), ...(session !== undefined && { session }) }
}

/** Returns the reasons that ask for a person. */
function askingReasons(view: CallView, decided: Decided, withInput: Decision | undefined): readonly Reason[] {
  const byView = decided.outcome === 'ask' ? view.explainDecided(decided).reasons : []
  return [...byView, ...(withInput?.reasons ?? [])].filter(({ outcome }) => outcome === 'ask')
}

/** Waits for a free slot before it takes anything that others could use meanwhile. */
function takeSlots(attempt: Attempt, tool: Tool): MaybePromise<Stop | undefined> {
  const { slots } = attempt.ports
  if (!slots) return undefined
  const caps = slots.capsOf(tool, attempt.view.caller)
  if (caps.length === 0) return undefined
  const held = waitWhile(attempt, tool, (cancelling) => slots.acquire(caps, { ...attempt.ports, cancelling }))
  return chain(held, (answer) => {
    if (!isHeld(answer)) return stoppedBy(attempt, tool, answer)
    attempt.slots = answer
    return undefined
  })
}

function takePlace(attempt: Attempt, tool: Tool): MaybePromise<Stop | undefined> {
  const answer = attempt.ports.admission?.admit(tool, attempt.view.caller)
  if (!(answer instanceof Promise)) return tookPlace(attempt, answer)
  const waited = waitWhile(attempt, tool, (cancelling) => placeWhileWanted(answer, cancelling))
  return chain(waited, (taken) =>
    taken === 'gone' ? stoppedBy(attempt, tool, callerGone()) : tookPlace(attempt, taken),
  )
}

function tookPlace(attempt: Attempt, answer: Place | NoPlace | undefined): Stop | undefined {
  if (answer === undefined) return undefined
  if (!('release' in answer)) return { decision: noCapacity(answer) }
  attempt.place = answer
  return undefined
}

/** Returns `gone` where the wait ends first. A place that comes after that is released. */
async function placeWhileWanted(
  coming: Promise<Place | NoPlace | undefined>,
  cancelling: Cancelling,
): Promise<Place | NoPlace | 'gone' | undefined> {
  const { promise: left, resolve } = Promise.withResolvers<'gone'>()
  const unwatch = cancelling.onAbort(() => resolve('gone'))
  if (cancelling.aborted) resolve('gone')
  try {
    const first = await Promise.race([coming, left])
    if (first === 'gone')
      coming.then(
        (late) => late && 'release' in late && late.release(),
        () => undefined,
      )
    return first
  } finally {
    unwatch()
  }
}

function takeLimits(attempt: Attempt, tool: Tool): MaybePromise<Stop | undefined> {
  const { ports } = attempt
  const now = usesNow(attempt)
  if (now.length === 0 || continuedBy(attempt, tool)) {
    attempt.uses = now
    return undefined
  }
  const costed = costedUses(attempt, tool, now)
  if ('decision' in costed) return costed
  attempt.uses = costed
  const { counters, budgets } = ports
  budgets.note(costed)
  const uses = usesToTake(attempt)
  const taking = counters.take(uses)
  if (!(taking instanceof Promise)) return tookLimits(attempt, taking)
  const back = (answer: LimitAnswer) => (isYes(answer.allowed) ? counters.giveBack(uses, answer) : undefined)
  return takenInTime(ports, taking, back).then((answer) => tookLimits(attempt, answer))
}

/** Returns the uses with what this call costs of each, or why that is not known. */
function costedUses({ view: { caller }, input }: Attempt, tool: Tool, uses: readonly LimitUseOf[]) {
  try {
    return withCosts(uses, { caller, tool, input })
  } catch (error) {
    if (error instanceof CostError) return { decision: costInvalid(error) }
    throw error
  }
}

function tookLimits(attempt: Attempt, answer: LimitAnswer): Stop | undefined {
  if (isYes(answer.allowed)) {
    attempt.taken = answer
    return undefined
  }
  if (attempt.request.idempotencyKey === undefined) return { decision: rateLimited(attempt.uses, answer) }
  // The first use is that of the key: the call was counted when it was made before.
  if (answer.refused === 0) return undefined
  return { decision: rateLimited(attempt.uses, { ...answer, refused: answer.refused - 1 }) }
}

function takeApproval(attempt: Attempt): MaybePromise<Stop | undefined> {
  return attempt.approval ? consume(attempt, attempt.approval) : undefined
}

async function consume(attempt: Attempt, { id }: Approval): Promise<Stop | undefined> {
  const { ports } = attempt
  const spend = ports.newCallId()
  const consuming = ports.approvals.consume(id, ports.clock.wallMs(), spend)
  const back = (consumed: boolean) => (isYes(consumed) ? ports.approvals.giveBack(id, spend) : undefined)
  const consumed = consuming instanceof Promise ? await takenInTime(ports, consuming, back) : consuming
  if (!isYes(consumed)) return { decision: approvalUsed() }
  attempt.approvalId = id
  attempt.spend = spend
  return undefined
}

/** Returns the store's answer. A take that ends after its deadline is given back, as the call is refused by then. */
async function takenInTime<T>(
  ports: CallPorts,
  taking: Promise<T>,
  back: (answer: T) => MaybePromise<void>,
): Promise<T> {
  try {
    return await storeInTime(ports, taking)
  } catch (error) {
    if (error instanceof TimeoutError) void taking.then(back).catch(ports.onFault)
    throw error
  }
}

/** Other calls, halts and changes of the rules happen while a call waits for an answer. */
function checkStillAllowed(attempt: Attempt, tool: Tool): MaybePromise<Stop | undefined> {
  const decision = decideNow(attempt, tool)
  if (decision) return { decision }
  const uses = usesNow(attempt)
  if (isSameUses(uses, attempt.uses) || continuedBy(attempt, tool)) return undefined
  return takeOtherLimits(attempt, tool, uses)
}

/** Returns the uses of the limits as they are now: the same list while nothing changes. */
function usesNow({ view, request, decided, uses }: Attempt): readonly LimitUseOf[] {
  if (!view.isStale(decided)) return uses
  const now = view.decide(request.tool, callerNow(view, request))
  return now.tool === decided.tool ? usesOf(view, now, request) : uses
}

function isSameUses(a: readonly LimitUseOf[], b: readonly LimitUseOf[]): boolean {
  if (a === b) return true
  return a.length === b.length && a.every(({ key, max }, i) => key === b[i]?.key && max === b[i].max)
}

/** The limits were replaced after the call took from them: it takes from the new ones, and is looked at once more. */
async function takeOtherLimits(attempt: Attempt, tool: Tool, uses: readonly LimitUseOf[]): Promise<Stop | undefined> {
  const { ports, taken } = attempt
  attempt.taken = undefined
  if (taken) await storeInTime(ports, ports.counters.giveBack(usesToTake(attempt), taken))
  attempt.uses = uses
  const stop = uses.length > 0 ? await takeLimits(attempt, tool) : undefined
  return stop ?? checkStillAllowed(attempt, tool)
}

/** Where the store had to be waited for, it is looked at once more. */
function enterCall(attempt: Attempt, tool: Tool): MaybePromise<Stop | undefined> {
  const begun = beginCall(attempt, tool, () => {
    const decision = decideNow(attempt, tool)
    return decision && { decision }
  })
  return begun instanceof Promise ? begun.then((stop) => stop ?? checkStillAllowed(attempt, tool)) : begun
}

function recordCall(attempt: Attempt): MaybePromise<Stop | undefined> {
  const { approvalId, approval, ports } = attempt
  try {
    const detail = approval && `approved by ${approval.decidedBy}`
    const used = approvalId ?? attempt.continues?.approvalId
    const written = write(attempt, 'tool_call', { approval_id: used, detail })
    if (written === undefined) return undefined
    if (!(written instanceof Promise)) throw new TypeError('it answered something other than nothing or a promise')
    return written.then(
      () => undefined,
      (error: unknown) => recordFailed(error, ports),
    )
  } catch (error) {
    return recordFailed(error, ports)
  }
}

function recordFailed(error: unknown, { onFault }: CallPorts): Stop {
  onFault(error)
  return { decision: auditFailed(error) }
}

/** A wait ends early when its caller leaves, a person halts the call, the gate closes, or the lease ends. All but the first say why. */
function stoppedBy(attempt: Attempt, tool: Tool, decision: Decision): Stop {
  const isGone = decision.reasons[0]?.code === 'caller_gone'
  if (!isGone) return { decision }
  const decided = decideNow(attempt, tool, { mayAsk: true })
  return decided ? { decision: decided } : (checkLease(attempt) ?? { decision: callerGone() })
}

/** Returns the decision that stops the call now, if there is one: the first question, asked again. */
function decideNow(attempt: Attempt, tool: Tool, { mayAsk = false } = {}): Decision | undefined {
  const { view, request, ports, cancelling, decided, input, approvalId } = attempt
  if (ports.live.isClosed) return gateClosed()
  if (cancelling?.aborted) return callerGone()
  const caller = callerNow(view, request)
  if (request.callerNow && !caller) return credentialEnded()
  const isKnown = attempt.history === undefined || !refreshFacts(attempt)
  if (isKnown && !view.isStale(decided) && caller === attempt.asked) return undefined
  const now = view.decide(request.tool, caller)
  if (!mayGoOn(now.outcome)) return view.explainDecided(now)
  if (now.tool !== tool) return toolChanged()
  const withInput = view.decideInput(now, input, attempt.facts)
  if (!mayGoOn(withInput.outcome)) return withInput
  const asks = now.outcome === 'ask' || withInput.outcome === 'ask'
  if (!asks || mayAsk) return undefined
  const wanted = demandOf(askingReasons(view, now, withInput))
  const before = continuedBy(attempt, tool)
  const used = approvalId ?? before?.approvalId
  const given = attempt.approval ?? before
  return used === undefined || !coversDemand(given, wanted) ? approvalNeeded() : undefined
}
