import type { SecureContext } from 'node:tls'

/** Returns what TLS trusts: the usual authorities of this process, and those of a PEM text. */
export function trustAlso(pem: string): SecureContext {
  const { createSecureContext, getCACertificates } = process.getBuiltinModule('node:tls')
  return createSecureContext({ ca: [...getCACertificates('default'), pem] })
}
