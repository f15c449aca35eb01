import { ToolgateError } from '@toolgate/values'
import { type Caller, defineCaller } from '../ports/caller.ts'
import { NOBODY, notOther } from '../memory/four-eyes.ts'
import { peopleOf } from '../policy/approver.ts'
import {
  checkGrantFilter,
  checkGrantRequest,
  lifeOf,
  type OpenGrants,
  type ParsedGrantRules,
  unknownGrant,
} from '../memory/grant-rules.ts'
import { fixedPart, parseFields } from '../memory/granted-input.ts'
import { GRANT_COVERS } from '../ports/grants.ts'
import type { Grant, GrantFilter, GrantRequest, GrantStore, NewGrant } from '../ports/grants.ts'
import type { Approval, ApprovalStore, Clock, DecisionMade, MayApprove } from '../ports/ports.ts'
import { type GrantMaker, isShownWhole } from './approvals.ts'

/** Lists and revokes grants, on behalf of people. Grants are made with `approvals.decide`. */
export interface Grants {
  get(id: string): Promise<Grant | undefined>
  /** Returns grants, newest first, including finished ones. */
  list(filter?: GrantFilter): Promise<readonly Grant[]>
  /** Returns whether this person may revoke this grant: whoever may decide approvals of its user. */
  mayRevoke(person: Caller, grant: Grant): boolean
  /**
   * Ends a grant at once. No call uses it from then on.
   *
   * @throws {ToolgateError} `grant_unknown`, `grant_forbidden`, `grant_ended`
   */
  revoke(person: Caller, id: string, options?: { readonly reason?: string | undefined }): Promise<Grant>
  /** The bounds within which people may grant. `undefined` while grants are switched off. */
  readonly rules: ParsedGrantRules | undefined
  /**
   * Returns why a person may not grant calls like this one; `undefined` if they may, with an approval that covers them.
   * `covers`: what the grant would cover. Default: the tool.
   */
  problem(person: Caller, approval: Approval, covers?: GrantRequest['covers']): string | undefined
}

export interface GrantingPorts {
  readonly grants: OpenGrants
  readonly approvals: Pick<ApprovalStore, 'get' | 'decide'>
  readonly clock: Clock
  readonly onGranted: (grant: Grant) => void
  readonly onRevoked: (grant: Grant) => void
  readonly onDecided: (approval: Approval, made: DecisionMade) => void
}

/** Makes and ends grants when an approval is decided. */
export interface Granting extends Grants, GrantMaker {}

/** Returns the grants of a gate, over the store that its calls use. */
export function createGranting(ports: GrantingPorts, mayApprove: MayApprove): Granting {
  const { clock, onGranted, onRevoked } = ports
  const { store: grants, rules: rulesNow } = ports.grants
  const isAllowed = (person: Caller, grant: Grant) => mayApprove(defineCaller(person), toApproval(grant)) === true
  const revoke = async (id: string, by: string, reason: string | undefined): Promise<Grant> => {
    const revoked = await grants.revoke(id, { by, atMs: clock.wallMs(), reason })
    onRevoked(revoked)
    return revoked
  }
  return {
    get rules() {
      return rulesNow()
    },
    problem: (person, approval, covers = 'tool') => problemOf(person, approval, covers, rulesNow()),
    get: async (id) => grants.get(id, clock.wallMs()),
    async list(filter = {}) {
      checkGrantFilter(filter)
      return grants.list(filter, clock.wallMs())
    },
    mayRevoke(person, grant) {
      try {
        return isAllowed(person, grant)
      } catch {
        return false
      }
    },
    async revoke(person, id, { reason } = {}) {
      const grant = await grants.get(id, clock.wallMs())
      if (!grant) throw unknownGrant(id)
      if (!isAllowed(person, grant)) throw new ToolgateError('grant_forbidden', 'You may not revoke this grant.')
      const by = person.user ?? NOBODY
      const revoked = await revoke(id, by, reason)
      await revokeApproval(ports, id, by, reason)
      return revoked
    },
    prepare(person, approval, request) {
      checkGrantRequest(request)
      const rules = rulesNow()
      const problem = problemOf(person, approval, request.covers, rules)
      if (problem !== undefined || !rules) throw new ToolgateError('grant_forbidden', problem ?? SWITCHED_OFF)
      const nowMs = clock.wallMs()
      const life = lifeOf(request, rules, nowMs)
      const bound = boundOf(approval, request)
      return async ({ reason }) => {
        const by = person.user ?? NOBODY
        const byOther = notOther(asOther(approval), person) === undefined
        const made: NewGrant = {
          ...bound,
          ...life,
          grantedBy: by,
          grantedAt: nowMs,
          ...(byOther && { byOther: true as const }),
          ...(reason !== undefined && { reason }),
        }
        const grant = await created(grants, made, clock.wallMs())
        onGranted(grant)
        return grant
      }
    },
    async revokeWith({ id }, by, reason) {
      const grant = await grants.get(id, clock.wallMs())
      if (grant?.status === 'live' || grant?.status === 'used') await revoke(id, by, reason)
    },
  }
}

/** Revokes the approval that made a grant if it was not used, because its call is one of those that the grant covers. */
async function revokeApproval(
  { approvals, clock, onDecided }: GrantingPorts,
  id: string,
  by: string,
  reason: string | undefined,
): Promise<void> {
  if ((await approvals.get(id, clock.wallMs()))?.status !== 'approved') return
  try {
    const made = { decision: 'revoke', by, reason } as const
    onDecided(await approvals.decide(id, { ...made, atMs: clock.wallMs() }), made)
  } catch (error) {
    // Its call has just used it.
    if (!(error instanceof ToolgateError) || error.code !== 'approval_not_revocable') throw error
  }
}

async function created(grants: GrantStore, made: NewGrant, nowMs: number): Promise<Grant> {
  try {
    return await grants.create(made, nowMs)
  } catch (error) {
    if (!(error instanceof ToolgateError)) throw error
    throw new ToolgateError(error.code, `The call is approved, once. No grant was made: ${error.message}`, {
      cause: error,
    })
  }
}

const SWITCHED_OFF = 'Grants are switched off here.'

/** Returns why a person may not grant calls like an approval's. */
function problemOf(
  person: Caller,
  approval: Approval,
  covers: GrantRequest['covers'],
  rules: ParsedGrantRules | undefined,
): string | undefined {
  if (!rules) return SWITCHED_OFF
  if (!GRANT_COVERS.includes(covers)) return `A grant covers one of ${GRANT_COVERS.join(', ')}.`
  if (approval.user === undefined) return 'The caller has no user, so a grant would cover everybody.'
  if (approval.clauses === undefined)
    return 'An earlier version asked for this approval. Approve it, and grant the next.'
  if (peopleOf(approval.approver) > 1)
    return 'Several people must approve each such call, so one person cannot grant it.'
  if (rules.by === 'other' && notOther(asOther(approval), person) !== undefined)
    return 'Another person than the one who asked must grant this call.'
  if (covers !== 'tool' && !isShownWhole(approval))
    return 'Parts of the input are masked, so nobody saw what such a grant would cover. Cover the tool instead.'
  return undefined
}

function asOther(approval: Approval) {
  return { ...approval, approver: { by: 'other' } } as const
}

/** Returns what a grant is bound to: what the approval is bound to, and what the approver chose of its input. */
function boundOf(approval: Approval, request: GrantRequest) {
  const { id, tenant, user, tool, definitionHash, run, keyMadeBy, behind, aliases, approver, asked } = approval
  const { clauses = [] } = approval
  const { covers, anyRun } = request
  if (anyRun !== undefined && (anyRun as unknown) !== true)
    throw new ToolgateError('grant_invalid', 'The field "anyRun" can only be true.')
  return {
    id,
    tenant,
    user,
    tool,
    definitionHash,
    run,
    clauses,
    covers,
    ...(keyMadeBy !== undefined && { keyMadeBy }),
    ...(behind !== undefined && { behind }),
    ...(aliases !== undefined && { aliases }),
    ...(approver !== undefined && { approver }),
    ...(asked !== undefined && { asked }),
    ...(anyRun && { anyRun }),
    ...inputOf(approval, request),
  }
}

function inputOf({ input }: Approval, { covers, fields }: GrantRequest): Pick<Grant, 'fields' | 'inputHash' | 'input'> {
  if (covers !== 'fields' && fields !== undefined)
    throw new ToolgateError('grant_invalid', 'Fields are named only with "covers": "fields".')
  if (covers === 'tool') return {}
  if (covers === 'input') return fixedPart(input)
  const free = parseFields(input, fields ?? {})
  return { fields: free, ...fixedPart(input, free) }
}

/** Returns a grant in the form of the approval that made it, for the rule about who may decide. */
function toApproval({ grantedAt, ...grant }: Grant): Approval {
  const { id, tenant, user, tool, definitionHash, run, inputHash = '', input, expiresAt } = grant
  const bound = { tenant, user, tool, definitionHash, run, inputHash }
  return { ...bound, id, status: 'approved', input, requestedAt: grantedAt, expiresAt }
}
