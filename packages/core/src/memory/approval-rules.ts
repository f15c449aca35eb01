import { checkShape, ConfigError, type Shape, shapeOf, ToolgateError } from '@toolgate/values'
import type { Approval, ApprovalBinding, ApprovalFilter, ApprovalStatus, ApprovalVerdict } from '../ports/ports.ts'
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
 * @throws {ToolgateError} `approval_unknown`, `approval_decided`, `approval_not_revocable`
 * @throws {ConfigError} for an invalid verdict
 */
export function decidedApproval(approval: Approval | undefined, id: string, verdict: ApprovalVerdict): Approval {
  checkWords(verdict, VERDICT)
  const { decision, by, reason, atMs } = verdict
  if (!approval) throw new ToolgateError('approval_unknown', `There is no approval "${id.slice(0, 100)}".`)
  const { reason: _earlier, ...rest } = approval
  if (decision === 'revoke' && rest.status !== 'approved')
    throw new ToolgateError(
      'approval_not_revocable',
      `The approval "${id}" is ${rest.status}. Only an approved one that was not used can be revoked.`,
    )
  if (decision !== 'revoke' && rest.status !== 'pending')
    throw new ToolgateError('approval_decided', `The approval "${id}" is ${rest.status}.`)
  if (decision === 'approve') checkApprover(rest, verdict)
  const decided = { ...rest, status: STATUS_AFTER[decision], decidedAt: atMs, decidedBy: by }
  return Object.freeze(reason === undefined ? decided : { ...decided, reason })
}

/**
 * Checks what an approval demands of its approver. Anyone who may decide it may reject it.
 *
 * @throws {ToolgateError} `approval_needs_other`, `approval_needs_login`
 */
function checkApprover(
  approval: Pick<Approval, 'user' | 'keyMadeBy' | 'behind' | 'approver'>,
  { by, loginAt, atMs }: ApprovalVerdict,
): void {
  checkOther(approval, { user: by })
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
  const { tenant, user, tool, definitionHash, inputHash, run, approver, keyMadeBy, behind, asked } = binding
  const demands = approver === undefined ? [] : [approver.by ?? null, approver.loginMs ?? null]
  const parts = [tenant ?? null, user ?? null, tool, definitionHash, inputHash, run ?? null]
  return {
    // Optional parts have different JSON types, so that each combination has its own form.
    binding: JSON.stringify([
      ...parts,
      ...(keyMadeBy === undefined ? [] : [keyMadeBy]),
      ...(behind === undefined ? [] : [{ behind }]),
      ...demands,
      ...(asked === undefined ? [] : [asked]),
    ]),
    user: JSON.stringify([tenant ?? null, user ?? null]),
  }
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

type DecidedFields = Pick<ApprovalVerdict, 'decision' | 'reason' | 'loginAt'>

const DECISION = shapeOf<DecidedFields>({ decision: true, reason: true, loginAt: true }, 'field')
const VERDICT = shapeOf<ApprovalVerdict>({ decision: true, reason: true, by: true, atMs: true, loginAt: true }, 'field')

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
  const { decision, reason, loginAt } = said
  if (!Object.hasOwn(STATUS_AFTER, decision))
    throw new ConfigError('decide.decision', `must be one of ${Object.keys(STATUS_AFTER).join(', ')}`)
  if (reason !== undefined && typeof reason !== 'string') throw new ConfigError('decide.reason', 'must be a text')
  if (loginAt !== undefined && !Number.isFinite(loginAt))
    throw new ConfigError('decide.loginAt', 'must be a number of milliseconds since 1970')
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
