/**
 * Why a replica starts no call. `silent`: the database does not answer. `behind`: the shared state cannot be applied.
 * `taken`: another process has its id. `older`, `timeline`: the database lost changes, or may have. `unconfirmed`: the
 * latest answer is too old.
 */
export type ReplicaProblem = 'silent' | 'behind' | 'taken' | 'older' | 'timeline' | 'unconfirmed'

/** A gateway of several that share their stores, as it sees itself. */
export interface ReplicaState {
  readonly id: string
  /** Absent while it starts calls. */
  readonly problem?: ReplicaProblem
  /** The same in words. */
  readonly reason?: string
  /** How long ago the query of its lease was sent. */
  readonly leaseAgeMs?: number
  /** Of the shared state: what it has applied, and the newest that it knows of. */
  readonly revision: { readonly applied: number; readonly seen: number }
  /**
   * The published configuration that it runs, and since when, in wall-clock milliseconds. `file`: its own file is another one,
   * with this id; or `invalid`.
   */
  readonly configuration: { readonly id: string; readonly since: number; readonly file?: string }
  /** Why limited calls are refused. */
  readonly limits?: string
}

/** A replica, as its row in the database says. Times are wall-clock milliseconds. */
export interface ReplicaRowBody {
  readonly id: string
  readonly url?: string | undefined
  readonly version: string
  /** The revision of the shared state that it has applied. */
  readonly applied: number
  /** It may start calls. */
  readonly isLive: boolean
  readonly isSelf: boolean
  /** The published configuration that it runs, and since when by its own clock. */
  readonly configuration?: { readonly id: string; readonly since: number } | undefined
  /** Its own file is another one, with this id; or `invalid`. */
  readonly file?: string | undefined
  /** Why it starts no call, as it said last. */
  readonly refuses?: string | undefined
  /** It is about to end. */
  readonly isStopping?: true | undefined
  readonly joinedAt: number
  readonly renewedAt: number
}

/** Where a change that all replicas share is in force. */
export interface InForceBody {
  /** How many replicas may start calls. */
  readonly replicas: number
  /** Those that have not confirmed it. */
  readonly unconfirmed: readonly string[]
  /** When it is in force on these, too, as their leases have run out: wall-clock milliseconds. */
  readonly by: number
}

/** `GET /api/replicas`: empty where this gateway is alone. */
export interface ReplicasBody {
  readonly self?: ReplicaState
  readonly replicas: readonly ReplicaRowBody[]
}

/** The body of `POST /api/replicas/accept`. */
export interface AcceptReplicasBody {
  /** `database`: it lost changes. `limits`: their counts are lost. */
  readonly what: 'database' | 'limits'
}
