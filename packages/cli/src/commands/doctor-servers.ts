import {
  findDownloads,
  findSignInProblem,
  type GatewayConfig,
  type ServerRow,
  withheldProxies,
} from '@toolgate/gateway'
import type { Io } from '../io.ts'
import { describeDownload } from './check.ts'
import type { Finding } from './doctor-gateway.ts'
import { mendServer } from './server-mends.ts'
import { nextCommand, quoted } from '../next-command.ts'

type CheckedServer = GatewayConfig['servers'][number]

/** A trouble of a server's process or of its sign-in, by its reason, and the line of the file that mends it. */
interface StartTrouble {
  readonly says: RegExp
  /** Returns the line after `servers.<name>.`; `undefined` where this trouble is not that of the server. */
  line(server: CheckedServer, env: Io['env']): string | undefined
}

const CERTIFICATE =
  /SELF_SIGNED_CERT|UNABLE_TO_(?:GET|VERIFY)|CERTIFICATE_VERIFY_FAILED|certificate verify failed|self.signed certificate|unable to get (?:local )?issuer|UnknownIssuer|invalid peer certificate|certificate signed by unknown authority/i
const NETWORK =
  /ENOTFOUND|EAI_AGAIN|ETIMEDOUT|ECONNREFUSED|ECONNRESET|ENETUNREACH|network|Failed to fetch|error sending request|dns error|\bE40[134]\b|\b40[13]\b/i

const TROUBLES: readonly StartTrouble[] = [
  { says: CERTIFICATE, line: (server) => (server.command === undefined ? undefined : `env: ${trustOf(server)}`) },
  { says: NETWORK, line: (server, env) => (downloadsOf(server).length === 0 ? undefined : passOf(server, env)) },
  {
    says: /did not answer in|did not listen/,
    line: (server) => (downloadsOf(server).length === 0 ? undefined : `startTimeoutMs: ${server.startTimeoutMs * 10}`),
  },
  {
    says: /\b401\b/,
    line: (server) =>
      server.oauth || server.command !== undefined || Object.keys(server.headers).length > 0 ? undefined : 'oauth: {}',
  },
]

/** Returns what mends a server that does not start: a line of the file, or else the command that shows what it says. */
export function mendOf({ servers, file }: GatewayConfig, { name, reason = '' }: ServerRow, env: Io['env']): string {
  const server = servers.find((one) => one.name === name)
  const known = server && mendServer(file, server, reason)
  if (known !== undefined) return known
  for (const { says, line } of TROUBLES) {
    const mends = server && says.test(reason) ? line(server, env) : undefined
    if (mends !== undefined) return toEdit(file, name, mends)
  }
  if (server?.command === undefined) return nextCommand(`add ${quoted(name)} <url> --replace`, { config: file })
  return [server.command, ...server.args].map((word) => (/^[\w./:@=-]+$/.test(word) ? word : `'${word}'`)).join(' ')
}

/** Returns the findings about servers that need no start: proxies that children do not get, and where users sign in. */
export async function checkSurroundings({ servers, file }: GatewayConfig, env: Io['env']): Promise<readonly Finding[]> {
  const withheld = withheldProxies(env)
  const downloading = servers.filter((server) => downloadsOf(server).length > 0)
  const downloads = downloading.map((server): Finding => ({
    level: 'ok',
    about: `server ${server.name}`,
    text: describeDownload(server.name, downloadsOf(server)),
  }))
  const proxies = downloading.flatMap((server): readonly Finding[] => {
    const missing = withheld.filter((name) => !(name in server.env))
    if (missing.length === 0) return []
    const text = `its process does not get ${missing.join(', ')}, which has a password`
    return [
      {
        level: 'warn',
        about: `server ${server.name}`,
        text,
        mend: toEdit(file, server.name, `pass: [${missing.join(', ')}]`),
      },
    ]
  })
  const signIns = servers.map(async (server): Promise<readonly Finding[]> => {
    const problem = await findSignInProblem(server)
    if (!problem) return []
    const { text, mend = `servers.${server.name}.oauth` } = problem
    return [{ level: 'error', about: `server ${server.name}`, text, mend: `edit ${file}: ${mend}` }]
  })
  return [...downloads, ...proxies, ...(await Promise.all(signIns)).flat()]
}

function toEdit(file: string, name: string, line: string): string {
  return `edit ${file}: servers.${name}.${line}`
}

function downloadsOf({ command, args }: CheckedServer): readonly string[] {
  return command === undefined ? [] : findDownloads(command, args)
}

const PYTHON = /(?:^|[/\\])(?:uvx?|pipx?|python[\d.]*)$/
const NODE = /(?:^|[/\\])(?:npx?|pnpx?|node|yarn|bunx?)(?:\.cmd)?$/

/** Returns the variable by which a program trusts a certificate of a company. */
function trustOf({ command = '' }: CheckedServer): string {
  if (PYTHON.test(command)) return '{ SSL_CERT_FILE: <file>.pem, REQUESTS_CA_BUNDLE: <file>.pem }'
  return NODE.test(command) ? '{ NODE_EXTRA_CA_CERTS: <file>.pem }' : '{ SSL_CERT_FILE: <file>.pem }'
}

/** Variables that name a registry or its settings. Servers get them only if the file passes them. */
const REGISTRIES = [
  'npm_config_registry',
  'NPM_CONFIG_REGISTRY',
  'npm_config_userconfig',
  'UV_DEFAULT_INDEX',
  'UV_INDEX',
  'UV_INDEX_URL',
  'PIP_INDEX_URL',
  'GOPROXY',
  'DOCKER_HOST',
]

function passOf({ env: own }: CheckedServer, env: Io['env']): string | undefined {
  const missing = [...REGISTRIES, ...withheldProxies(env)].filter((name) => env[name] && !(name in own))
  return missing.length === 0 ? undefined : `pass: [${missing.join(', ')}]`
}
