import path from 'node:path'
import { CertificateError, readCertificate } from '../../util/certificate.ts'
import type { GatewayConfig } from '../config.ts'
import { isLoopback } from '../loopback.ts'
import { found, has, lengthOf, type Reading, reportIn } from '../reading.ts'
import { listenSchema } from '../schema/listen.ts'
import { type Section, withDefaults } from '../section.ts'

const written = withDefaults(listenSchema, ({ configDir }) => listenIn(configDir))

export const listen: Section<GatewayConfig['listen']> = {
  ...written,
  read(reading, key) {
    checkHost(reading)
    return written.read(reading, key)
  },
}

/** Reads the certificate once, so that a problem with it has the line that names the file. */
function listenIn(configDir: string) {
  return listenSchema.transform(({ host = '127.0.0.1', port = 8787, tls, ...rest }, ctx): GatewayConfig['listen'] => {
    if (tls === undefined) return { host, port, ...rest }
    const files = { certFile: path.resolve(configDir, tls.certFile), keyFile: path.resolve(configDir, tls.keyFile) }
    try {
      readCertificate(files)
    } catch (error) {
      if (!(error instanceof CertificateError)) throw error
      reportIn(ctx, ['tls', error.field], error.message)
    }
    return { host, port, tls: files, ...rest }
  })
}

/** Beyond loopback, callers must have secret keys. */
function checkHost({ source }: Reading): void {
  const host = source.get(['listen', 'host'])?.value
  if (typeof host === 'string' && !isLoopback(host)) {
    const callers = lengthOf(source, ['callers'])
    if (callers === 0 && !has(source, ['oauth']))
      source.report(
        ['listen', 'host'],
        `${found(source, ['listen', 'host'])} and no callers, expected loopback (127.0.0.1), or callers with keys`,
      )
    for (let i = 0; i < callers; i++) {
      const key = source.get(['callers', i, 'key'])?.value
      if (typeof key === 'string' && key.startsWith('demo-'))
        source.report(['callers', i, 'key'], `found a demo key with listen.host beyond loopback, expected a secret one`)
    }
  }
}
