import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Caller } from '@toolgate/core'
import { checkOrigin, type OriginRules } from '../../auth/origin.ts'
import type { FailedLogins } from '../../auth/failed-logins.ts'
import { type Authenticator, isRefused, toKeyId } from '../../auth/credential.ts'

interface MetricsEndpointDeps {
  readonly authenticator: Authenticator
  readonly origins: OriginRules
  readonly logins?: Pick<FailedLogins, 'failed'>
  /** Whether the endpoint needs no key. */
  readonly isPublic: boolean
  /** Returns the metrics for a person, or without a person the public ones. */
  readonly metrics: (person: Caller | undefined) => Promise<string>
}

/** Serves `/metrics`. Rejects if the metrics cannot be created. */
export type MetricsEndpoint = (request: IncomingMessage, response: ServerResponse) => Promise<void>

/** Returns the endpoint that Prometheus scrapes. It needs a console key, unless the configuration makes it public. */
export function createMetricsEndpoint(deps: MetricsEndpointDeps): MetricsEndpoint {
  return async (request, response) => {
    const { refusal, person } = await admit(request, deps)
    if (refusal) {
      const keyId = refusal.status === 401 ? toKeyId(request.headers.authorization) : undefined
      if (keyId !== undefined) await deps.logins?.failed(request, keyId)
      return answer(response, refusal.status, JSON_TYPE, JSON.stringify({ error: refusal.error }), refusal.headers)
    }
    answer(response, 200, acceptedType(request.headers.accept), await deps.metrics(person))
  }
}

interface MetricsRefusal {
  readonly status: number
  readonly error: { readonly code: string; readonly message: string }
  readonly headers?: Readonly<Record<string, string>>
}

/** Returns the person who may read the metrics, or the reason why the request is refused. */
async function admit(
  { method, headers }: IncomingMessage,
  { authenticator, origins, isPublic }: MetricsEndpointDeps,
): Promise<{ readonly refusal?: MetricsRefusal; readonly person?: Caller }> {
  const foreign = checkOrigin(headers, origins)
  if (foreign) return toRefusal(403, foreign.header === 'Host' ? 'host_forbidden' : 'origin_forbidden', foreign.message)
  if (method !== 'GET' && method !== 'HEAD')
    return toRefusal(405, 'method_not_allowed', `${method} is not served at /metrics; GET is.`, { allow: 'GET, HEAD' })
  if (isPublic) return {}
  const credential = await authenticator.authenticate(headers, '/metrics')
  if (isRefused(credential))
    return toRefusal(401, 'unauthenticated', 'The metrics need a console key: Authorization: Bearer <key>.', {
      'www-authenticate': authenticator.challenge(credential.refused, '/metrics'),
    })
  if (credential.for !== 'console')
    return toRefusal(403, 'key_not_for_console', "This is an agent's key, for /mcp. The metrics need a console key.")
  return { person: credential.caller }
}

function toRefusal(
  status: number,
  code: string,
  message: string,
  headers: Readonly<Record<string, string>> = {},
): { readonly refusal: MetricsRefusal } {
  return { refusal: { status, error: { code, message }, headers } }
}

const JSON_TYPE = 'application/json'

/** Returns the requested version of the format. The text is the same in both. */
function acceptedType(accept: string | undefined): string {
  const version = /text\/plain\s*;\s*version=1\.0\.0/.test(accept ?? '') ? '1.0.0' : '0.0.4'
  return `text/plain; version=${version}; charset=utf-8`
}

function answer(
  response: ServerResponse,
  status: number,
  type: string,
  text: string,
  headers: Readonly<Record<string, string>> = {},
): void {
  response.writeHead(status, {
    'content-type': type,
    'content-length': Buffer.byteLength(text),
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    ...headers,
  })
  response.end(text)
}
