import type { ApprovalStatus, ApprovalVerdict } from '@toolgate/core'
import { invalid, readBody } from '../body.ts'
import { toName } from '../callers.ts'
import type { ApiDeps } from '../deps.ts'
import { ApiFault } from '../faults.ts'
import { mayApprove as byDefault } from '../may-approve.ts'
import { oneOf, parseQuery, wholeNumber } from '../query.ts'
import type { ApprovalsBody } from '../wire.ts'
import type { Route } from './route.ts'

const STATUSES: readonly ApprovalStatus[] = ['pending', 'approved', 'rejected', 'expired', 'consumed']
const MAX_REASON_LENGTH = 500
const DEFAULT_LIMIT = 100

/** `GET /api/approvals?status=&limit=`: newest first. */
export function approvalsRoute(deps: ApiDeps): Route {
  return async ({ query }) => {
    const { limit = DEFAULT_LIMIT, status } = parseQuery(query, {
      limit: wholeNumber(1, 1000),
      status: oneOf(STATUSES),
    })
    const approvals = await deps.approvals.list({ limit, ...(status === undefined ? {} : { status }) })
    return { approvals } satisfies ApprovalsBody
  }
}

/** `POST /api/approvals/<id>`: a person's verdict. */
export function verdictRoute(deps: ApiDeps): Route {
  const mayApprove = deps.mayApprove ?? byDefault
  return async ({ id, person, query, request }) => {
    parseQuery(query, {})
    const { decision, reason } = parseVerdict(await readBody(request, ['decision', 'reason']))
    const approval = await deps.approvals.get(id)
    if (!approval) throw new ApiFault('approval_unknown', `No approval has the id ${JSON.stringify(id.slice(0, 100))}.`)
    if (!mayApprove(person, approval))
      throw new ApiFault(
        'approval_forbidden',
        'Only the role "approver" and the person who asked may decide this approval.',
      )
    const atMs = deps.clock.wallMs()
    return deps.approvals.decide(person, id, { decision, by: toName(person), reason, atMs })
  }
}

function parseVerdict(body: ReadonlyMap<string, unknown>): Pick<ApprovalVerdict, 'decision' | 'reason'> {
  const decision = body.get('decision')
  const reason = body.get('reason')
  if (decision !== 'approve' && decision !== 'reject')
    throw invalid('The field "decision" must be "approve" or "reject".')
  if (reason === undefined) return { decision }
  if (typeof reason !== 'string' || reason.length > MAX_REASON_LENGTH)
    throw invalid(`The field "reason" must be a string of at most ${MAX_REASON_LENGTH} characters.`)
  return { decision, reason }
}
