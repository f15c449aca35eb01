import { type Caller, defineCaller } from '../ports/caller.ts'
import { catchRejection, checkShape, ConfigError, isErrorOf, sha256Hex, shapeOf, ToolgateError } from '@toolgate/values'
import {
  approvalKeys,
  checkApprovalFilter,
  checkDecision,
  checkOther,
  type DecidedFields,
} from '../memory/approval-rules.ts'
import { voterOf } from '../memory/four-eyes.ts'
import type { Grant, GrantRequest } from '../ports/grants.ts'
import type {
  Approval,
  ApprovalBinding,
  ApprovalFilter,
  ApprovalStatus,
  ApprovalStore,
  ApprovalVerdict,
  ApproverRule,
  Clock,
  DecisionMade,
  MayApprove,
} from '../ports/ports.ts'
import { canonicalize, frozenCopy, toJsonText } from '@toolgate/values/json'
import type { Redactor } from '@toolgate/values/redact'
import type { Halt } from '../state/halts.ts'

/** Lists and decides approvals, on behalf of people. */
export interface Approvals {
  get(id: string): Promise<Approval | undefined>
  /** Returns approvals, newest first, including finished ones. */
  list(filter?: ApprovalFilter): Promise<readonly Approval[]>
  /** Returns whether this person may decide this approval. `decide` checks the same. */
  mayDecide(approver: Caller, approval: Approval): boolean
  /**
   * Approves or rejects a pending approval, or revokes an approved one that was not used yet, or one's own yes to one that
   * waits for others. With `input`, approves it with these fields changed.
   *
   * `grant`, with `approve`: also lets further calls like this one through, within the gate's `grants`. Revoking the
   * approval revokes them, too.
   *
   * @throws {ToolgateError} `approval_unknown`, `approval_decided`, `approval_not_revocable`, `approval_forbidden`,
   * `approval_needs_other`, `approval_needs_login`, `approval_edit_refused`, `grant_forbidden`, `grant_invalid`,
   * `grant_too_many`
   * @throws {ConfigError} for a verdict other than `approve`, `reject` and `revoke`
   */
  decide(approver: Caller, id: string, verdict: VerdictOfPerson): Promise<DecidedApproval>
}

/** What a person says about an approval. */
export interface VerdictOfPerson extends DecidedFields {
  readonly grant?: GrantRequest | undefined
}

/** An approval after a decision, with the grant that the decision made. */
export interface DecidedApproval extends Approval {
  readonly grant?: Grant
}

/** Makes and ends the grants of approvals. */
export interface GrantMaker {
  /**
   * Checks a request for a grant. Returns a function that makes it, once the approval is approved.
   *
   * @throws {ToolgateError} `grant_forbidden`, `grant_invalid`
   */
  prepare(person: Caller, approval: Approval, request: GrantRequest): (approved: Approval) => Promise<Grant>
  /** Revokes the grant that an approval has made, if it made one. */
  revokeWith(approval: Approval, by: string, reason: string | undefined): Promise<void>
}

interface ApprovalsPorts {
  readonly approvals: Pick<ApprovalStore, 'get' | 'list' | 'decide'>
  readonly clock: Clock
  /** Called after each verdict. */
  readonly onDecided?: ((approval: Approval, made: DecisionMade) => void) | undefined
  /** Called when a person may not decide as they want to. */
  readonly onRefused?: ((approval: Approval, made: DecisionMade, why: ToolgateError) => void) | undefined
  /** Throws if the changed input cannot be that of a call. */
  readonly checkEdit?: ((approval: Approval, patch: NonNullable<ApprovalVerdict['input']>) => void) | undefined
  /** Absent: an approval makes no grant. */
  readonly granting?: GrantMaker | undefined
  /** Returns the halt of a person that covers the tool of an approval. */
  readonly haltOf?: ((person: Caller, approval: Approval) => Pick<Halt, 'reason'> | undefined) | undefined
}

const PORTS = shapeOf<ApprovalsPorts>({
  approvals: true,
  clock: true,
  onDecided: true,
  onRefused: true,
  checkEdit: true,
  granting: true,
  haltOf: true,
})

/** Returns the approvals of a gate, over the store that its calls use. */
export function createApprovals(ports: ApprovalsPorts, mayApprove: MayApprove = mayApproveByDefault): Approvals {
  checkShape('createApprovals', ports, PORTS)
  const { approvals, clock, onDecided, onRefused, granting } = ports
  // Only `true` allows. A promise does not.
  const isAllowed: MayApprove = (approver, approval) => mayApprove(defineCaller(approver), approval) === true
  return {
    mayDecide(approver, approval) {
      try {
        return isAllowed(approver, approval)
      } catch {
        return false
      }
    },
    get: async (id) => approvals.get(id, clock.wallMs()),
    async list(filter = {}) {
      checkApprovalFilter(filter)
      return approvals.list(filter, clock.wallMs())
    },
    async decide(approver, id, { grant: wanted, ...verdict }) {
      checkDecision(verdict)
      const { decision, reason, loginAt } = verdict
      const input = frozenPatch(verdict.input)
      const approval = await approvals.get(id, clock.wallMs())
      if (!approval) throw new ToolgateError('approval_unknown', `No approval has the id "${id}".`)
      const voter = voterOf(approver)
      const made = { decision, by: voter.by, reason }
      try {
        if (!isAllowed(approver, approval))
          throw new ToolgateError(
            'approval_forbidden',
            mayApprove === mayApproveByDefault ? whoMay(approval) : 'You may not decide this approval.',
          )
        const halt = decision === 'approve' ? ports.haltOf?.(defineCaller(approver), approval) : undefined
        if (halt)
          throw new ToolgateError('approval_forbidden', `You may approve nothing: you are halted: ${halt.reason}.`)
        // The message names the person's own names, which the store does not tell from those behind their credential.
        if (decision === 'approve' && approval.status === 'pending') checkOther(approval, approver)
        if (input !== undefined && approval.status === 'pending') ports.checkEdit?.(approval, input)
        const grant = wanted && toGrant(granting, approver, approval, { decision, input, wanted })
        const decided = await approvals.decide(id, {
          decision,
          reason,
          ...voter,
          atMs: clock.wallMs(),
          ...(loginAt !== undefined && { loginAt }),
          ...(input !== undefined && { input }),
          ...placesOf(approver, approval, mayApprove),
        })
        onDecided?.(decided, made)
        if (decision === 'revoke') await granting?.revokeWith(approval, voter.by, reason)
        return grant && decided.status === 'approved' ? { ...decided, grant: await grant(decided) } : decided
      } catch (error) {
        if (isErrorOf(error, ToolgateError) && REFUSED.has(error.code)) onRefused?.(approval, made, error)
        throw error
      }
    },
  }
}

/** Checks the grant before the decision, so that an impossible grant approves nothing. */
function toGrant(
  granting: ApprovalsPorts['granting'],
  approver: Caller,
  approval: Approval,
  { decision, input, wanted }: Pick<ApprovalVerdict, 'decision' | 'input'> & { readonly wanted: GrantRequest },
) {
  if (decision !== 'approve') throw new ToolgateError('grant_invalid', 'Only with "approve" can a grant be made.')
  if (!granting) throw new ToolgateError('grant_forbidden', 'No grants can be made here.')
  if (input !== undefined || approval.edit !== undefined)
    throw new ToolgateError('grant_forbidden', 'A call with a changed input is approved once. Grant an unchanged one.')
  // Whoever decided before has the last word: the store says so.
  return approval.status === 'pending' ? granting.prepare(approver, approval, wanted) : undefined
}

/** @throws {ConfigError} for what is not JSON */
function frozenPatch(input: ApprovalVerdict['input']): ApprovalVerdict['input'] {
  if (input === undefined) return undefined
  const copy = frozenCopy(input)
  if ('problem' in copy) throw new ConfigError(`decide.input${copy.problem.pointer}`, copy.problem.message)
  return copy.value as ApprovalVerdict['input']
}

/** The errors of people who may not decide as they want to. The others are about the approval. */
const REFUSED: ReadonlySet<string> = new Set([
  'approval_forbidden',
  'approval_needs_other',
  'approval_needs_login',
  'approval_edit_refused',
])

/** Returns what an approver counts for, if roles are demanded. */
function placesOf(approver: Caller, approval: Approval, mayApprove: MayApprove): Pick<ApprovalVerdict, 'fills'> {
  const wanted = approval.approver?.roles
  if (wanted === undefined) return {}
  const roles = (approver.roles ?? []).filter((role) => Object.hasOwn(wanted, role))
  return { fills: { roles, isPlain: mayApprove !== mayApproveByDefault || isPlainApprover(approver, approval) } }
}

function whoMay({ approver }: Pick<Approval, 'approver'>): string {
  const roles = rolesOf(approver).map((role) => `"${role}"`)
  return `Only the role ${roles.join(' or ')} and the person who asked may decide this approval, each within the tenant.`
}

/**
 * The default rule of who may decide an approval: the requester, or a person of the same tenant with the role `approver`, or
 * with one of the roles that the approval demands instead.
 */
export function mayApproveByDefault(
  approver: Caller,
  approval: Pick<Approval, 'user' | 'tenant' | 'approver'>,
): boolean {
  return isPlainApprover(approver, approval, rolesOf(approval.approver))
}

function isPlainApprover(
  { user, tenant, roles = [] }: Caller,
  approval: Pick<Approval, 'user' | 'tenant'>,
  wanted: readonly string[] = [APPROVER],
): boolean {
  if (tenant !== approval.tenant) return false
  return (user !== undefined && user === approval.user) || wanted.some((role) => roles.includes(role))
}

/** Returns the roles of people who may decide an approval. */
function rolesOf(rule: ApproverRule | undefined): readonly string[] {
  const { roles, count = 0 } = rule ?? {}
  return roles === undefined ? [APPROVER] : [...(count > 0 ? [APPROVER] : []), ...Object.keys(roles)]
}

const APPROVER = 'approver'

/** Returns whether a person sees the whole input of an approval, with nothing masked. */
export function isShownWhole({ input, inputHash }: Pick<Approval, 'input' | 'inputHash'>): boolean {
  return sha256Hex(canonicalize(input)) === inputHash
}

export function keyOf(binding: ApprovalBinding): string {
  return approvalKeys(binding).binding
}

/** Returns the live approval of a binding, like a store's `request`, but never makes one. */
export async function findLive(
  { approvals, clock }: Pick<ApprovalsPorts, 'approvals' | 'clock'>,
  binding: ApprovalBinding,
): Promise<Approval | undefined> {
  const { tenant, user, tool } = binding
  const about = { tool, ...(tenant !== undefined && { tenant }), ...(user !== undefined && { user }) }
  const key = keyOf(binding)
  const known = await approvals.list({ ...about, limit: MAX_LISTED }, clock.wallMs())
  return known.find((one) => keyOf(one) === key && LIVE.has(one.status))
}

const MAX_LISTED = 1000
const LIVE: ReadonlySet<ApprovalStatus> = new Set(['pending', 'approved', 'rejected', 'revoked'])

/**
 * Returns the input to show to an approver: redacted, with the length of any masked part that could be more than a secret.
 *
 * The author of the input chooses what the redactor takes for a cookie or a password, so a masked part could hide the rest
 * of a command. One opaque word can hide nothing and is masked without its length.
 *
 * @throws any error of the redactor, and a TypeError if the redactor is asynchronous
 */
export function shownInput(
  input: unknown,
  { redactValue }: Pick<Redactor, 'redactValue'>,
  onFault: (error: unknown) => void = () => {},
): unknown {
  const shown = redactValue(input)
  catchRejection(shown, onFault)
  if (shown instanceof Promise) throw new TypeError('the redactor answered with a promise')
  return withNotices(input, shown)
}

function withNotices(input: unknown, shown: unknown): unknown {
  if (input === shown) return shown
  if (typeof shown === 'string') return shown + noticeOf(input, shown)
  if (Array.isArray(input) && Array.isArray(shown)) return shown.map((item, i) => withNotices(input[i], item))
  if (!isObject(input) || !isObject(shown)) return shown
  // The redactor may also mask names, but it keeps their order.
  const values = Object.values(input)
  return Object.fromEntries(Object.entries(shown).map(([key, value], i) => [key, withNotices(values[i], value)]))
}

const MARKER = /\[redacted:[a-z0-9-]{1,64}\]/g
/** The characters after which a shell, a query or a program continues. */
const SIGN = /[\n\r;|&<>$`(){}"'\\]/g
const BLANK = /\s/g

function noticeOf(input: unknown, shown: string): string {
  const text = typeof input === 'string' ? input : toJsonText(input)
  const left = shown.replace(MARKER, '')
  const isMore =
    isObject(input) || countOf(SIGN, text) > countOf(SIGN, left) || countOf(BLANK, text) > countOf(BLANK, left) + 1
  // The note has its own line, because a header is masked up to the end of its line and this text may be redacted again.
  return isMore ? `\n[hidden here: ${text.length - left.length} characters, which are more than one word]` : ''
}

function countOf(pattern: RegExp, text: string): number {
  return text.match(pattern)?.length ?? 0
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}
