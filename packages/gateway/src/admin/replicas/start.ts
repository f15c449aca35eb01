import { setTimeout as sleep } from 'node:timers/promises'
import type { Room } from '../../heart/room.ts'
import { auditFamilies, replicaFamilies } from './replica-families.ts'

/** How long load balancers have to notice that a replica stops, and at most half of the time for stopping. */
const ANNOUNCE_MS = 3_000

/** This gateway as one of several replicas: its metrics, the state of its lease, and the announcement that it stops. */
export const replicas: Room = {
  name: 'replicas',
  open({ replica, stores, config }) {
    if (!replica) return undefined
    const { report, membership } = replica
    return {
      metrics: [() => replicaFamilies(report), () => auditFamilies(stores.audit)],
      health(withReasons) {
        const state = report.state()
        const { id, problem } = state
        const body = { replica: withReasons ? state : { id, ...(problem && { problem }) } }
        return { isRefusing: problem !== undefined, body }
      },
      announce() {
        membership.announceEnd()
        const { drainMs = Number.POSITIVE_INFINITY } = config
        return sleep(Math.min(ANNOUNCE_MS, drainMs / 2))
      },
    }
  },
}
