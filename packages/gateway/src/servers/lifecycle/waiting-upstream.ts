import type { Clock } from '@toolgate/core/stores'
import type { ServerConfig } from '../../config/config.ts'
import { NO_ITEMS, type Upstream, UpstreamError } from '../../model/upstream.ts'
import type { UpstreamLogLine } from '../transport/server-logs.ts'

interface WaitingDeps {
  readonly log: (line: UpstreamLogLine) => void
  readonly clock: Clock
}

/**
 * Returns a server that is down because this machine lacks values of its entry. A reload that finds them replaces it.
 * Other servers are not affected.
 */
export function createWaitingUpstream({ name, absent = [] }: ServerConfig, { log, clock }: WaitingDeps): Upstream {
  // The redaction of secrets takes "TOKEN: text" for a secret.
  const reason = absent.map(({ path, message }) => `${message} (${path})`).join('; ')
  const message = 'it waits: restart the gateway with the variable, or run "toolgate reload" once the file is there'
  return {
    name,
    state: { status: 'down', reason, since: clock.wallMs(), restarts: 0, rejected: [] },
    items: NO_ITEMS,
    subscribe: () => () => {},
    start: async () => log({ level: 'warn', server: name, message, detail: reason }),
    restart: async () => log({ level: 'warn', server: name, message, detail: reason }),
    call: () => Promise.reject(new UpstreamError('upstream_down', `server "${name}" is not running`)),
    watch: () => Promise.reject(new UpstreamError('upstream_down', `server "${name}" is not running`)),
    close: async () => {},
  }
}
