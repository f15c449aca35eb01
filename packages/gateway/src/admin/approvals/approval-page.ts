import { type Approval, type Caller, ToolgateError } from '@toolgate/core'
import { type Approvals, notOther } from '@toolgate/core/call'
import type { FailedLogins } from '../../auth/failed-logins.ts'
import { type AccessRules, checkHeaders, isSecure, type Login, loginByKey, openSession } from '../http/access.ts'
import {
  type ApprovalView,
  confirmPage,
  type LoginLink,
  loginPage,
  messagePage,
  reloadPage,
} from '../http/approval-page-html.ts'
import type { RequestSource } from '../../util/client-address.ts'
import { toName } from '../http/callers.ts'
import { ApiFault } from '../../model/faults.ts'
import { CHALLENGE, checkSamePage, currentLogin, PAGE_HEADERS, readForm, toResponse } from '../http/page.ts'
import { approvalFor } from '../http/rule-text.ts'
import { editFields, patchOf } from './edit-form.ts'
import { mayEdit, needsOf, rolesMissing } from './needs.ts'
import type { LoginsBody } from '../../model/rows.ts'

interface ApprovalPageDeps {
  readonly access: AccessRules
  readonly approvals: Approvals
  readonly clock: { wallMs(): number }
  readonly logins?: Pick<FailedLogins, 'failed'> | undefined
  readonly onFault?: ((error: unknown) => void) | undefined
  /** The login at an authorization server. Absent: people log in with keys. */
  readonly oidc?: LoginsBody['oidc'] | undefined
}

/** The path of an approval's page. */
const PATH = /^\/approvals\/([^/]{1,300})$/
const MAX_REASON_LENGTH = 500

/** Serves the page on which a person decides one approval. It needs no scripts. */
export function createApprovalPage(deps: ApprovalPageDeps): {
  fetch(request: Request, from?: RequestSource): Promise<Response>
} {
  return {
    async fetch(request, from) {
      try {
        return await serve(request, deps)
      } catch (error) {
        return answerError(error, { ...deps, id: idOf(request) }, from)
      }
    },
  }
}

async function serve(request: Request, deps: ApprovalPageDeps): Promise<Response> {
  const { access } = deps
  checkHeaders(request, access.origins)
  const id = idOf(request)
  if (id === undefined) return NOT_FOUND()
  if (request.method === 'POST') return post(request, id, deps)
  if (request.method !== 'GET' && request.method !== 'HEAD')
    return toResponse(messagePage('Not allowed', 'This page takes GET and POST.'), 405, { allow: 'GET, HEAD, POST' })
  const login = await currentLogin(request, access)
  // Browsers send no cookie when a person follows a link from another site. They do when the page reloads itself.
  if (!login && request.headers.get('sec-fetch-site') === 'cross-site') return toResponse(reloadPage(), 200)
  if (!login) return toResponse(loginPage(linkFor(deps, id)), 401, CHALLENGE)
  const approval = await findFor(login.person, id, deps.approvals)
  return approval ? show(approval, login, deps) : NOT_FOUND()
}

async function post(request: Request, id: string, deps: ApprovalPageDeps): Promise<Response> {
  checkSamePage(request)
  const form = await readForm(request)
  const { access, approvals } = deps
  const key = form.get('key') ?? ''
  const decision = form.get('decision')
  const known = await currentLogin(request, access)
  if (decision === null || !known) {
    const headers = {
      'set-cookie': await openSession(access, await loginByKey(key, access), { isSecure: isSecure(request) }),
    }
    return backTo(id, headers)
  }
  const approval = await findFor(known.person, id, approvals)
  if (!approval) return NOT_FOUND()
  if (decision !== 'approve' && decision !== 'reject' && decision !== 'revoke')
    throw new ApiFault('body_invalid', 'The decision must be "approve", "reject" or "revoke".')
  const input = decision === 'approve' ? patchOf(form, approval) : undefined
  // A key that is sent with the decision is a fresh login of the same person.
  const again = key === '' ? known : await loginByKey(key, access)
  if (again.person.user !== known.person.user || again.person.tenant !== known.person.tenant)
    throw new ApiFault('approval_forbidden', 'This key is not yours.')
  const reason = form.get('reason')?.slice(0, MAX_REASON_LENGTH) || undefined
  const { loginAt } = again
  const more = { ...(reason !== undefined && { reason }), ...(input !== undefined && { input }) }
  await approvals.decide(again.person, id, { decision, loginAt, ...more })
  return backTo(id)
}

/** Returns an approval if this person may see it: they asked for it, or may approve for its tenant. */
async function findFor(person: Caller, id: string, approvals: Approvals): Promise<Approval | undefined> {
  const approval = await approvals.get(id)
  if (!approval || approval.tenant !== person.tenant) return undefined
  const hasAsked = person.user !== undefined && person.user === approval.user
  return hasAsked || approvals.mayDecide(person, approval) ? approval : undefined
}

function show(approval: Approval, login: Login, deps: ApprovalPageDeps): Response {
  const { approvals, clock } = deps
  const { approver } = approval
  const ageMs = clock.wallMs() - login.loginAt
  const shown = approvalFor(login.person, approval)
  const needs = needsOf(approval, login.person, shown.approvedBy)
  const mayDecide = approvals.mayDecide(login.person, approval)
  const view: ApprovalView = {
    approval: shown,
    ...(needs && { needs, rolesMissing: rolesMissing(approval) }),
    fields: mayDecide && mayEdit(approval) ? editFields(shown.input) : [],
    person: toName(login.person),
    mayDecide,
    needsOther: notOther(approval, login.person) !== undefined,
    needsLogin: approver?.loginMs !== undefined && ageMs > approver.loginMs,
    oidc: linkFor(deps, approval.id, '&fresh'),
  }
  return toResponse(confirmPage(view), 200)
}

/** Returns the link to a login that leads back to the page of an approval. */
function linkFor({ oidc }: ApprovalPageDeps, id = '', more = ''): LoginLink | undefined {
  return oidc && { name: oidc.name, href: `${oidc.url}?back=${encodeURIComponent(pathOf(id))}${more}` }
}

/** Returns the id of the approval whose page is requested. */
function idOf(request: Request): string | undefined {
  const text = PATH.exec(new URL(request.url).pathname)?.[1]
  try {
    return text && decodeURIComponent(text)
  } catch {
    return text
  }
}

/** The same answer for an unknown approval and for one that the person may not see. */
const NOT_FOUND = () => toResponse(messagePage('Nothing here', 'There is nothing to decide here.'), 404)

function pathOf(id: string): string {
  return `/approvals/${encodeURIComponent(id)}`
}

function backTo(id: string, headers: Readonly<Record<string, string>> = {}): Response {
  return new Response(null, {
    status: 303,
    headers: { ...PAGE_HEADERS, location: pathOf(id), ...headers },
  })
}

async function answerError(
  error: unknown,
  deps: ApprovalPageDeps & { readonly id: string | undefined },
  from: RequestSource | undefined,
): Promise<Response> {
  const { logins, onFault, id } = deps
  if (error instanceof ApiFault && error.keyId !== undefined) await logins?.failed(from, error.keyId)
  if (error instanceof ApiFault && error.code === 'unauthenticated')
    return toResponse(loginPage(linkFor(deps, id), 'The key is not known.'), 401, CHALLENGE)
  const isKnown = error instanceof ApiFault || (error instanceof ToolgateError && error.code.startsWith('approval_'))
  if (isKnown) return toResponse(messagePage('Not done', error.message), 403)
  onFault?.(error)
  return toResponse(messagePage('Not done', 'The gateway failed to answer; its log says why.'), 500)
}
