/**
 * Why a replica starts no call. `silent`: the database does not answer. `behind`: the shared state cannot be applied.
 * `taken`: another process has its id. `older`, `timeline`: the database lost changes, or may have. `unconfirmed`: the
 * latest answer is too old.
 */
export type ReplicaProblem = 'silent' | 'behind' | 'taken' | 'older' | 'timeline' | 'unconfirmed'

/** The state of one replica, as the replica itself sees it. */
export interface ReplicaState {
  readonly id: string
  /** Absent while the replica starts calls. */
  readonly problem?: ReplicaProblem
  /** The problem as a sentence. */
  readonly reason?: string
  /** How long ago the replica sent the query for its lease. */
  readonly leaseAgeMs?: number
  /** The revision of the shared state that the replica has applied, and the newest that it knows of. */
  readonly revision: { readonly applied: number; readonly seen: number }
  /**
   * The published configuration that the replica runs, and since when, in wall-clock milliseconds. `file` is present if
   * the replica's own file is different: the id of that file, or `invalid`.
   */
  readonly configuration: { readonly id: string; readonly since: number; readonly file?: string }
  /** Why limited calls are refused. */
  readonly limits?: string
}

/** The row of a replica in the database. Times are wall-clock milliseconds. */
export interface ReplicaRowBody {
  readonly id: string
  readonly url?: string | undefined
  readonly version: string
  /** The revision of the shared state that the replica has applied. */
  readonly applied: number
  /** Whether the replica may start calls. */
  readonly isLive: boolean
  readonly isSelf: boolean
  /** The published configuration that the replica runs, and since when by its own clock. */
  readonly configuration?: { readonly id: string; readonly since: number } | undefined
  /** The id of the replica's own file, if it differs from the published configuration; or `invalid`. */
  readonly file?: string | undefined
  /** The reason why the replica starts no call, as it last reported. */
  readonly refuses?: string | undefined
  /** The replica is about to stop. */
  readonly isStopping?: true | undefined
  readonly joinedAt: number
  readonly renewedAt: number
}

/** Where a change that all replicas share is in force. */
export interface InForceBody {
  /** The number of replicas that may start calls. */
  readonly replicas: number
  /** The replicas that have not confirmed the change. */
  readonly unconfirmed: readonly string[]
  /** When the change is in force there too, because their leases have ended. Wall-clock milliseconds. */
  readonly by: number
}

/** `GET /api/replicas`: empty if this gateway has no replicas. */
export interface ReplicasBody {
  readonly self?: ReplicaState
  readonly replicas: readonly ReplicaRowBody[]
}

/** The body of `POST /api/replicas/accept`. */
export interface AcceptReplicasBody {
  /** `database`: accept that the database lost changes. `limits`: accept that the counts of limits are lost. */
  readonly what: 'database' | 'limits'
}
