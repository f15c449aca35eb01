import type { Clock } from '@toolgate/core/stores'
import { LEASE_MS, type Membership, whyLapsed } from '@toolgate/stores/replica'
import type { InForceBody, ReplicaProblem, ReplicaRowBody, ReplicaState, ReplicasBody } from '../model/rows.ts'
import type { ReplicaRow } from './replica-store.ts'
import type { WatchedLimits } from './engines.ts'
import type { Publication } from './publication.ts'

/** The data about replicas for the API and the metrics, and the problems that a person may accept. */
export interface ReplicaReport {
  state(): ReplicaState
  list(): Promise<ReplicasBody>
  /**
   * Returns a function that tells whether a change of the shared state applies on every replica. It takes the time of
   * the change, by the clock of any replica.
   */
  inForce(): Promise<(atMs: number) => InForceBody>
  /** Continues with a database that lost changes, or with limits that lost their counts. */
  accept(what: 'database' | 'limits'): Promise<void>
  /** The number of failed renewals since the start. */
  failedRenewals(): number
}

interface ReportDeps {
  readonly membership: Membership
  readonly publication: Publication
  readonly otherFile: () => string | undefined
  readonly limits: WatchedLimits | undefined
  readonly clock: Pick<Clock, 'wallMs'>
}

export function createReport({ membership, publication, otherFile, limits, clock }: ReportDeps): ReplicaReport {
  const state = (): ReplicaState => {
    const { lease, self } = membership
    const problem: ReplicaProblem | undefined = lease.holds ? undefined : (lease.problem?.kind ?? 'unconfirmed')
    return {
      id: self.id,
      ...(problem && { problem, reason: whyLapsed(lease) }),
      ...(lease.ageMs === undefined ? {} : { leaseAgeMs: Math.round(lease.ageMs) }),
      revision: lease.revision,
      configuration: { id: publication.running.id, since: publication.sinceMs, ...fileOf(otherFile()) },
      ...(limits?.problem === undefined ? {} : { limits: limits.problem }),
    }
  }
  return {
    state,
    failedRenewals: () => membership.lease.failed,
    async list() {
      const self = state()
      const rows = (await membership.list()).map(({ incarnation, word, ...row }): ReplicaRowBody => {
        const isSelf = incarnation === membership.self.incarnation
        const { refuses: said, ...more } = word
        // This replica's row has its state from the latest renewal, but the current state is known here.
        const refuses = isSelf ? self.reason : said
        return { ...row, ...more, ...(refuses === undefined ? {} : { refuses }), isSelf }
      })
      return { self, replicas: rows }
    },
    async inForce() {
      const [rows, revision] = await Promise.all([membership.list(), membership.revision()])
      const own = rows.find(({ incarnation }) => incarnation === membership.self.incarnation)
      const isRecent = ({ isLive, renewedAt }: ReplicaRow) => isLive || renewedAt + 2 * LEASE_MS > (own?.renewedAt ?? 0)
      const late = rows.filter((row) => isRecent(row) && row.applied < revision).map(({ id }) => id)
      const replicas = rows.filter(({ isLive }) => isLive).length
      return (atMs) => {
        const by = atMs + LEASE_MS
        const isPast = clock.wallMs() > by + LEASE_MS
        return { replicas, unconfirmed: isPast ? [] : late, by }
      }
    },
    async accept(what) {
      if (what === 'database') await membership.accept()
      else await limits?.reopen()
    },
  }
}

function fileOf(file: string | undefined): { readonly file?: string } {
  return file === undefined ? {} : { file }
}
