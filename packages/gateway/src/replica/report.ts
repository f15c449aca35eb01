import type { ReplicaProblem, ReplicaRowBody, ReplicaState, ReplicasBody } from '../api/wire.ts'
import { type Membership, whyLapsed } from '@toolgate/stores/replica'
import type { WatchedLimits } from './engines.ts'
import type { Publication } from './publication.ts'

/** What the API and the metrics say about a replica, and what a person may have it accept. */
export interface ReplicaReport {
  state(): ReplicaState
  list(): Promise<ReplicasBody>
  /** Goes on with a database that lost changes, or with limits whose counts are lost. */
  accept(what: 'database' | 'limits'): Promise<void>
  /** Renewals that failed since the start. */
  failedRenewals(): number
}

interface ReportDeps {
  readonly membership: Membership
  readonly publication: Publication
  readonly fileDiffers: () => boolean
  readonly limits: WatchedLimits | undefined
}

export function createReport({ membership, publication, fileDiffers, limits }: ReportDeps): ReplicaReport {
  const state = (): ReplicaState => {
    const { lease, self } = membership
    const problem: ReplicaProblem | undefined = lease.holds ? undefined : (lease.problem?.kind ?? 'unconfirmed')
    return {
      id: self.id,
      ...(problem && { problem, reason: whyLapsed(lease) }),
      ...(lease.ageMs === undefined ? {} : { leaseAgeMs: Math.round(lease.ageMs) }),
      revision: lease.revision,
      configuration: { id: publication.running.id, isFileOther: fileDiffers() },
      ...(limits?.problem === undefined ? {} : { limits: limits.problem }),
    }
  }
  return {
    state,
    failedRenewals: () => membership.lease.failed,
    async list() {
      const rows = await membership.list()
      return {
        self: state(),
        replicas: rows.map(({ incarnation, ...row }): ReplicaRowBody => ({
          ...row,
          isSelf: incarnation === membership.self.incarnation,
        })),
      }
    },
    async accept(what) {
      if (what === 'database') await membership.accept()
      else await limits?.reopen()
    },
  }
}
