import { checkShape, ConfigError, type Shape, shapeOf, ToolgateError } from '@toolgate/values'
import { isObject } from '@toolgate/values/json'
import type {
  Approval,
  ApprovalBinding,
  ApprovalFilter,
  ApprovalStatus,
  ApprovalVerdict,
  ApproverRule,
} from '../ports/ports.ts'
import { editOf } from './approval-edit.ts'
import { addVote, takeBackVote } from './approver-votes.ts'
import { notOther } from './four-eyes.ts'

/** More than a person can look at. This stops an agent that asks in a loop. */
const MAX_PENDING_PER_USER = 100
/** The most characters of JSON over all pending approvals of a user, which are stored and shown together. */
const MAX_PENDING_INPUT_PER_USER = 8_000_000

/** An approval stays valid if the clock goes back by this much, or the clocks of two machines differ by it. */
export const CLOCK_TOLERANCE_MS = 5000

/** Returns an approval at a given time. An open one may have expired by then; the other statuses are final. */
export function approvalAt(approval: Approval, nowMs: number): Approval {
  const status = approvalStatusAt(approval, nowMs)
  return status === approval.status ? approval : Object.freeze({ ...approval, status })
}

/** The fields of an approval that decide its status. */
export type DatedApproval = Pick<Approval, 'status' | 'requestedAt' | 'expiresAt'>

/** Returns the status that an approval has at a time: an open one whose time is over is `expired`. */
export function approvalStatusAt(approval: DatedApproval, nowMs: number): ApprovalStatus {
  const isOpen = approval.status === 'pending' || approval.status === 'approved'
  return isOpen && isOver(approval, nowMs) ? 'expired' : approval.status
}

/**
 * Returns whether an open approval has reached its end. A store that sees this must store it as expired, so that setting
 * the clock back does not open it again.
 */
export function isEndSeen({ status, expiresAt }: DatedApproval, nowMs: number): boolean {
  return (status === 'pending' || status === 'approved') && nowMs >= expiresAt
}

const LIVE: ReadonlySet<ApprovalStatus> = new Set(['pending', 'approved', 'rejected', 'revoked'])

/** The status that each decision leads to. */
const STATUS_AFTER = { approve: 'approved', reject: 'rejected', revoke: 'revoked' } as const satisfies Record<
  ApprovalVerdict['decision'],
  ApprovalStatus
>

/**
 * Returns an approval after a decision. Pass `approval` as of the time of the decision; `undefined` for an unknown id.
 *
 * It stays pending while it needs more people. A person can take back their own yes until then.
 *
 * @throws {ToolgateError} `approval_unknown`, `approval_decided`, `approval_not_revocable`, `approval_edit_refused`
 * @throws {ConfigError} for an invalid verdict
 */
export function decidedApproval(approval: Approval | undefined, id: string, verdict: ApprovalVerdict): Approval {
  checkWords(verdict, VERDICT)
  const { decision, by, reason, atMs } = verdict
  if (!approval) throw new ToolgateError('approval_unknown', `There is no approval "${id.slice(0, 100)}".`)
  const { reason: _earlier, ...rest } = approval
  if (decision === 'revoke' && rest.status === 'pending' && rest.approvedBy) return takeBackVote(rest, verdict)
  if (decision === 'revoke' && rest.status !== 'approved')
    throw new ToolgateError(
      'approval_not_revocable',
      `The approval "${id}" is ${rest.status}. Only an approved one that was not used can be revoked.`,
    )
  if (decision !== 'revoke' && rest.status !== 'pending')
    throw new ToolgateError('approval_decided', `The approval "${id}" is ${rest.status}.`)
  const decided = { ...rest, status: STATUS_AFTER[decision], decidedAt: atMs, decidedBy: by }
  const explained = reason === undefined ? decided : { ...decided, reason }
  if (decision !== 'approve') return Object.freeze(explained)
  checkApprover(rest, verdict)
  const edit = editOf(rest, verdict)
  const votes = addVote(rest, verdict)
  const more = { ...(votes && { approvedBy: votes.approvedBy }), ...(edit && { edit }) }
  return Object.freeze(votes && !votes.isEnough ? { ...rest, ...more } : { ...explained, ...more })
}

/**
 * Checks what an approval demands of its approver. Anyone who may decide it may reject it.
 *
 * @throws {ToolgateError} `approval_needs_other`, `approval_needs_login`
 */
function checkApprover(
  approval: Pick<Approval, 'user' | 'keyMadeBy' | 'behind' | 'aliases' | 'approver'>,
  { by, behind, loginAt, atMs }: ApprovalVerdict,
): void {
  checkOther(approval, { user: by, makerChain: behind })
  const { loginMs } = approval.approver ?? {}
  // A login in the future does not count.
  const ageMs = loginAt === undefined || loginAt > atMs ? Infinity : atMs - loginAt
  if (loginMs !== undefined && !(ageMs <= loginMs))
    throw new ToolgateError(
      'approval_needs_login',
      `Approving this call needs a login that is at most ${loginMs / 1000} s old. Log in again.`,
    )
}

/** Checks that the approver is another person. @throws {ToolgateError} `approval_needs_other` */
export function checkOther(...about: Parameters<typeof notOther>): void {
  const problem = notOther(...about)
  if (problem !== undefined) throw new ToolgateError('approval_needs_other', problem)
}

/** Returns whether this approval answers the next request of its binding. */
export function isLiveAt(approval: DatedApproval, nowMs: number): boolean {
  return LIVE.has(approval.status) && !isOver(approval, nowMs)
}

/** An approval requested in the future would live longer than allowed, so it counts as expired. */
function isOver({ requestedAt, expiresAt }: DatedApproval, nowMs: number): boolean {
  return nowMs >= expiresAt || nowMs < requestedAt - CLOCK_TOLERANCE_MS
}

/**
 * Returns the keys that identify a binding and its user.
 *
 * JSON keeps the parts apart for any content, and an absent part apart from an empty one.
 */
export function approvalKeys(binding: ApprovalBinding): { readonly binding: string; readonly user: string } {
  const { tenant, user, tool, definitionHash, inputHash, run, approver, keyMadeBy, behind, aliases, asked } = binding
  const parts = [tenant ?? null, user ?? null, tool, definitionHash, inputHash, run ?? null]
  return {
    // Optional parts have different JSON types, so that each combination has its own form.
    binding: JSON.stringify([
      ...parts,
      ...(keyMadeBy === undefined ? [] : [keyMadeBy]),
      ...(behind === undefined ? [] : [{ behind }]),
      ...(aliases === undefined ? [] : [{ aliases }]),
      ...(approver === undefined ? [] : demandsOf(approver)),
      ...(asked === undefined ? [] : [asked]),
    ]),
    user: JSON.stringify([tenant ?? null, user ?? null]),
  }
}

function demandsOf({ by, loginMs, count, roles, edit }: ApproverRule): readonly unknown[] {
  const people = count === undefined && roles === undefined && edit === undefined ? [] : [{ count, roles, edit }]
  return [by ?? null, loginMs ?? null, ...people]
}

/**
 * Checks that a user of a tenant may have one more approval pending.
 *
 * @throws {ToolgateError} `approval_too_many`
 */
export function checkPendingApprovals(
  pending: { readonly count: number; readonly characters: number },
  inputCharacters: number,
): void {
  if (pending.count >= MAX_PENDING_PER_USER) throw tooManyOf(`${MAX_PENDING_PER_USER} approvals`)
  if (pending.characters + inputCharacters > MAX_PENDING_INPUT_PER_USER)
    throw tooManyOf(`Approvals of more than ${MAX_PENDING_INPUT_PER_USER} characters`)
}

const FILTER = shapeOf<ApprovalFilter>(
  { status: true, tenant: true, user: true, tool: true, chat: true, before: true, limit: true },
  'field',
)

/**
 * Checks the fields. @throws {ConfigError} for an unknown field: a misspelt `tenant` would list the approvals of all
 * tenants
 */
export function checkApprovalFilter(filter: ApprovalFilter): void {
  checkShape('list', filter, FILTER)
}

/** What a person decides. */
export type DecidedFields = Pick<ApprovalVerdict, 'decision' | 'reason' | 'loginAt' | 'input'>

const DECISION = shapeOf<DecidedFields>({ decision: true, reason: true, loginAt: true, input: true }, 'field')
const VERDICT = shapeOf<ApprovalVerdict>(
  { decision: true, reason: true, by: true, atMs: true, loginAt: true, behind: true, fills: true, input: true },
  'field',
)

/**
 * Checks a person's decision about an approval: `approve`, `reject` or `revoke`.
 *
 * @throws {ConfigError} naming the field
 */
export function checkDecision(decision: DecidedFields): void {
  checkWords(decision, DECISION)
}

function checkWords(said: DecidedFields, shape: Shape): void {
  checkShape('decide', said, shape)
  const { decision, reason, loginAt, input } = said
  if (!Object.hasOwn(STATUS_AFTER, decision))
    throw new ConfigError('decide.decision', `must be one of ${Object.keys(STATUS_AFTER).join(', ')}`)
  if (reason !== undefined && typeof reason !== 'string') throw new ConfigError('decide.reason', 'must be a text')
  if (loginAt !== undefined && !Number.isFinite(loginAt))
    throw new ConfigError('decide.loginAt', 'must be a number of milliseconds since 1970')
  if (input !== undefined && (decision !== 'approve' || !isObject(input)))
    throw new ConfigError('decide.input', 'must be an object with the changed fields, and only with "approve"')
}

/** The error of a store that is full of live approvals. */
export function tooManyApprovals(): ToolgateError {
  return new ToolgateError('approval_too_many', 'Too many approvals are waiting. Try again later.')
}

function tooManyOf(what: string): ToolgateError {
  return new ToolgateError(
    'approval_too_many',
    `${what} of this user are waiting for a person. Decide one before you request another.`,
  )
}
