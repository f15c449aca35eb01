import { type Approval, type Caller, ToolgateError } from '@toolgate/core'
import type { ApprovalVerdict } from '@toolgate/core/stores'
import { APPROVAL_DECISIONS, APPROVAL_STATUSES } from '@toolgate/core/words'
import { maySee, toName } from '../callers.ts'
import type { ApiDeps } from '../deps.ts'
import { invalidBody, oneOf, parseQuery, readBody, type Route, shortText, wholeNumber } from '../request.ts'
import type { ApprovalRow, ApprovalsBody } from '../wire.ts'

const MAX_REASON_LENGTH = 500
const DEFAULT_LIMIT = 100

/** `GET /api/approvals?status=&user=&tool=&chat=&before=&limit=`: newest first, including decided ones. `before` is the id of the last approval of the page before. */
export function approvalsRoute(deps: ApiDeps): Route {
  return async ({ query, person }) => {
    const filter = parseQuery(query, {
      limit: wholeNumber(1, 1000),
      status: oneOf(APPROVAL_STATUSES),
      user: shortText,
      tool: shortText,
      chat: shortText,
      before: shortText,
    })
    const tenant = person.tenant === undefined ? {} : { tenant: person.tenant }
    const approvals = await deps.approvals.list({ limit: DEFAULT_LIMIT, ...filter, ...tenant })
    const seen = approvals.filter((approval) => maySee(person, approval))
    return { approvals: seen.map((approval) => toApprovalRow(approval, person, deps)) } satisfies ApprovalsBody
  }
}

/** `POST /api/approvals/<id>`: a person approves, rejects or revokes. The gate decides who may. */
export function verdictRoute(deps: ApiDeps): Route {
  return async ({ id, person, loginAt, query, request }) => {
    parseQuery(query, {})
    const verdict = parseVerdict(await readBody(request, ['decision', 'reason']))
    const approval = await deps.approvals.get(id)
    // A person of a tenant must not learn whether another tenant has this approval.
    if (!approval || !maySee(person, approval))
      throw new ToolgateError('approval_unknown', `No approval has the id ${JSON.stringify(id.slice(0, 100))}.`)
    return toApprovalRow(await deps.approvals.decide(person, id, { ...verdict, loginAt }), person, deps)
  }
}

function parseVerdict(body: ReadonlyMap<string, unknown>): Pick<ApprovalVerdict, 'decision' | 'reason'> {
  const decision = APPROVAL_DECISIONS.find((known) => known === body.get('decision'))
  const reason = body.get('reason')
  if (decision === undefined) throw invalidBody('The field "decision" must be "approve", "reject" or "revoke".')
  if (reason === undefined) return { decision }
  if (typeof reason !== 'string' || reason.length > MAX_REASON_LENGTH)
    throw invalidBody(`The field "reason" must be a string of at most ${MAX_REASON_LENGTH} characters.`)
  return { decision, reason }
}

const MAX_DECIDERS = 20

/** Returns an approval for one person: whether they may decide it, and who else may. */
function toApprovalRow(
  approval: Approval,
  person: Caller,
  { approvals, callers }: Pick<ApiDeps, 'approvals' | 'callers'>,
): ApprovalRow {
  const { status } = approval
  if (status !== 'pending' && status !== 'approved') return { ...approval, mayDecide: false, deciders: [] }
  const able = callers().filter(
    (one) => one.for === 'console' && maySee(person, one.caller) && approvals.mayDecide(one.caller, approval),
  )
  const names = new Set(able.map(({ caller }) => toName(caller)))
  return {
    ...approval,
    mayDecide: approvals.mayDecide(person, approval),
    deciders: [...names].toSorted().slice(0, MAX_DECIDERS),
  }
}
