import type { Probe } from '@toolgate/core/groups'
import type { Upstream } from '../upstream/upstream.ts'

/** Follows whether a server is up. Why it is down may quote its stderr, which is for people only. */
export function serverProbe(server: Pick<Upstream, 'name' | 'state' | 'subscribe'>): Probe {
  const { name } = server
  return {
    key: `server ${name}`,
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
        suggestion: 'It is restarted by itself; try again in a while.',
      }
    },
  }
}
