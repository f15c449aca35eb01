import { type Clock, type ReplicaLease, type StateStore, systemClock } from '@toolgate/core/stores'
import { LEASE_MS } from '../replica/lease.ts'
import { LIBRARY, Membership } from '../replica/membership.ts'
import { ANSWER_MS } from '../replica/renewals.ts'
import type { PostgresReplicas } from './replicas.ts'

export interface JoinOptions {
  /** Called with the reason why the lease could not be renewed, once until it can be renewed again. */
  readonly onFault?: (error: unknown) => void
}

/**
 * A process among those that share the database. After a halt by one of them, no other starts calls for more than 2 s.
 */
export interface Joined {
  /** The state for the gate. A halt resolves when it is in force in every process that has joined. */
  readonly state: StateStore
  /** The lease that the gate checks. If the database does not answer for 2 s, calls are refused. */
  readonly lease: ReplicaLease
  /**
   * Resolves when the gate with this state knows all halts, and the lease holds. Call it before each request, because
   * the lease has expired if the process was frozen meanwhile. It costs nothing while the lease holds. It also resolves
   * if the database does not answer: the gate then refuses.
   */
  ready(): Promise<void>
  /** Continues with a database that has lost changes, such as after a fail-over. Call it once a person has checked. */
  accept(): Promise<void>
  close(): Promise<void>
}

interface JoinedStores {
  readonly state: StateStore
  openReplicas(options: {
    readonly leaseMs: number
    readonly answerMs: number
    readonly onNotice: () => void
  }): PostgresReplicas
}

/** Joins the processes that share the stores. */
export async function joinProcesses(
  { state, openReplicas }: JoinedStores,
  clock: Clock = systemClock,
  { onFault = () => {} }: JoinOptions = {},
): Promise<Joined> {
  const replicas = openReplicas({ leaseMs: LEASE_MS, answerMs: ANSWER_MS, onNotice: () => membership.hint() })
  const membership = new Membership({ version: LIBRARY, state, replicas, clock, onFault })
  await membership.join()
  let hasBegun = false
  let renewing: Promise<void> | undefined
  const renew = async () => {
    await (hasBegun ? membership.renew() : membership.begin())
    hasBegun ||= membership.lapse() === undefined
  }
  return {
    state: membership.state,
    lease: membership,
    async ready() {
      if (hasBegun && !membership.lapse()) return
      await (renewing ??= renew().finally(() => (renewing = undefined)))
    },
    accept: () => membership.accept(),
    close: () => membership.close(),
  }
}
