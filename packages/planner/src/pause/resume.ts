import { type Caller, ConfigError, defineCaller, type Gate, ToolgateError, type View } from '@toolgate/core'
import { checkShape } from '@toolgate/values'
import { toJsonText } from '@toolgate/values/json'
import { findInputProblem } from '../ask-for-input.ts'
import { checkBudgets } from '../budgets.ts'
import { type Answers, REJECTION, RESUME, type ResumeOptions } from '../options.ts'
import type { PlannerParts } from '../parts.ts'
import type { SegmentRequest, SegmentStart } from '../run/segment.ts'
import { createStopping } from '../run/turn.ts'
import { checkSubAgents } from '../sub-agent.ts'
import {
  descendsFrom,
  identityOf,
  type OpenCall,
  openCallsOf,
  type PauseState,
  type PendingState,
  toolsOfPause,
} from './state.ts'

const NONE: readonly unknown[] = []

/**
 * Returns the error of a refused resume. Its text is always the same, so that it does not help somebody who guesses
 * tokens.
 */
function refused(): ToolgateError {
  return new ToolgateError('resume_refused', 'This run cannot be resumed so.')
}

/** Opens the segment of a resumed run. @throws {ToolgateError} `resume_refused`, `caller_invalid` */
export function openResumed(
  parts: PlannerParts,
  token: string,
  options: ResumeOptions,
  onStream: SegmentRequest['onStream'],
): SegmentRequest {
  checkShape('resume', options, RESUME)
  const { gate, pauses, tokens, clock, deployment, lineage } = parts
  const caller = defineCaller(options.caller)
  checkBudgets(options.budgets)
  checkAnswers(options)
  // `by: null`, as from a request without a login, must not mean the caller.
  const by = options.by === undefined ? caller : defineCaller(options.by)
  const identity = identityOf(caller)
  const readToken = () => {
    const claims = tokens.open(token, { identity, audience: deployment }, clock.wallMs())
    if (!claims) throw refused()
    return claims.pause
  }
  const checked = (pause: PauseState | undefined): PauseState => {
    if (pause?.identity !== identity || !descendsFrom(lineage, pause.lineage)) throw refused()
    return pause
  }
  const id = readToken()
  return {
    caller,
    options,
    stopping: createStopping(options.signal),
    onStream,
    async check() {
      const before = checked(await pauses.get(id))
      // Answers are checked before the pause is taken, so that a wrong answer can be corrected.
      await readAnswers(openCallsOf(before.level), options, gate)
      return {
        runId: before.runId,
        app: before.app,
        // The history has the user's texts and the labels that earlier results have raised.
        words: { earlierResults: NONE, resumed: true },
        before,
        async begin() {
          // The pause is checked again, because the turn may have come much later.
          const { level, tools, app } = checked(await pauses.get(readToken()))
          const view = await gate.view(caller, { app, visibility: toolsOfPause(tools, options.visibility) })
          checkSubAgents(view)
          await decide(await readAnswers(openCallsOf(level), options, gate), by, gate)
          // The pause is taken last. Its token stays valid if the run cannot be resumed, or this person may not decide
          // its approvals.
          return toStart(checked(await pauses.take(id)), view, options, gate)
        },
      }
    },
  }
}

function toStart(
  { level: conversation, tools, policyRevision }: PauseState,
  view: View,
  options: ResumeOptions,
  gate: Gate,
): SegmentStart {
  return {
    view,
    conversation: options.context === undefined ? conversation : { ...conversation, context: options.context },
    answers: readInputs(openCallsOf(conversation), options),
    resumed: {
      hidden: tools.flatMap(([id]) => (view.has(id) ? [] : [id])),
      policyChanged: policyRevision !== gate.policyRevision,
    },
  }
}

/** A person's answer to one call. */
interface CallVerdict {
  readonly approvalId: string
  readonly decision: 'approve' | 'reject'
  readonly reason: string | undefined
}

/**
 * Reads the answers to the waiting calls, and returns the verdicts that must still be applied.
 *
 * All calls must be answered: each input with a value that its schema accepts, each approval here or earlier in the
 * store. An answer to a call that does not wait is an error.
 *
 * @throws {ToolgateError} `resume_unanswered`, which names the call
 */
async function readAnswers(open: readonly OpenCall[], answers: Answers, gate: Gate): Promise<readonly CallVerdict[]> {
  readInputs(open, answers)
  const verdictOf = readVerdicts(open, answers)
  const verdicts: CallVerdict[] = []
  for (const { pending } of open) {
    if (pending.kind !== 'approval') continue
    const { id, approvalId } = pending
    const approval = await gate.approvals.get(approvalId)
    const verdict = verdictOf(id)
    // If an approval has ended, the call requests a new one when it is made: the run then waits again.
    if (approval?.status === 'pending' && !verdict)
      throw unanswered(id, 'waits for an approval: approve or reject it, here or in gate.approvals')
    if (approval?.status === 'pending' && verdict) verdicts.push({ approvalId, ...verdict })
  }
  return verdicts
}

/**
 * Decides the approvals, with the gate's own permissions. An approval that another person has decided meanwhile does
 * not change.
 *
 * @throws {ToolgateError} `approval_forbidden`
 */
async function decide(verdicts: readonly CallVerdict[], by: Caller, gate: Gate): Promise<void> {
  for (const { approvalId, decision, reason } of verdicts) {
    try {
      await gate.approvals.decide(by, approvalId, { decision, reason })
    } catch (error) {
      const isOver = error instanceof ToolgateError && OVER.has(error.code)
      if (!isOver) throw error
    }
  }
}

const OVER: ReadonlySet<string> = new Set(['approval_decided', 'approval_unknown'])

/**
 * Reads the inputs that people give.
 *
 * @throws {ToolgateError} `resume_unanswered` for a missing, superfluous or invalid input
 */
function readInputs(open: readonly OpenCall[], { input, inputs }: Answers): ReadonlyMap<PendingState, unknown> {
  const given = new Map(Object.entries(inputs ?? {}))
  const asking = open.flatMap(({ pending, stored }) => (pending.kind === 'input' ? [{ pending, stored }] : []))
  if (input !== undefined) {
    const [only] = asking
    if (!only || asking.length > 1)
      throw unanswered('input', `is for one call, and ${asking.length} wait for an input: pass \`inputs\` by call id`)
    given.set(only.pending.id, input)
  }
  const settled = new Map<PendingState, unknown>()
  for (const { pending, stored } of asking) {
    if (!given.has(pending.id)) throw unanswered(pending.id, 'waits for an input')
    const value = given.get(pending.id)
    const problem = findInputProblem(pending.schema, value)
    if (problem) throw unanswered(pending.id, `cannot take this input: ${problem.pointer || 'it'} ${problem.message}`)
    if (!hasJson(value)) throw unanswered(pending.id, 'cannot take this input: it is not JSON')
    settled.set(stored, value)
    given.delete(pending.id)
  }
  for (const id of given.keys()) throw unanswered(id, 'does not wait for an input')
  return settled
}

/** Whether a value can be sent to a model. */
function hasJson(value: unknown): boolean {
  try {
    return toJsonText(value) !== undefined
  } catch {
    return false
  }
}

type VerdictOf = (id: string) => Omit<CallVerdict, 'approvalId'> | undefined

function readVerdicts(open: readonly OpenCall[], { approve, reject }: Answers): VerdictOf {
  const waiting = open.flatMap(({ pending }) => (pending.kind === 'approval' ? [pending.id] : []))
  const approved = chosen(waiting, approve === true ? waiting : approve)
  const { calls, reason } = toRejection(reject)
  const rejected = chosen(waiting, reject === undefined || reject === false ? [] : (calls ?? waiting))
  const both = approved.find((id) => rejected.includes(id))
  if (both !== undefined) throw unanswered(both, 'is approved and rejected')
  return (id) => {
    if (rejected.includes(id)) return { decision: 'reject', reason }
    return approved.includes(id) ? { decision: 'approve', reason: undefined } : undefined
  }
}

/**
 * Checks a person's answers, which may come unchanged from a request.
 *
 * @throws {ConfigError} for an invalid answer
 */
function checkAnswers({ approve, reject, inputs }: Answers): void {
  if (approve !== undefined && typeof approve !== 'boolean' && !isIds(approve))
    throw new ConfigError('approve', 'must be true, false, or a list of the ids of calls')
  if (inputs !== undefined && !isObject(inputs))
    throw new ConfigError('inputs', 'must be an object, by the ids of calls')
  if (reject === undefined || typeof reject === 'boolean' || typeof reject === 'string') return
  if (!isObject(reject)) throw new ConfigError('reject', 'must be true, false, a reason, or { calls, reason }')
  checkShape('reject', reject, REJECTION)
  const { calls, reason } = reject
  if (calls !== undefined && !isIds(calls)) throw new ConfigError('reject.calls', 'must be a list of the ids of calls')
  if (reason !== undefined && typeof reason !== 'string') throw new ConfigError('reject.reason', 'must be a text')
}

function isIds(value: unknown): boolean {
  return Array.isArray(value) && value.every((id) => typeof id === 'string')
}

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function toRejection(reject: Answers['reject']): { readonly calls?: readonly string[]; readonly reason?: string } {
  if (typeof reject === 'string') return { reason: reject }
  return typeof reject === 'object' ? reject : {}
}

function chosen(waiting: readonly string[], ids: readonly string[] | boolean | undefined): readonly string[] {
  if (typeof ids === 'boolean' || ids === undefined) return []
  for (const id of ids) if (!waiting.includes(id)) throw unanswered(id, 'does not wait for an approval')
  return ids
}

function unanswered(id: string, problem: string): ToolgateError {
  return new ToolgateError('resume_unanswered', `The call "${id}" ${problem}.`)
}
