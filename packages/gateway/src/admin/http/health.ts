import { messageOf } from '@toolgate/values'
import type { RoomHealth } from '../../heart/room.ts'
import type { ReadyBody, ServerRow } from '../../model/rows.ts'

interface HealthAnswer<Body> {
  readonly status: 200 | 503
  readonly body: Body
}

export interface GatewayHealth {
  /** Answers that the process is alive and its event loop runs. */
  healthz(): HealthAnswer<{ readonly status: 'ok' }>
  /**
   * Answers whether every server has answered or failed its first start. Only console keys receive the list of servers.
   */
  readyz(options?: { readonly withServers?: boolean }): HealthAnswer<ReadyBody>
}

export interface HealthDeps {
  servers(): readonly ServerRow[]
  readonly isLeaving: () => boolean
  /** Returns whether the gateway can accept calls, combined from all rooms. */
  readonly rooms: (withReasons: boolean) => RoomHealth
  /** Throws if the state is not writable. Called at most once a second. */
  readonly checkState?: (() => void) | undefined
  /** Returns the monotonic time in milliseconds. */
  readonly nowMs: () => number
}

/**
 * Returns the two health answers. Once ready, the gateway stays ready: a later restart of one server does not affect
 * the others.
 */
export function createHealth(deps: HealthDeps): GatewayHealth {
  let ready = false
  const stateProblem = createStateCheck(deps)
  return {
    healthz: () => ({ status: 200, body: { status: 'ok' } }),
    readyz({ withServers = false } = {}) {
      const servers = deps.servers()
      ready ||= servers.every(isSettled)
      const rows = withServers ? { servers: servers.map(toRow) } : {}
      const state = stateProblem()
      const unwritten = state && { state: withServers ? state : { code: state.code } }
      const { isRefusing = false, body: ofRooms } = deps.rooms(withServers)
      const word = !ready ? 'starting' : state || isRefusing ? 'refusing' : 'ready'
      const status = deps.isLeaving() ? 'stopping' : word
      return { status: status === 'ready' ? 200 : 503, body: { status, ...rows, ...unwritten, ...ofRooms } }
    },
  }
}

const CHECK_MS = 1000

/** Returns why the state is not writable, according to a check that is at most a second old. */
function createStateCheck({ checkState, nowMs }: HealthDeps): () => ReadyBody['state'] | undefined {
  let checkedMs = Number.NEGATIVE_INFINITY
  let problem: ReadyBody['state']
  return () => {
    if (!checkState || nowMs() - checkedMs < CHECK_MS) return problem
    checkedMs = nowMs()
    try {
      checkState()
      problem = undefined
    } catch (error) {
      problem = { code: 'state_unavailable', message: messageOf(error) }
    }
    return problem
  }
}

/** Returns the state of a server without its reason, which may name paths of the machine. */
function toRow({ name, status, waitsFor }: ServerRow): NonNullable<ReadyBody['servers']>[number] {
  return { name, status, ...(waitsFor && { waitsFor }) }
}

function isSettled({ status, restarts }: ServerRow): boolean {
  return status !== 'starting' || restarts > 0
}
