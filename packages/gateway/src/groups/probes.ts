import type { Probe } from '@toolgate/core/groups'
import type { Redactor } from '@toolgate/core/redact'
import type { ProbeConfig } from '../config/config.ts'
import type { Upstream } from '../upstream/upstream.ts'
import { commandProbe, type ProcessWatch } from './command-probe.ts'
import { envProbe } from './env-probe.ts'
import { httpProbe } from './http-probe.ts'
import { serverProbe } from './server-probe.ts'
import { tcpProbe } from './tcp-probe.ts'

export interface ProbesDeps {
  readonly servers: readonly Pick<Upstream, 'name' | 'state' | 'subscribe'>[]
  readonly redactor: Redactor
  readonly reaper: ProcessWatch
}

/** Gives the probe that the configuration describes. */
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
