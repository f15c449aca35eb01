import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type OwnServer, startOwnServer } from './own-server.ts'

const DEPLOY = join(import.meta.dirname, '../../deploy')

export interface Behind {
  /** Of the gateway. */
  readonly port: number
  /** Of the proxy. */
  readonly at: number
  readonly certFile: string
  readonly keyFile: string
}

/** Starts a proxy of `deploy/` for `localhost` and with a test's certificate. */
type StartProxy = (command: string, behind: Behind) => Promise<OwnServer>

export const startNginx: StartProxy = (command, behind) =>
  startOwnServer({
    command,
    port: behind.at,
    prepare: ({ folder, port }) => {
      const site = edit('nginx/toolgate.conf', behind, [['listen 443 ', `listen ${port} `]])
      writeFileSync(join(folder, 'toolgate.conf'), site)
      const kinds = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
      const temporary = kinds.map((kind) => `${kind}_temp_path ${join(folder, kind)};`).join(' ')
      const http = `access_log off; ${temporary} include ${join(folder, 'toolgate.conf')};`
      const main = `pid ${join(folder, 'pid')}; error_log stderr warn; worker_processes 1; daemon off;`
      writeFileSync(join(folder, 'nginx.conf'), `${main}\nevents {}\nhttp { ${http} }\n`)
    },
    args: ({ folder }) => ['-e', 'stderr', '-p', folder, '-c', join(folder, 'nginx.conf')],
    // At once. With SIGTERM it would be the same, with SIGQUIT it would wait for streams.
    stopSignal: 'SIGTERM',
  })

export const startCaddy: StartProxy = (command, behind) =>
  startOwnServer({
    command,
    port: behind.at,
    prepare: ({ folder, port }) => {
      const site = edit('caddy/Caddyfile', behind, [['https://localhost', `https://localhost:${port}`]])
      const options = '{\n\tadmin off\n\tauto_https disable_redirects\n\tgrace_period 1s\n}\n'
      writeFileSync(join(folder, 'Caddyfile'), options + site)
    },
    env: { XDG_DATA_HOME: '.', XDG_CONFIG_HOME: '.' },
    args: () => ['run', '--config', 'Caddyfile', '--adapter', 'caddyfile'],
  })

/** Returns a file of `deploy/` with the places of a test. Throws for a text that it does not have. */
function edit(file: string, behind: Behind, more: readonly (readonly [string, string])[]): string {
  const places = [
    ['127.0.0.1:8787', `127.0.0.1:${behind.port}`],
    ['tools.example.com', 'localhost'],
    ['/etc/ssl/toolgate/fullchain.pem', behind.certFile],
    ['/etc/ssl/toolgate/privkey.pem', behind.keyFile],
    ...more,
  ] as const
  return places.reduce(
    (text, [from, to]) => {
      if (!text.includes(from)) throw new Error(`${file} has no ${from}`)
      return text.replaceAll(from, to)
    },
    readFileSync(join(DEPLOY, file), 'utf8'),
  )
}
