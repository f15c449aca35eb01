import { canonicalize, frozenCopy, type InputProblem } from '../util/json.ts'
import type { Caller } from '../caller.ts'
import { type Decision, strictest, type OutcomeWord } from '../decide/decision.ts'
import { catchRejection, TimeoutError } from '../util/async.ts'
import { ToolgateError } from '../errors.ts'
import { sha256Hex } from '../util/hash.ts'
import type { Approval, ApprovalBinding, LimitAnswer, MaybePromise } from '../ports.ts'
import { definitionHash } from '../tools/definition-hash.ts'
import type { ParseInput } from '../tools/standard-schema.ts'
import type { Tool } from '../tools/tool.ts'
import {
  type Attempt,
  type CallRequest,
  type CallPorts,
  giveBack,
  releaseSlots,
  type CallView,
  storeInTime,
  write,
} from './attempt.ts'
import { chain } from './chain.ts'
import { askBefore, type BeforeResult } from './hooks.ts'
import { hookPorts, toHooked } from './hooked.ts'
import { type CapUse, type HeldSlots, isHeld } from './slots.ts'
import {
  approvalNeeded,
  approvalRejected,
  approvalRevoked,
  approvalsFull,
  approvalUsed,
  auditFailed,
  callerGone,
  gateClosed,
  invalidInput,
  notExecutable,
  rateLimited,
  storeFailed,
  toolChanged,
} from './refusals.ts'
import { shownInput } from './shown-input.ts'
import { waitWhile } from './waiting.ts'

/** What came of asking whether a call may go ahead. */
export type Admission =
  | { readonly kind: 'admitted'; readonly tool: Tool }
  | { readonly kind: 'refused'; readonly decision: Decision }
  | { readonly kind: 'waiting'; readonly approval: Approval; readonly decision: Decision }
  /** Of an attempt that only asks: there is nobody to ask, or who was asked has said yes. */
  | { readonly kind: 'cleared' }

/**
 * Asks everything that must say yes before a tool runs, in this order: the decision, the input's schema, the decision
 * with that input, the hooks, the limits' first look and the approval, a free slot, and then in one go the limit and
 * the approval are taken, it is decided once more, and the `tool_call` record is written.
 *
 * Nothing here touches the tool. What fails refuses, and gives back what was taken.
 */
export function admit(attempt: Attempt): MaybePromise<Admission> {
  try {
    const asking = ask(attempt)
    return asking instanceof Promise ? asking.catch((error: unknown) => failed(attempt, error)) : asking
  } catch (error) {
    return failed(attempt, error)
  }
}

/** The one place where a failing store, validator or condition becomes an answer: failure refuses. */
async function failed(attempt: Attempt, error: unknown): Promise<Admission> {
  await giveBack(attempt)
  // The store works: it is the user who asks for too much.
  if (error instanceof ToolgateError && error.code === 'approval_too_many') return refused(approvalsFull(error))
  attempt.ports.onFault(error)
  return refused(storeFailed(error))
}

function refused(decision: Decision): Admission {
  return { kind: 'refused', decision }
}

const NOTHING_TO_ASK: Admission = { kind: 'cleared' }

/** A store that answers nonsense has not said yes. */
function isYes(answer: unknown): boolean {
  return answer === true
}

function mayGoOn(outcome: OutcomeWord): boolean {
  return outcome === 'allow' || outcome === 'ask'
}

function ask(attempt: Attempt): MaybePromise<Admission> {
  const { view, request, seen } = attempt
  const { tool } = seen
  if (tool === undefined || !mayGoOn(seen.outcome)) return refused(view.explainSeen(seen))
  if (attempt.ports.live.isClosed()) return refused(gateClosed())
  if (!tool.execute) return refused(notExecutable())
  if (request.malformed !== undefined) return refused(invalidInput({ pointer: '', message: request.malformed }))
  const copy = frozenCopy(request.input ?? {})
  if ('problem' in copy) return refused(invalidInput(copy.problem))
  const checked = checkInput(attempt, tool, copy.value)
  if (!mayGoOn(checked.outcome)) return refused(checked)
  return askHooks(attempt, tool, checked)
}

/** Answers whether a person would have to approve this call, as far as that is known before the hooks. */
export function asksPeople(view: CallView, { tool: id, input }: CallRequest, ports: CallPorts): boolean {
  const seen = view.see(id)
  if (seen.tool === undefined || seen.outcome !== 'allow') return seen.outcome === 'ask'
  try {
    const copy = frozenCopy(input ?? {})
    const parsed = 'problem' in copy ? copy : parseInput(seen.tool, copy.value, ports)
    return 'value' in parsed && view.seeInput(seen, parsed.value).outcome === 'ask'
  } catch {
    // Then it is no call for a person either: it is refused where it is made.
    return false
  }
}

/** Validates an input, makes it the attempt's, and gives what the clauses that want it say. */
function checkInput(attempt: Attempt, tool: Tool, value: unknown): Decision {
  const parsed = parseInput(tool, value, attempt.ports)
  attempt.input = 'problem' in parsed ? value : parsed.value
  return 'problem' in parsed ? invalidInput(parsed.problem) : attempt.view.seeInput(attempt.seen, parsed.value)
}

/** Gives the input as it is from here on: a schema of the tool's own may fill in defaults. */
function parseInput(tool: Tool, value: unknown, ports: CallPorts): ReturnType<ParseInput> {
  if (tool.parseInput) return tool.parseInput(value)
  const problem: InputProblem | undefined = ports.validate(tool.inputSchema, value)
  if (problem === undefined) return { value }
  catchRejection(problem, ports.onFault)
  if (typeof problem?.message !== 'string') throw new TypeError('the validator answered nonsense')
  return { problem }
}

function askHooks(attempt: Attempt, tool: Tool, withInput: Decision): MaybePromise<Admission> {
  if (attempt.hooks.length === 0) return askPeople(attempt, tool, withInput)
  const { ports, hooks } = attempt
  const asking = waitWhile(attempt, tool, (cancelling) =>
    askBefore(hooks, toHooked(attempt, tool, cancelling), hookPorts(ports)),
  )
  return chain<BeforeResult, Admission>(asking, (answer) => {
    if (!answer.ok)
      return refused(answer.decision.reasons[0]?.code === 'caller_gone' ? stoppedNow(attempt, tool) : answer.decision)
    if (!answer.replaced) return askPeople(attempt, tool, withInput)
    // What a hook put there is an input as any other.
    const checked = checkInput(attempt, tool, answer.input)
    return mayGoOn(checked.outcome) ? askPeople(attempt, tool, checked) : refused(checked)
  })
}

/** A call that nobody needs to approve goes on to its slot. */
function askPeople(attempt: Attempt, tool: Tool, withInput: Decision): MaybePromise<Admission> {
  const asks = attempt.seen.outcome === 'ask' || withInput.outcome === 'ask'
  if (asks) return admitByApproval(attempt, tool, withInput)
  return attempt.onlyAsks ? NOTHING_TO_ASK : takeSlots(attempt, tool, undefined)
}

/** Looks at the limits first: nobody should be asked to approve what could not run. */
async function admitByApproval(attempt: Attempt, tool: Tool, withInput: Decision): Promise<Admission> {
  const { view, ports, seen, input, request } = attempt
  if (seen.uses.length > 0) {
    const peeked = await storeInTime(ports, ports.counters.peek(seen.uses))
    if (!isYes(peeked.allowed)) return refused(rateLimited(seen.uses, peeked))
  }
  const run = request.run?.bindsApprovals === false ? undefined : request.run?.id
  const binding = bindingOf(view.caller, tool, input, run)
  const shown = shownInput(input, ports.redactor, ports.onFault)
  const approval = await storeInTime(
    ports,
    ports.approvals.request(binding, shown, ports.clock.wallMs(), { chat: view.caller.chat?.id }),
  )
  if (approval.status === 'rejected') return refused(approvalRejected(approval))
  if (approval.status === 'revoked') return refused(approvalRevoked(approval))
  if (approval.status === 'approved') return attempt.onlyAsks ? NOTHING_TO_ASK : takeSlots(attempt, tool, approval)
  if (approval.status !== 'pending') throw new TypeError('the store of approvals answered nonsense')
  const stopped = decideAgain(attempt, tool, { mayAsk: true })
  if (stopped) return refused(stopped)
  const byPolicy = seen.outcome === 'ask' ? [view.explainSeen(seen), withInput] : [withInput]
  ports.onApproval(approval)
  return { kind: 'waiting', approval, decision: strictest(byPolicy) }
}

function bindingOf({ tenant, user }: Caller, tool: Tool, input: unknown, run: string | undefined): ApprovalBinding {
  const inputHash = sha256Hex(canonicalize(input))
  return { tenant, user, tool: tool.id, definitionHash: definitionHash(tool), inputHash, run }
}

/** Waits for a free place, where so many may run at once: before anything is taken that others could use meanwhile. */
function takeSlots(attempt: Attempt, tool: Tool, approval: Approval | undefined): MaybePromise<Admission> {
  const { slots } = attempt.ports
  const caps = slots.capsOf(tool, attempt.view.caller)
  return caps.length === 0 ? takeLimits(attempt, tool, approval) : takeSlotsOf(caps, attempt, tool, approval)
}

function takeSlotsOf(
  caps: readonly CapUse[],
  attempt: Attempt,
  tool: Tool,
  approval: Approval | undefined,
): MaybePromise<Admission> {
  const { ports } = attempt
  const waiting = waitWhile(attempt, tool, (cancelling) => ports.slots.acquire(caps, { ...ports, cancelling }))
  return chain<HeldSlots | Decision, Admission>(waiting, (slots) => {
    if (!isHeld(slots)) return refused(slots.reasons[0]?.code === 'caller_gone' ? stoppedNow(attempt, tool) : slots)
    attempt.slots = slots
    return takeLimits(attempt, tool, approval)
  })
}

// What answers at once goes on at once, without a closure or a promise: most stores are in memory.

function takeLimits(attempt: Attempt, tool: Tool, approval: Approval | undefined): MaybePromise<Admission> {
  const { uses } = attempt.seen
  if (uses.length === 0) return takeApproval(attempt, tool, approval)
  const taking = attempt.ports.counters.take(uses)
  return taking instanceof Promise
    ? takeLimitsLater(attempt, tool, approval, taking)
    : tookLimits(attempt, tool, approval, taking)
}

async function takeLimitsLater(
  attempt: Attempt,
  tool: Tool,
  approval: Approval | undefined,
  taking: Promise<LimitAnswer>,
): Promise<Admission> {
  const { ports, seen } = attempt
  const back = (answer: LimitAnswer) => (isYes(answer.allowed) ? ports.counters.giveBack(seen.uses, answer) : undefined)
  return tookLimits(attempt, tool, approval, await takenInTime(ports, taking, back))
}

function tookLimits(
  attempt: Attempt,
  tool: Tool,
  approval: Approval | undefined,
  answer: LimitAnswer,
): MaybePromise<Admission> {
  if (!isYes(answer.allowed)) return undo(attempt, rateLimited(attempt.seen.uses, answer))
  attempt.taken = answer
  return takeApproval(attempt, tool, approval)
}

function takeApproval(attempt: Attempt, tool: Tool, approval: Approval | undefined): MaybePromise<Admission> {
  return approval ? consumeApproval(attempt, tool, approval) : recordCall(attempt, tool, undefined)
}

async function consumeApproval(attempt: Attempt, tool: Tool, { id, decidedBy }: Approval): Promise<Admission> {
  const { ports } = attempt
  const consuming = ports.approvals.consume(id, ports.clock.wallMs())
  const back = (consumed: boolean) => (isYes(consumed) ? ports.approvals.giveBack(id) : undefined)
  const consumed = consuming instanceof Promise ? await takenInTime(ports, consuming, back) : consuming
  if (!isYes(consumed)) return undo(attempt, approvalUsed())
  attempt.approvalId = id
  return recordCall(attempt, tool, `approved by ${decidedBy}`)
}

/** Gives what a store took. What it takes after that is waited for no more is given back: the call is refused by then. */
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

/** Decides once more and records the call that goes ahead; after a wait, {@link admitStill} decides again. */
function recordCall(attempt: Attempt, tool: Tool, detail: string | undefined): MaybePromise<Admission> {
  const stopped = decideAgain(attempt, tool)
  if (stopped) return undo(attempt, stopped)
  try {
    const written = write(attempt, 'tool_call', { approval_id: attempt.approvalId, detail })
    if (written === undefined) return { kind: 'admitted', tool }
    if (written instanceof Promise) return afterRecord(attempt, tool, written)
    throw new TypeError('it answered something other than nothing or a promise')
  } catch (error) {
    return undo(attempt, auditFailed(error), error)
  }
}

async function afterRecord(attempt: Attempt, tool: Tool, written: Promise<void>): Promise<Admission> {
  try {
    await written
  } catch (error) {
    return undo(attempt, auditFailed(error), error)
  }
  return { kind: 'admitted', tool }
}

/**
 * Decides once more what has been waited for. Promises on the way here take turns of their own, and what was halted,
 * denied or given up during those must not run: from here to the tool there is no other turn.
 */
export function admitStill(attempt: Attempt, admission: Admission): MaybePromise<Admission> {
  try {
    const stopped = admission.kind === 'admitted' ? decideAgain(attempt, admission.tool) : undefined
    return stopped ? undo(attempt, stopped) : admission
  } catch (error) {
    return failed(attempt, error)
  }
}

/** Tells why a wait was ended: its caller left, a person halted it, or the gate was closed. */
function stoppedNow(attempt: Attempt, tool: Tool): Decision {
  return decideAgain(attempt, tool, { mayAsk: true }) ?? callerGone()
}

/** Gives the decision that stops the call now, if there is one: the same question as at first, asked of today. */
function decideAgain(attempt: Attempt, tool: Tool, { mayAsk = false } = {}): Decision | undefined {
  const { view, request, ports, cancelling, seen, input, approvalId } = attempt
  if (ports.live.isClosed()) return gateClosed()
  if (cancelling?.aborted) return callerGone()
  if (!view.isStale(seen)) return undefined
  const now = view.see(request.tool)
  if (!mayGoOn(now.outcome)) return view.explainSeen(now)
  if (now.tool !== tool) return toolChanged()
  const withInput = view.seeInput(now, input)
  if (!mayGoOn(withInput.outcome)) return withInput
  const asks = now.outcome === 'ask' || withInput.outcome === 'ask'
  return asks && !mayAsk && approvalId === undefined ? approvalNeeded() : undefined
}

function undo(attempt: Attempt, decision: Decision, fault?: unknown): MaybePromise<Admission> {
  if (fault !== undefined) attempt.ports.onFault(fault)
  if (attempt.taken === undefined && attempt.approvalId === undefined) {
    releaseSlots(attempt)
    return refused(decision)
  }
  return chain<void, Admission>(giveBack(attempt), () => refused(decision))
}
