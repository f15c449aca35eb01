import { hash } from 'node:crypto'
import { JsonFault } from '@toolgate/values/json'
import { type AccessRules, findLogin, type Login } from './access.ts'
import type { ApprovalPageHtml } from './approval-page-html.ts'
import { ApiFault } from '../../model/faults.ts'
import { invalidBody, readText } from './request.ts'

export const CHALLENGE = { 'www-authenticate': 'Bearer realm="toolgate"' }
const MAX_FORM_BYTES = 128 * 1024

/** Checks that a change comes from this page. Forms of other sites are refused before anything is read. */
export function checkSamePage({ headers }: Request): void {
  const site = headers.get('sec-fetch-site')
  if (!headers.has('origin') || (site !== null && site !== 'same-origin'))
    throw new ApiFault('origin_forbidden', 'This form must be sent from its own page.')
}

/** Returns the login of a request, if there is one. */
export async function currentLogin(request: Request, access: AccessRules): Promise<Login | undefined> {
  try {
    return await findLogin(request, access)
  } catch (error) {
    if (error instanceof ApiFault && error.code === 'unauthenticated') return undefined
    throw error
  }
}

/** Reads a form. @throws {ApiFault} */
export async function readForm(request: Request): Promise<URLSearchParams> {
  if (!(request.headers.get('content-type') ?? '').startsWith('application/x-www-form-urlencoded'))
    throw new ApiFault('media_type_unsupported', 'The form must be application/x-www-form-urlencoded.')
  try {
    return new URLSearchParams(await readText(request, MAX_FORM_BYTES))
  } catch (error) {
    throw error instanceof JsonFault ? invalidBody(`The form ${error.problem}.`) : error
  }
}

/** No script runs, no other page may frame or read the page, and the browser does not cache it. */
export const PAGE_HEADERS = {
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
}

export function toResponse(
  { html, style }: ApprovalPageHtml,
  status: number,
  headers: Readonly<Record<string, string>> = {},
): Response {
  const policy = [
    "default-src 'none'",
    `style-src 'sha256-${hash('sha256', style, 'base64')}'`,
    "form-action 'self'",
    "frame-ancestors 'none'",
    "base-uri 'none'",
  ].join('; ')
  return new Response(html, {
    status,
    headers: {
      ...PAGE_HEADERS,
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': policy,
      ...headers,
    },
  })
}
