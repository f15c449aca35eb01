import type { GatewayConfig } from '@toolgate/gateway'
import { lineOf, openConfig } from '../project/config-file.ts'

type FailedServer = GatewayConfig['servers'][number]

/** A trouble of a server over HTTP, and what mends it. */
interface ServerTrouble {
  readonly reason: RegExp
  /** The key of the server to write. */
  readonly key: 'url' | 'proxy' | 'ca' | 'headers'
  /** Returns the value to write there, or a text that stands for it. */
  readonly value: (match: RegExpExecArray, server: FailedServer) => string
}

const LOGIN = 'http://<user>:<password>@<proxy>:<port>'

/** The first row that fits counts. The reasons are those of the transport to servers. */
const TROUBLES: readonly ServerTrouble[] = [
  {
    reason: /redirects to (\S+); write (?:that|(\S+)) as "url"/,
    key: 'url',
    value: ([, to = '', better = to]) => better,
  },
  { reason: /a proxy that asks for a login|the proxy \S+ \(\S+\) asked for a login/, key: 'proxy', value: () => LOGIN },
  {
    reason: /the proxy .*(?:refused|was not found|cannot be reached|did not|broke|closed|is not one of)/,
    key: 'proxy',
    value: () => 'http://<another proxy>:<port>, or none',
  },
  { reason: /unknown authority/, key: 'ca', value: () => '<a PEM file with its authority>' },
  { reason: /does not speak TLS/, key: 'url', value: (_, { url = '' }) => url.replace(/^https:/, 'http:') },
  { reason: /certificate for other names/, key: 'url', value: () => 'https://<a name in its certificate>' },
  { reason: /other credentials/, key: 'headers', value: () => "{ Authorization: 'Bearer ${…}' }" },
  {
    reason: /does not know the session that it gave|lost its session|no longer knows its session/,
    key: 'url',
    value: () => '<the URL of one process of it, or of a balancer that routes by Mcp-Session-Id>',
  },
  {
    reason: /^(?:was not found|cannot be reached|did not accept)/,
    key: 'proxy',
    value: () => 'http://<proxy>:<port>',
  },
]

const VARIABLE = /the proxy (?:\S+ \(|in )((?:https?|all)_proxy)\b/i

/** Returns the line of the file, or the variable, that mends why a server over HTTP is down, if it is known. */
export function mendServer(file: string, server: FailedServer, reason: string): string | undefined {
  if (server.url === undefined || server.command !== undefined) return undefined
  // The environment has authorities for a proxy. A server has them for itself.
  if (/the proxy .*unknown authority/.test(reason)) return 'export NODE_EXTRA_CA_CERTS=<a PEM file with its authority>'
  for (const { reason: pattern, key, value } of TROUBLES) {
    const match = pattern.exec(reason)
    if (!match || (key === 'headers' && server.oauth)) continue
    const [, variable] = VARIABLE.exec(reason) ?? []
    if (key === 'proxy' && variable !== undefined) return `export ${variable}=${value(match, server).split(',')[0]}`
    const at = ['servers', server.name, key]
    const line = lineOf(openConfig(file), at)
    return `edit ${file}, line ${line}: ${at.join('.')}: ${value(match, server)}`
  }
  return undefined
}
