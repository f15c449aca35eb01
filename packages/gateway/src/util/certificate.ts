import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import { errnoOf, messageOf } from '@toolgate/values'

/** The absolute paths of a certificate and its key. */
export interface TlsFiles {
  /** PEM: the certificate, then the chain to its authority. */
  readonly certFile: string
  /** PEM, without a passphrase. */
  readonly keyFile: string
}

/** A certificate with its key, both checked. */
export interface Certificate {
  /** PEM. */
  readonly cert: string
  /** PEM. Never log it. */
  readonly key: string
  /** The fingerprint of the certificate, in hex. */
  readonly fingerprint: string
  /** When the certificate expires, in wall-clock milliseconds. */
  readonly expiresAtMs: number
}

/** A certificate that cannot be used, with the file that causes the problem. The text never quotes a file. */
export class CertificateError extends Error {
  override readonly name = 'CertificateError'
  readonly field: keyof TlsFiles

  constructor(field: keyof TlsFiles, message: string) {
    super(message)
    this.field = field
  }
}

const MAX_BYTES = 1024 * 1024

/** Reads both files. @throws {CertificateError} */
export function readCertificate({ certFile, keyFile }: TlsFiles): Certificate {
  const cert = read('certFile', certFile)
  const key = read('keyFile', keyFile)
  const x509 = parse('certFile', 'a certificate in PEM', () => new X509Certificate(cert))
  const secret: KeyObject = parse('keyFile', 'a private key in PEM, without a passphrase', () => createPrivateKey(key))
  if (!x509.checkPrivateKey(secret)) throw new CertificateError('keyFile', 'is not the key of the certificate')
  return { cert, key, fingerprint: x509.fingerprint256, expiresAtMs: Date.parse(x509.validTo) }
}

function read(field: keyof TlsFiles, file: string): string {
  try {
    const stats = statSync(file)
    // Reading a pipe could block forever.
    if (!stats.isFile()) throw new Error('it is not a file')
    if (stats.size > MAX_BYTES) throw new Error(`it has more than ${MAX_BYTES} bytes`)
    return readFileSync(file, 'utf8')
  } catch (error) {
    const reason = READ_ERRORS.get(errnoOf(error) ?? '') ?? messageOf(error)
    throw new CertificateError(field, `${file} cannot be read: ${reason}`)
  }
}

const READ_ERRORS: ReadonlyMap<string, string> = new Map([
  ['ENOENT', 'there is no such file'],
  ['EACCES', 'permission denied'],
])

/** Parses a file, and replaces OpenSSL's own messages, which do not help an operator. */
function parse<T>(field: keyof TlsFiles, expected: string, make: () => T): T {
  try {
    return make()
  } catch {
    throw new CertificateError(field, `does not hold ${expected}`)
  }
}
