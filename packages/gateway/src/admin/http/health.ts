import { messageOf } from '@toolgate/values'
import type { IssuerRow, ReadyBody, ReplicaState, ServerRow } from '../../model/rows.ts'

export interface HealthAnswer<Body> {
  readonly status: 200 | 503
  readonly body: Body
}

export interface Health {
  /** The process is alive and its event loop turns. */
  healthz(): HealthAnswer<{ readonly status: 'ok' }>
  /** Whether every server has answered or failed its first start. The list of servers is for console keys. */
  readyz(options?: { readonly withServers?: boolean }): HealthAnswer<ReadyBody>
}

interface HealthDeps {
  servers(): readonly ServerRow[]
  /** Authorization servers. Default: none. */
  issuers?(): readonly IssuerRow[]
  isStopping?: () => boolean
  /** Absent where this gateway is alone. */
  replica?: (() => ReplicaState) | undefined
  reloadWaiting?: (() => string | undefined) | undefined
  /** Throws if the state takes no writes. Called at most once a second. */
  checkState?: (() => void) | undefined
  /** Monotonic. Default: that of the process. */
  nowMs?: () => number
  /** Why no call can be recorded. */
  auditProblem?: (() => { readonly code: string; readonly message: string } | undefined) | undefined
}

/** Returns the two health answers. Once ready, the gateway stays ready: a later restart of one server does not affect the others. */
export function createHealth(deps: HealthDeps): Health {
  let ready = false
  const stateProblem = createStateCheck(deps)
  return {
    healthz: () => ({ status: 200, body: { status: 'ok' } }),
    readyz({ withServers = false } = {}) {
      const servers = deps.servers()
      ready ||= servers.every(isSettled)
      const rows = withServers ? { servers: servers.map(({ name, status }) => ({ name, status })) } : {}
      const replica = deps.replica?.()
      const audit = deps.auditProblem?.()
      const state = stateProblem()
      const waiting = withServers ? deps.reloadWaiting?.() : undefined
      const word = !ready ? 'starting' : replica?.problem || audit || state ? 'refusing' : 'ready'
      const status = deps.isStopping?.() ? 'stopping' : word
      const refusal = audit && { audit: withServers ? audit : { code: audit.code } }
      const unwritten = state && { state: withServers ? state : { code: state.code } }
      const others = { ...unwritten, ...issuersOf(deps, withServers), ...replicaOf(replica, withServers), ...refusal }
      const body = { status, ...rows, ...others, ...(waiting !== undefined && { reload: waiting }) } as const
      return { status: status === 'ready' ? 200 : 503, body }
    },
  }
}

const CHECK_MS = 1000

/** Returns why the state takes no write, as the last check of a second has shown. */
function createStateCheck({
  checkState,
  nowMs = () => performance.now(),
}: HealthDeps): () => ReadyBody['state'] | undefined {
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

/** A probe without a key learns which issuers are down, as their names are public. */
function issuersOf({ issuers }: HealthDeps, withProblems: boolean): Pick<ReadyBody, 'issuers'> {
  const rows = issuers?.() ?? []
  if (rows.length === 0) return {}
  return {
    issuers: rows.map(({ problem, ...row }) => (withProblems && problem !== undefined ? { ...row, problem } : row)),
  }
}

function replicaOf(replica: ReplicaState | undefined, withReasons: boolean): Pick<ReadyBody, 'replica'> {
  if (!replica) return {}
  const { id, problem } = replica
  return { replica: withReasons ? replica : { id, ...(problem && { problem }) } }
}

function isSettled({ status, restarts }: ServerRow): boolean {
  return status !== 'starting' || restarts > 0
}
