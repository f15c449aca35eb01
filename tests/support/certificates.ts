import { execFileSync } from 'node:child_process'
import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'

const NEW_KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']

/** A certificate authority of a test's own, which this process trusts, and certificates of it for `localhost`. */
export interface TestAuthority {
  /** PEM. */
  readonly file: string
  /** Writes a certificate with its chain, and its key. A further one of the same name replaces both. */
  issue(name: string): { readonly certFile: string; readonly keyFile: string }
}

export function createAuthority(openssl: string, folder: string): TestAuthority {
  const run = (...args: readonly string[]) => execFileSync(openssl, args, { cwd: folder, stdio: 'pipe' })
  const [file, caKey] = [join(folder, 'ca.pem'), join(folder, 'ca.key')]
  run('req', '-x509', ...NEW_KEY, '-keyout', caKey, '-out', file, '-days', '2', '-subj', '/CN=Test authority')
  setDefaultCACertificates([...getCACertificates('default'), readFileSync(file, 'utf8')])
  return {
    file,
    issue(name) {
      const [certFile, keyFile] = [join(folder, `${name}.pem`), join(folder, `${name}.key`)]
      const signed = ['-CA', file, '-CAkey', caKey, '-days', '2', '-subj', '/CN=localhost']
      const names = ['-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1', '-addext', 'basicConstraints=CA:FALSE']
      run('req', '-x509', ...NEW_KEY, '-keyout', keyFile, '-out', certFile, ...signed, ...names)
      // Servers that start as root read them as such, others as nobody.
      writeFileSync(certFile, readFileSync(certFile, 'utf8') + readFileSync(file, 'utf8'))
      chmodSync(keyFile, 0o644)
      return { certFile, keyFile }
    },
  }
}
