import { type Approval, type Caller, ToolgateError } from '@toolgate/core'
import { notOther } from '@toolgate/core/internal'
import type { ApprovalVerdict } from '@toolgate/core/stores'
import { APPROVAL_DECISIONS, APPROVAL_STATUSES } from '@toolgate/core/words'
import { turnEach } from '../../util/next-turn.ts'
import { maySee, toName } from '../http/callers.ts'
import type { ApiDeps } from '../http/deps.ts'
import {
  invalidBody,
  oneOf,
  parseQuery,
  readBody,
  type Route,
  shortText,
  taggedJson,
  wholeNumber,
} from '../http/request.ts'
import { approvalFor } from '../http/rule-text.ts'
import type { ApprovalRow, ApprovalsBody, WaitingApprovalsBody } from '../../model/rows.ts'

const MAX_REASON_LENGTH = 500
const DEFAULT_LIMIT = 100
const MAX_LIMIT = 1000
/** Each row checks all people for those who may decide. */
const ROWS_A_TURN = 10

/** `GET /api/approvals?status=&user=&tool=&chat=&before=&limit=`: newest first, including decided ones. `before` is the id of the last approval of the page before. */
export function approvalsRoute(deps: ApiDeps): Route {
  return async ({ query, person }) => {
    const filter = parseQuery(query, {
      limit: wholeNumber(1, MAX_LIMIT),
      status: oneOf(APPROVAL_STATUSES),
      user: shortText,
      tool: shortText,
      chat: shortText,
      before: shortText,
    })
    const tenant = person.tenant === undefined ? {} : { tenant: person.tenant }
    const approvals = await deps.approvals.list({ limit: DEFAULT_LIMIT, ...filter, ...tenant })
    const seen = approvals.filter((approval) => maySee(person, approval))
    const pace = turnEach(ROWS_A_TURN)
    const rows: ApprovalRow[] = []
    for (const approval of seen) {
      rows.push(toApprovalRow(approval, person, deps))
      await pace()
    }
    return { approvals: rows } satisfies ApprovalsBody
  }
}

/** `GET /api/approvals/waiting`: how many calls wait, and whose: what every page of the console shows. */
export function waitingApprovalsRoute({ approvals }: ApiDeps): Route {
  return async ({ query, person, request }) => {
    parseQuery(query, {})
    const tenant = person.tenant === undefined ? {} : { tenant: person.tenant }
    const waiting = await approvals.list({ status: 'pending', limit: MAX_LIMIT, ...tenant })
    const rows = waiting
      .filter((approval) => maySee(person, approval))
      .map((approval) => {
        const { id, tool, user, tenant: of } = approval
        const whose = { ...(user === undefined ? {} : { user }), ...(of === undefined ? {} : { tenant: of }) }
        return { id, tool, ...whose, mayDecide: approvals.mayDecide(person, approval) }
      })
    return taggedJson(request, JSON.stringify({ approvals: rows } satisfies WaitingApprovalsBody))
  }
}

/** `POST /api/approvals/<id>`: a person approves, rejects or revokes. The gate decides who may. */
export function verdictRoute(deps: ApiDeps): Route {
  return async ({ id, person, loginAt, query, request }) => {
    parseQuery(query, {})
    const verdict = parseVerdict(await readBody(request, ['decision', 'reason']))
    await findSeen(deps.approvals, person, id)
    return toApprovalRow(await deps.approvals.decide(person, id, { ...verdict, loginAt }), person, deps)
  }
}

/** `POST /api/approvals/<id>/compare`: reads what an open call would change, for a person who may decide it. */
export function compareRoute(deps: ApiDeps): Route {
  return async ({ id, person, query, request }) => {
    parseQuery(query, {})
    const approval = await findToCompare(deps, person, id)
    const { comparisons, clock } = deps
    if (!comparisons) return { approval: id, atMs: clock.wallMs(), notShown: 'Nothing is compared here.' }
    return comparisons.compare(approval, toName(person), request.signal)
  }
}

/** @throws {ToolgateError} `approval_unknown`, `approval_forbidden`, `approval_decided` */
export async function findToCompare({ approvals }: ApiDeps, person: Caller, id: string): Promise<Approval> {
  const approval = await findSeen(approvals, person, id)
  if (!approvals.mayDecide(person, approval))
    throw new ToolgateError('approval_forbidden', 'You may not decide this approval.')
  if (!isOpen(approval)) throw new ToolgateError('approval_decided', `The approval "${id}" is ${approval.status}.`)
  return approval
}

/** A person of a tenant must not learn whether another tenant has an approval. @throws {ToolgateError} `approval_unknown` */
async function findSeen(approvals: ApiDeps['approvals'], person: Caller, id: string): Promise<Approval> {
  const approval = await approvals.get(id)
  if (approval && maySee(person, approval)) return approval
  throw new ToolgateError('approval_unknown', `No approval has the id ${JSON.stringify(id.slice(0, 100))}.`)
}

function isOpen({ status }: Approval): boolean {
  return status === 'pending' || status === 'approved'
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
  given: Approval,
  person: Caller,
  { approvals, callers, comparisons }: Pick<ApiDeps, 'approvals' | 'callers' | 'comparisons'>,
): ApprovalRow {
  const approval = approvalFor(person, given)
  if (!isOpen(approval)) return { ...approval, mayDecide: false, deciders: [] }
  const able = callers().filter(
    ({ for: use, caller }) =>
      use === 'console' &&
      maySee(person, caller) &&
      approvals.mayDecide(caller, approval) &&
      notOther(approval, caller) === undefined,
  )
  const names = new Set(able.map(({ caller }) => toName(caller)))
  const mayDecide = approvals.mayDecide(person, approval)
  return {
    ...approval,
    mayDecide,
    deciders: [...names].toSorted().slice(0, MAX_DECIDERS),
    ...(mayDecide && comparisons?.has(approval.tool) ? { mayCompare: true as const } : {}),
  }
}
