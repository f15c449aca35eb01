import type { Probe } from '@toolgate/core/groups'
import { checkShape, shapeOf } from '@toolgate/values'
import type { Redactor } from '@toolgate/values/redact'
import type { ProbeConfig } from '../../config/config.ts'
import type { ProcessWatch } from '../../util/bounded-command.ts'
import { commandProbe } from './command-probe.ts'
import { httpProbe, tcpProbe } from './network-probes.ts'
import type { Upstream } from '../../model/upstream.ts'

export interface ProbesDeps {
  readonly servers: readonly Pick<Upstream, 'name' | 'state' | 'subscribe'>[]
  readonly redactor: Redactor
  readonly reaper: ProcessWatch
}

/** Returns the probe of a configuration. */
export function toProbe(config: ProbeConfig, { servers, redactor, reaper }: ProbesDeps): Probe {
  if ('env' in config) return envProbe(config.env, { equals: config.equals })
  if ('tcp' in config) return tcpProbe(config.tcp, { timeoutMs: config.timeoutMs })
  if ('http' in config) {
    const { http, status, headers, timeoutMs } = config
    return httpProbe(http, { status, headers, timeoutMs })
  }
  if ('command' in config) {
    const { command, cwd, variables, timeoutMs } = config
    return commandProbe(command, { cwd, env: variables, timeoutMs, redactor, reaper })
  }
  const server = servers.find(({ name }) => name === config.server)
  if (!server) throw new TypeError(`there is no server ${config.server}`)
  return serverProbe(server)
}

export interface EnvProbeOptions {
  /** The expected value. Default: any value that is not blank. */
  readonly equals?: string | undefined
  /** The environment. Default: that of the process. */
  readonly env?: Readonly<Record<string, string | undefined>>
}

const OPTIONS = shapeOf<EnvProbeOptions>({ equals: true, env: true })

/** Returns a probe that checks whether an environment variable is set and not blank, or has one value. Never shows the value. */
export function envProbe(name: string, options: EnvProbeOptions = {}): Probe {
  checkShape('envProbe', options, OPTIONS)
  const { equals, env = process.env } = options
  return {
    key: `env ${JSON.stringify([name, equals ?? null])}`,
    kind: 'env',
    what: `the environment variable ${name}`,
    ask() {
      const value = Object.hasOwn(env, name) ? env[name] : undefined
      if (equals !== undefined && value === equals) return true
      if (value === undefined || value.trim() === '') return no(`the environment variable ${name} is not set`)
      return equals === undefined || no(`the environment variable ${name} does not have the expected value`)
    },
  }
}

function no(reason: string): { available: false; reason: string } {
  return { available: false, reason }
}

const numbers = new WeakMap<object, string>()
let made = 0

/** Returns a different text for each process of a server, so that a probe of a former process is not reused. */
function numberOf(server: object): string {
  let number = numbers.get(server)
  if (number === undefined) numbers.set(server, (number = ` ${++made}`))
  return number
}

/**
 * Returns a probe that follows whether a server is up. The reason may quote the server's stderr, so it is only for
 * people.
 */
export function serverProbe(server: Pick<Upstream, 'name' | 'state' | 'subscribe'>): Probe {
  const { name } = server
  return {
    key: `server ${name}${numberOf(server)}`,
    kind: 'server',
    what: `the server ${name}`,
    subscribe: (listener) => server.subscribe(listener),
    ask() {
      const { status, reason } = server.state
      if (status === 'ready') return true
      return {
        available: false,
        reason: `the server ${name} is ${status === 'starting' ? 'starting' : 'down'}`,
        ...(reason === undefined ? {} : { detail: reason }),
        suggestion: 'It is restarted automatically; try again later.',
      }
    },
  }
}
