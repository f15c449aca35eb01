import type { ReadyBody, ServerRow } from './wire.ts'

export interface HealthAnswer<Body> {
  readonly status: 200 | 503
  readonly body: Body
}

export interface Health {
  /** The process is alive and its event loop turns. */
  healthz(): HealthAnswer<{ readonly status: 'ok' }>
  /** Every server has answered or failed its first start. Tells no reasons: it needs no key. */
  readyz(): HealthAnswer<ReadyBody>
}

/** Gives the two health answers. Once ready, always ready: a server that restarts later does not take the others away. */
export function createHealth(deps: { servers(): readonly ServerRow[]; isStopping?: () => boolean }): Health {
  let ready = false
  return {
    healthz: () => ({ status: 200, body: { status: 'ok' } }),
    readyz() {
      const servers = deps.servers()
      ready ||= servers.every(isSettled)
      const rows = servers.map(({ name, status }) => ({ name, status }))
      const status = deps.isStopping?.() ? 'stopping' : ready ? 'ready' : 'starting'
      return { status: status === 'ready' ? 200 : 503, body: { status, servers: rows } }
    },
  }
}

function isSettled({ status, restarts }: ServerRow): boolean {
  return status !== 'starting' || restarts > 0
}
