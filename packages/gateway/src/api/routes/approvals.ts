import { ToolgateError } from '@toolgate/core'
import type { ApprovalVerdict } from '@toolgate/core/stores'
import { APPROVAL_DECISIONS, APPROVAL_STATUSES } from '@toolgate/core/words'
import { toApprovalRow } from '../approval-rows.ts'
import { invalid, readBody } from '../body.ts'
import type { ApiDeps } from '../deps.ts'
import { oneOf, parseQuery, text, wholeNumber } from '../query.ts'
import { maySee } from '../tenant.ts'
import type { ApprovalsBody } from '../wire.ts'
import type { Route } from './route.ts'

const MAX_REASON_LENGTH = 500
const DEFAULT_LIMIT = 100

/** `GET /api/approvals?status=&user=&tool=&chat=&before=&limit=`: newest first, the history too. `before` is an id: the next page. */
export function approvalsRoute(deps: ApiDeps): Route {
  return async ({ query, person }) => {
    const filter = parseQuery(query, {
      limit: wholeNumber(1, 1000),
      status: oneOf(APPROVAL_STATUSES),
      user: text,
      tool: text,
      chat: text,
      before: text,
    })
    const tenant = person.tenant === undefined ? {} : { tenant: person.tenant }
    const approvals = await deps.approvals.list({ limit: DEFAULT_LIMIT, ...filter, ...tenant })
    const seen = approvals.filter((approval) => maySee(person, approval))
    return { approvals: seen.map((approval) => toApprovalRow(approval, person, deps)) } satisfies ApprovalsBody
  }
}

/** `POST /api/approvals/<id>`: a person approves, rejects or revokes. The gate decides who may. */
export function verdictRoute(deps: ApiDeps): Route {
  return async ({ id, person, query, request }) => {
    parseQuery(query, {})
    const verdict = parseVerdict(await readBody(request, ['decision', 'reason']))
    const approval = await deps.approvals.get(id)
    // What waits elsewhere is no business of a person of a tenant, nor whether it does.
    if (!approval || !maySee(person, approval))
      throw new ToolgateError('approval_unknown', `No approval has the id ${JSON.stringify(id.slice(0, 100))}.`)
    return toApprovalRow(await deps.approvals.decide(person, id, verdict), person, deps)
  }
}

function parseVerdict(body: ReadonlyMap<string, unknown>): Pick<ApprovalVerdict, 'decision' | 'reason'> {
  const decision = APPROVAL_DECISIONS.find((known) => known === body.get('decision'))
  const reason = body.get('reason')
  if (decision === undefined) throw invalid('The field "decision" must be "approve", "reject" or "revoke".')
  if (reason === undefined) return { decision }
  if (typeof reason !== 'string' || reason.length > MAX_REASON_LENGTH)
    throw invalid(`The field "reason" must be a string of at most ${MAX_REASON_LENGTH} characters.`)
  return { decision, reason }
}
