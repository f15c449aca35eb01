import { errnoOf } from '@toolgate/values'

/** Why a connection failed, as a verb phrase about the other end. */
const REASONS: ReadonlyMap<string, string> = new Map([
  ['ECONNREFUSED', 'refused the connection: nothing listens there'],
  ['ENOTFOUND', 'was not found: no such host'],
  ['EAI_AGAIN', 'was not found: names cannot be looked up now'],
  ['ECONNRESET', 'closed the connection'],
  ['EPIPE', 'closed the connection'],
  ['EHOSTUNREACH', 'cannot be reached'],
  ['ENETUNREACH', 'cannot be reached'],
  ['ETIMEDOUT', 'did not accept the connection in time'],
  ['UND_ERR_SOCKET', 'closed the connection'],
  ['UND_ERR_HEADERS_OVERFLOW', 'sent too many headers'],
  ['UND_ERR_RES_CONTENT_LENGTH_MISMATCH', 'sent a body of another length than it named'],
  ['UND_ERR_CONNECT_TIMEOUT', 'did not accept the connection in 5 s'],
])

const UNKNOWN_CA =
  'has a certificate of an unknown authority; name the file of its authority as "ca" of the server, or in NODE_EXTRA_CA_CERTS'
const NO_TLS = 'does not speak TLS there; if that is right, write http:// in its URL'

/** Why TLS was not established, by the codes of OpenSSL and Node. */
const TLS_REASONS: ReadonlyMap<string, string> = new Map([
  ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', UNKNOWN_CA],
  ['UNABLE_TO_GET_ISSUER_CERT', UNKNOWN_CA],
  ['UNABLE_TO_GET_ISSUER_CERT_LOCALLY', UNKNOWN_CA],
  ['SELF_SIGNED_CERT_IN_CHAIN', UNKNOWN_CA],
  ['DEPTH_ZERO_SELF_SIGNED_CERT', UNKNOWN_CA],
  ['CERT_UNTRUSTED', UNKNOWN_CA],
  ['CERT_HAS_EXPIRED', 'has a certificate that has expired'],
  ['CERT_NOT_YET_VALID', 'has a certificate that is not valid yet; compare the clocks'],
  ['ERR_TLS_CERT_ALTNAME_INVALID', 'has a certificate for other names than that in its URL'],
  ['ERR_SSL_WRONG_VERSION_NUMBER', NO_TLS],
  ['ERR_SSL_PACKET_LENGTH_TOO_LONG', NO_TLS],
  ['ERR_SSL_HTTP_REQUEST', NO_TLS],
  ['ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED', 'asks for a certificate of its client, which is not supported'],
])

/** Returns why a connection failed, or `undefined` if it is not known. */
export function connectionReason(error: unknown): string | undefined {
  // If a name has several addresses, the error contains one error for each.
  const first: unknown = error instanceof AggregateError ? error.errors[0] : error
  const code = errnoOf(first) ?? ''
  return REASONS.get(code) ?? TLS_REASONS.get(code)
}
