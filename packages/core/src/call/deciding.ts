import { type Decided, decideWithInput } from '../decide/decide.ts'
import { type Decision, mayGoOn, type Reason } from '../decide/decision.ts'
import type { ParsedClause } from '../policy/parse.ts'
import type { ParseInput } from '../tools/standard-schema.ts'
import type { Tool } from '../tools/tool.ts'
import { catchRejection, chain } from '@toolgate/values'
import { frozenCopy, type InputProblem, isObject } from '@toolgate/values/json'
import { askingReasons, coversDemand, demandOf } from './approval-demand.ts'
import {
  type Attempt,
  callerNow,
  type CallPorts,
  type CallRequest,
  type CallView,
  type CheckResult,
  hookPorts,
  insteadOf,
  type Stop,
  toHooked,
} from './attempt.ts'
import { coerceInput } from './coerce-input.ts'
import { coversAsking } from './granted.ts'
import { refreshFacts } from './history.ts'
import { askBefore } from './hooks.ts'
import { waitWhile } from './lifetime.ts'
import {
  approvalNeeded,
  callerGone,
  credentialEnded,
  gateClosed,
  invalidInput,
  notExecutable,
  replicaUnsure,
  scopeNeeded,
  toolChanged,
} from './refusals.ts'
import { continuedBy } from './rounds.ts'

export function checkDecision(attempt: Attempt): Stop | undefined {
  const { view, decided, ports } = attempt
  if (decided.outcome === 'allow' || decided.outcome === 'ask') return undefined
  ports.current.noteShadows?.(attempt)
  return { decision: view.explainDecided(decided) }
}

export function checkOpen({ ports, request, asked }: Attempt, tool: Tool): Stop | undefined {
  if (ports.live.isClosed) return { decision: gateClosed() }
  if (request.callerNow && !asked) return { decision: credentialEnded() }
  return (tool.execute ?? insteadOf(request)) ? undefined : { decision: notExecutable() }
}

export function checkLease({ ports }: Attempt): Stop | undefined {
  const lapse = ports.lease?.lapse()
  return lapse && { decision: replicaUnsure(lapse) }
}

export function checkScopes({ view, decided }: Attempt): Stop | undefined {
  const lacking = lackingScopes(view, decided)
  return lacking && { decision: scopeNeeded(lacking) }
}

/** Returns the scopes that the caller must get first, if nothing else refuses the call. */
function lackingScopes(view: CallView, decided: Decided): Reason | undefined {
  if (decided.outcome !== 'ask') return undefined
  return view.explainDecided(decided).reasons.find(({ code }) => code === 'scope_step_up')
}

export function checkInput(attempt: Attempt, tool: Tool): Stop | undefined {
  const { malformed, input } = attempt.request
  if (malformed !== undefined) return { decision: invalidInput({ pointer: '', message: malformed }) }
  const copy = frozenCopy(input ?? {})
  return 'problem' in copy ? { decision: invalidInput(copy.problem) } : validate(attempt, tool, copy.value)
}

/** Validates another input for a call, and decides the call with it. */
export function replaceInput(attempt: Attempt, tool: Tool, input: unknown): Stop | undefined {
  const copy = frozenCopy(input)
  if ('problem' in copy) return { decision: invalidInput(copy.problem) }
  return validate(attempt, tool, copy.value) ?? decideInput(attempt)
}

/** Returns why the call asks with its current input. */
export function newAskingReasons({ view, decided, withInput }: Attempt): readonly Reason[] {
  return askingReasons(view, decided, withInput)
}

/** Sets the attempt's input to a frozen copy, with defaults that the tool's own schema may fill in. */
function validate(attempt: Attempt, tool: Tool, value: unknown): Stop | undefined {
  const { ports, request } = attempt
  // A completion has only some of the arguments.
  const parsed: ParsedCall = request.as?.kind === 'complete' ? { value } : parseInput(tool, value, ports)
  if (parsed.isCoerced) attempt.isCoerced = true
  const isValid = 'value' in parsed
  attempt.input = isValid ? parsed.value : value
  attempt.forTool = isValid ? parsed.forTool : undefined
  return isValid ? undefined : { decision: invalidInput(parsed.problem) }
}

/** `isCoerced`: the value is not the given one, because the tool's schema wants others in place of some texts. */
type ParsedCall = ReturnType<ParseInput> & { readonly isCoerced?: boolean }

function parseInput(tool: Tool, value: unknown, ports: CallPorts): ParsedCall {
  if (tool.parseInput) return tool.parseInput(value)
  if (tool.inputs === 'server') return isObject(value) ? { value } : { problem: NO_OBJECT }
  const problem: InputProblem | undefined = ports.validate(tool.inputSchema, value)
  if (problem === undefined) return { value }
  catchRejection(problem, ports.onFault)
  if (typeof problem?.message !== 'string') throw new TypeError('the validator answered nonsense')
  return tool.inputs === 'coerced' ? coerce(tool, value, problem, ports) : { problem }
}

const NO_OBJECT: InputProblem = { pointer: '', message: 'must be an object' }

/** `problem`: why the schema rejects the input as it came. */
function coerce(tool: Tool, input: unknown, problem: InputProblem, ports: CallPorts): ParsedCall {
  const value = coerceInput(tool, input)
  if (value === input) return { problem }
  const left: unknown = ports.validate(tool.inputSchema, value)
  catchRejection(left, ports.onFault)
  return left === undefined ? { value, isCoerced: true } : { problem }
}

/** Returns the input on which a call of the tool would be decided, with defaults; `undefined` if the tool rejects it. */
export function acceptedInput(tool: Tool, input: unknown, ports: CallPorts): { readonly value: unknown } | undefined {
  try {
    const copy = frozenCopy(input ?? {})
    const parsed = 'problem' in copy ? copy : parseInput(tool, copy.value, ports)
    return 'value' in parsed ? parsed : undefined
  } catch {
    // The call itself is refused later.
    return undefined
  }
}

/**
 * Decides with the input. An approval is needed if this decision or the one without the input asks, if the call spends an
 * approval, or if it continues a call that a person changed.
 */
export function decideInput(attempt: Attempt): Stop | undefined {
  const { decided, request, input, history, ports } = attempt
  const hits: ParsedClause[] = []
  const decision = decideWithInput(decided, input, history?.facts, hits)
  const { outcome } = decision
  attempt.withInput = decision
  attempt.hits = hits
  attempt.asksPerson =
    outcome === 'ask' ||
    decided.outcome === 'ask' ||
    typeof request.spends === 'string' ||
    request.continues?.edit !== undefined
  ports.current.noteShadows?.(attempt, { input, facts: history?.shadowFacts, hits })
  return outcome === 'allow' || outcome === 'ask' ? undefined : { decision }
}

export function askHooks(attempt: Attempt, tool: Tool): CheckResult {
  const { ports, hooks } = attempt
  const asking = waitWhile(attempt, tool, (cancelling) =>
    askBefore(hooks, toHooked(attempt, tool, cancelling), hookPorts(ports)),
  )
  return chain(asking, (answer) => {
    if (!answer.ok) return stoppedBy(attempt, tool, answer.decision)
    return answer.replaced ? (validate(attempt, tool, answer.input) ?? decideInput(attempt)) : undefined
  })
}

/** Returns whether this call needs an approval, as far as that is known before the hooks run. */
export function asksPeople(view: CallView, { tool: id, input }: CallRequest, ports: CallPorts): boolean {
  const decided = view.decide(id)
  if (decided.tool === undefined || lackingScopes(view, decided)) return false
  if (decided.outcome !== 'allow') return decided.outcome === 'ask'
  const accepted = acceptedInput(decided.tool, input, ports)
  try {
    return accepted !== undefined && decideWithInput(decided, accepted.value).outcome === 'ask'
  } catch {
    // No approval is requested for it: the call itself is refused later.
    return false
  }
}

/**
 * A wait ends early when its caller leaves, a person halts the call, the gate closes, or the lease ends. All but the first
 * have a reason.
 */
export function stoppedBy(attempt: Attempt, tool: Tool, decision: Decision): Stop {
  const isGone = decision.reasons[0]?.code === 'caller_gone'
  if (!isGone) return { decision }
  const decided = decideNow(attempt, tool, { mayAsk: true })
  return decided ? { decision: decided } : (checkLease(attempt) ?? { decision: callerGone() })
}

/** Repeats the first check and returns the decision that stops the call now, if any. */
export function decideNow(attempt: Attempt, tool: Tool, { mayAsk = false } = {}): Decision | undefined {
  const { view, request, ports, cancelling, decided, input, history, approval } = attempt
  if (ports.live.isClosed) return gateClosed()
  if (cancelling?.aborted) return callerGone()
  const caller = request.callerNow && callerNow(view, request)
  if (request.callerNow && !caller) return credentialEnded()
  const isKnown = history === undefined || !refreshFacts(attempt)
  if (isKnown && !view.isStale(decided) && caller === attempt.asked) return undefined
  const now = view.decide(request.tool, caller)
  if (!mayGoOn(now.outcome)) return view.explainDecided(now)
  if (now.tool !== tool) return toolChanged()
  const withInput = decideWithInput(now, input, history?.facts)
  if (!mayGoOn(withInput.outcome)) return withInput
  const asks = now.outcome === 'ask' || withInput.outcome === 'ask'
  if (!asks || mayAsk) return undefined
  const asking = askingReasons(view, now, withInput)
  if (approval?.grant)
    return approval.spend !== undefined && coversAsking(approval.grant, asking) ? undefined : approvalNeeded()
  const wanted = demandOf(asking, request)
  const before = continuedBy(attempt, tool)
  const isUsed = approval?.spend !== undefined || before?.approvalId !== undefined
  return isUsed && coversDemand(approval?.approval ?? before, wanted) ? undefined : approvalNeeded()
}
