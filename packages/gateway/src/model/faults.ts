import { FAULTS, ToolgateError } from '@toolgate/core'
import { redactor, type Redactor } from '@toolgate/values/redact'
import type { ErrorBody } from './session.ts'

/** The faults of the API: `code → HTTP status`. Those of core come from its own table. */
export const API_FAULTS = {
  query_invalid: 400,
  body_invalid: 400,
  config_invalid: 400,
  request_malformed: 400,
  unauthenticated: 401,
  key_not_for_console: 403,
  key_not_for_agents: 403,
  key_not_for_hosts: 403,
  scope_insufficient: 403,
  host_forbidden: 403,
  origin_forbidden: 403,
  approval_forbidden: 403,
  halt_forbidden: 403,
  notification_forbidden: 403,
  logs_forbidden: 403,
  preferences_forbidden: 403,
  reload_forbidden: 403,
  what_if_forbidden: 403,
  call_forbidden: 403,
  restart_forbidden: 403,
  audit_forbidden: 403,
  key_forbidden: 403,
  connection_forbidden: 403,
  run_forbidden: 403,
  person_forbidden: 403,
  replica_forbidden: 403,
  forward_refused: 403,
  approval_unknown: 404,
  caller_unknown: 404,
  key_unknown: 404,
  person_unknown: 404,
  revision_unknown: 404,
  receiver_unknown: 404,
  run_unknown: 404,
  server_unknown: 404,
  tool_unknown: 404,
  route_unknown: 404,
  method_not_allowed: 405,
  request_timeout: 408,
  key_in_file: 409,
  person_in_file: 409,
  reload_outdated: 409,
  reload_refused: 409,
  replica_none: 409,
  body_too_large: 413,
  what_if_too_large: 413,
  media_type_unsupported: 415,
  /** Only sent between replicas: the user's home is another one, so the asking replica looks for it again. */
  home_elsewhere: 421,
  too_many_connections: 429,
  what_if_busy: 429,
  dry_run_busy: 429,
  headers_too_large: 431,
  internal: 500,
  /** The call may have run, so the client decides whether to repeat it. */
  owner_lost: 502,
  stopping: 503,
  issuer_unavailable: 503,
  owner_unreachable: 503,
} as const satisfies Record<string, number>

export type ApiFaultCode = keyof typeof API_FAULTS

/** A refused request. `message` gives the reason and is safe to show. */
export class ApiFault extends Error {
  override readonly name = 'ApiFault'
  readonly code: ApiFaultCode
  readonly headers: Readonly<Record<string, string>>
  /** The id of the wrong key. */
  readonly keyId: string | undefined

  constructor(code: ApiFaultCode, message: string, headers: Readonly<Record<string, string>> = {}, keyId?: string) {
    super(message)
    this.code = code
    this.headers = headers
    this.keyId = keyId
  }
}

/** Returns the response to an error. The details of unexpected errors go to `onFault` only. */
export function toErrorResponse(
  error: unknown,
  onFault: ((error: unknown) => void) | undefined,
  { redactText }: Pick<Redactor, 'redactText'> = redactor,
): Response {
  if (error instanceof ApiFault)
    return errorResponse(API_FAULTS[error.code], error.code, redactText(error.message), error.headers)
  if (error instanceof ToolgateError) {
    const { status } = FAULTS[error.code]
    if (status >= 500) onFault?.(error)
    // The person must see these errors, as their change may apply only in this process, or not at all.
    if (status < 500 || status === 503) return errorResponse(status, error.code, redactText(error.message))
  } else onFault?.(error)
  return errorResponse(API_FAULTS.internal, 'internal', 'The gateway failed to answer; its log says why.')
}

function errorResponse(
  status: number,
  code: string,
  message: string,
  headers: Readonly<Record<string, string>> = {},
): Response {
  return Response.json({ error: { code, message } } satisfies ErrorBody, { status, headers })
}
