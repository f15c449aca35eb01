import type { Answer } from '../../heart/route.ts'
import { type Approval, type Caller, ConfigError, ToolgateError } from '@toolgate/core'
import {
  type Approvals,
  type DecidedApproval,
  type Grants,
  hasApproved,
  type VerdictOfPerson,
  voterOf,
} from '@toolgate/core/call'
import type { Clock, GrantRequest } from '@toolgate/core/stores'
import type { CallerConfig } from '../../config/config.ts'
import { APPROVAL_DECISIONS, APPROVAL_STATUSES } from '@toolgate/core/words'
import { isObject } from '@toolgate/values/json'
import { turnEach } from '../../util/next-turn.ts'
import { maySee, toName } from '../http/callers.ts'
import type { Room } from '../../heart/room.ts'
import type { FindSubject } from '../../heart/route.ts'
import { redactApprovals } from '../../config/redaction.ts'
import { room as login } from '../login/routes.ts'
import { createApprovalPage } from './approval-page.ts'
import { mayGrantOf } from './may-grant.ts'
import { openComparisons } from './comparisons.ts'
import type { Comparisons } from './comparisons.ts'
import { mayEdit, needsOf } from './needs.ts'
import { APPROVAL_PATH } from '../../calls/approval-doors.ts'
import { decidersOf } from '../../calls/deciders.ts'
import { invalidBody, oneOf, parseQuery, readBody, shortText, taggedJson, wholeNumber } from '../http/request.ts'
import { approvalFor } from '../http/rule-text.ts'
import type { ApprovalRow, ApprovalsBody, WaitingApprovalsBody } from '../../model/rows.ts'

export const room: Room = {
  name: 'approvals',
  needs: [login],
  open(heart, rooms) {
    const approvals = redactApprovals(heart.gate.approvals, heart.redact)
    const { clock, door, onFault } = heart
    const callers = ({ tenant }: Approval) => [...heart.revisions.current.callers, ...door.people.deciders(tenant)]
    const { grants, catalog } = heart.gate
    const schemaOf = (tool: string) => catalog.get(tool)?.inputSchema
    const deps: ApprovalsDeps = { approvals, callers, comparisons: openComparisons(heart), clock, grants, schemaOf }
    const people = rooms.ask(login)
    const page = people && createApprovalPage({ ...people, approvals, clock, logins: door.logins, onFault })
    return {
      routes: [
        { method: 'GET', path: '/api/approvals', by: 'person', answer: approvalsRoute(deps) },
        { method: 'GET', path: '/api/approvals/waiting', by: 'person', answer: waitingApprovalsRoute(deps) },
        { method: 'POST', path: '/api/approvals/:id', by: 'person', answer: verdictRoute(deps) },
        {
          method: 'POST',
          path: '/api/approvals/:id/compare',
          by: 'person',
          answer: compareRoute(deps),
          subject: comparedIn(deps),
        },
      ],
      pages: page ? [{ under: APPROVAL_PATH, ...page }] : [],
    }
  },
}

export interface ApprovalsDeps {
  readonly approvals: Approvals
  /** Returns the callers of the file, and people of the approval's tenant who logged in to the console. */
  readonly callers: (approval: Approval) => readonly Pick<CallerConfig, 'for' | 'caller'>[]
  readonly comparisons: Pick<Comparisons, 'askerOf' | 'compare' | 'has'>
  readonly clock: Pick<Clock, 'wallMs'>
  readonly grants: Pick<Grants, 'problem' | 'rules'>
  /** Returns the input schema of a tool. */
  readonly schemaOf: (tool: string) => object | undefined
}

const MAX_REASON_LENGTH = 500
const DEFAULT_LIMIT = 100
const MAX_LIMIT = 1000
/** Rows in one turn of the event loop, as each row checks all people for those who may decide. */
const ROWS_A_TURN = 10

/**
 * `GET /api/approvals?status=&user=&tool=&chat=&before=&limit=`: newest first, including decided ones. `before`: the id
 * of the last approval on the previous page.
 */
function approvalsRoute(deps: ApprovalsDeps): Answer {
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

/**
 * `GET /api/approvals/waiting`: the number of waiting calls and their callers, which every page of the console shows.
 */
function waitingApprovalsRoute({ approvals }: ApprovalsDeps): Answer {
  return async ({ query, person, request }) => {
    parseQuery(query, {})
    const tenant = person.tenant === undefined ? {} : { tenant: person.tenant }
    const waiting = await approvals.list({ status: 'pending', limit: MAX_LIMIT, ...tenant })
    const rows = waiting
      .filter((approval) => maySee(person, approval))
      .map((approval) => {
        const { id, tool, user, tenant: of } = approval
        const whose = { ...(user === undefined ? {} : { user }), ...(of === undefined ? {} : { tenant: of }) }
        // A person who has approved waits for others.
        const mayDecide = approvals.mayDecide(person, approval) && !hasApproved(approval, voterOf(person))
        return { id, tool, ...whose, mayDecide }
      })
    return taggedJson(request, JSON.stringify({ approvals: rows } satisfies WaitingApprovalsBody))
  }
}

/** `POST /api/approvals/<id>`: a person approves, rejects or revokes. The gate decides who may do so. */
function verdictRoute(deps: ApprovalsDeps): Answer {
  return async ({ id, person, loginAt, query, request }) => {
    parseQuery(query, {})
    const verdict = parseVerdict(await readBody(request, ['decision', 'reason', 'input', 'grant']))
    await findSeen(deps.approvals, person, id)
    try {
      return toApprovalRow(await deps.approvals.decide(person, id, { ...verdict, loginAt }), person, deps)
    } catch (error) {
      throw error instanceof ConfigError ? invalidBody(`${error.message}.`) : error
    }
  }
}

/**
 * `POST /api/approvals/<id>/compare`: reads the content that an open call would change, for a person who may decide it.
 */
function compareRoute(deps: ApprovalsDeps): Answer {
  return async ({ id, person, query, request }) => {
    parseQuery(query, {})
    const approval = await findToCompare(deps, person, id)
    return deps.comparisons.compare(approval, toName(person), request.signal)
  }
}

/** Returns the caller whose call a person compares. The caller's home reads the content. */
function comparedIn(deps: ApprovalsDeps): FindSubject {
  return async ({ person, id }) => {
    const approval = await findToCompare(deps, person, id)
    const caller = await deps.comparisons.askerOf(approval.id)
    return caller && { tool: approval.tool, caller }
  }
}

/** @throws {ToolgateError} `approval_unknown`, `approval_forbidden`, `approval_decided` */
async function findToCompare({ approvals }: ApprovalsDeps, person: Caller, id: string): Promise<Approval> {
  const approval = await findSeen(approvals, person, id)
  if (!approvals.mayDecide(person, approval))
    throw new ToolgateError('approval_forbidden', 'You may not decide this approval.')
  if (!isOpen(approval)) throw new ToolgateError('approval_decided', `The approval "${id}" is ${approval.status}.`)
  return approval
}

/**
 * Returns an approval that this person may see. People of a tenant must not learn of another tenant's approvals.
 * @throws {ToolgateError} `approval_unknown`
 */
async function findSeen(approvals: Approvals, person: Caller, id: string): Promise<Approval> {
  const approval = await approvals.get(id)
  if (approval && maySee(person, approval)) return approval
  throw new ToolgateError('approval_unknown', `No approval has the id ${JSON.stringify(id.slice(0, 100))}.`)
}

function isOpen({ status }: Approval): boolean {
  return status === 'pending' || status === 'approved'
}

function parseVerdict(
  body: ReadonlyMap<string, unknown>,
): Pick<VerdictOfPerson, 'decision' | 'reason' | 'input' | 'grant'> {
  const decision = APPROVAL_DECISIONS.find((known) => known === body.get('decision'))
  const reason = body.get('reason')
  if (decision === undefined) throw invalidBody('The field "decision" must be "approve", "reject" or "revoke".')
  const input = body.get('input')
  if (input !== undefined && (decision !== 'approve' || !isObject(input)))
    throw invalidBody('The field "input" must be an object with the changed fields, and is only for "approve".')
  if (reason !== undefined && (typeof reason !== 'string' || reason.length > MAX_REASON_LENGTH))
    throw invalidBody(`The field "reason" must be a string of at most ${MAX_REASON_LENGTH} characters.`)
  // The gate checks what it holds.
  const grant = body.get('grant') as GrantRequest | undefined
  return {
    decision,
    ...(grant !== undefined && { grant }),
    ...(reason !== undefined && { reason }),
    ...(input !== undefined && { input }),
  }
}

const MAX_DECIDERS = 20

/** Returns an approval for one person, with whether they may decide it and who else may. */
function toApprovalRow(
  given: DecidedApproval,
  person: Caller,
  { approvals, callers, comparisons, grants, schemaOf }: ApprovalsDeps,
): ApprovalRow {
  const { approvedBy, ...approval } = approvalFor(person, given)
  const people = needsOf(given, person, approvedBy)
  const needs = people ? { needs: people } : {}
  if (!isOpen(approval)) return { ...approval, ...needs, mayDecide: false, deciders: [] }
  const able = [...decidersOf(given, { approvals, callers: callers(given) })]
  const names = new Set(able.filter((caller) => maySee(person, caller)).map(toName))
  const mayDecide = approvals.mayDecide(person, given)
  const mayGrant = mayDecide ? mayGrantOf(grants, person, given, schemaOf(approval.tool)) : undefined
  return {
    ...approval,
    ...needs,
    ...(mayGrant && { mayGrant }),
    ...(mayDecide && mayEdit(given) && { mayEdit: true as const }),
    mayDecide,
    deciders: [...names].toSorted().slice(0, MAX_DECIDERS),
    ...(mayDecide && comparisons.has(approval.tool) ? { mayCompare: true as const } : {}),
  }
}
