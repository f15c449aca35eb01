import {
  decodedPart,
  exceptionsOf,
  type NamedProxy,
  parseProxy,
  proxiesOf,
  type ProxyRules,
  THIS_MACHINE,
} from '../../util/proxy-rules.ts'
import type { GatewayConfig } from '../config.ts'
import { type ConfigPath, formatPath } from '../problems.ts'
import { checkShape, has, type Reading } from '../reading.ts'
import { proxySchema } from '../schema/proxy.ts'
import type { Section } from '../section.ts'

/** The proxy of all requests to servers and authorization servers. By default it is that of the environment. */
export const proxy: Section<ProxyRules | undefined> = {
  schema: proxySchema.describe(
    'The proxy through which servers with a "url" and authorization servers are reached; "none" for no proxy. Default: HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY. This machine itself is reached directly, unless a server has a proxy of its own.',
  ),
  read(reading, key) {
    const { env } = reading
    if (!has(reading.source, [key])) return proxiesOf(env)
    const rules = readProxy(reading, [key], exceptionsOf(env))
    return rules && { ...rules, except: [...THIS_MACHINE, ...rules.except] }
  },
}

/** Returns the proxy at a path of the file; `undefined` for none. */
export function readProxy(
  { source }: Reading,
  at: ConfigPath,
  defaultExcept: readonly string[] = [],
): ProxyRules | undefined {
  const input = checkShape(source, at, proxySchema)
  if (input === undefined || input === 'none') return undefined
  const { url, except = defaultExcept } = typeof input === 'string' ? { url: input } : input
  const named: NamedProxy = { url, from: formatPath(at) }
  return { http: named, https: named, except }
}

/** Returns the logins of all proxies, in the forms in which they may appear. */
export function proxySecrets({ proxy: general, servers }: Pick<GatewayConfig, 'proxy' | 'servers'>): readonly string[] {
  const rules = [general, ...servers.map((server) => server.proxy)]
  const urls = new Set(rules.flatMap((one) => [one?.http?.url, one?.https?.url]))
  return [...urls].flatMap((text) => (text === undefined ? [] : loginForms(text)))
}

function loginForms(text: string): readonly string[] {
  const { username, password } = parseProxy(text) ?? {}
  if (username === undefined || password === undefined || password === '') return []
  const [user, secret] = [decodedPart(username), decodedPart(password)]
  return [password, secret, Buffer.from(`${user}:${secret}`).toString('base64')]
}
