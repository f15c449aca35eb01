import type { HaltTarget } from '@toolgate/core/internal'
import type { InForceBody } from './replicas.ts'

/** `GET /api/halts`: halts, newest first. A person with a tenant sees only the halts of that tenant. */
export interface HaltsBody {
  readonly halts: readonly HaltRow[]
  /** Whether this person may halt. */
  readonly mayHalt: boolean
}

/** One halt. `POST /api/halts` and `DELETE /api/halts/<id>` answer with it too. */
export interface HaltRow {
  /** Derived from the target, so equal targets have equal ids. */
  readonly id: string
  readonly target: HaltTarget
  readonly reason: string
  readonly by?: string
  /** Wall-clock milliseconds. */
  readonly since: number
  /** What the target matches now. */
  readonly reach: HaltReach
  /** Whether this person may release it. */
  readonly mayRelease: boolean
  /** Absent if this gateway has no replicas, and while the database does not answer. */
  readonly inForce?: InForceBody
}

/** What a target matches now. A halt also covers later matches. */
export interface HaltReach {
  /** The number of matching tools. 0 if the target names people whom nobody has seen. */
  readonly tools: number
  /** The nearest ids, at most 3, if no tool matches. */
  readonly nearestTools?: readonly string[]
  /**
   * The number of matching users with a key, a login or a call in the last week. Present if the target names a user or
   * a tenant.
   */
  readonly people?: number
  /** The nearest names, if nobody matches: users, tenants, or `vera of acme`. */
  readonly nearestPeople?: readonly string[]
}

/** `GET /api/halts/reach?user=&session=&tool=&tenant=&all=true`: what such a halt would stop now. */
export interface HaltReachBody extends HaltReach {
  /** Calls of this gateway that wait or run. */
  readonly underWay: number
}

/** `POST /api/halts`: any of the fields together, or `all` alone. A person with a tenant acts within it. */
export interface HaltBody {
  /**
   * @minLength 1
   * @maxLength 8192
   */
  readonly user?: string
  /**
   * @minLength 1
   * @maxLength 8192
   */
  readonly session?: string
  /**
   * A selector, such as `files:write_file`, `browser:*` or `group:web`.
   *
   * @minLength 1
   * @maxLength 8192
   */
  readonly tool?: string
  /**
   * @minLength 1
   * @maxLength 8192
   */
  readonly tenant?: string
  readonly all?: true
  /** The reason, which the model sees. Default: `a person has halted it`. */
  readonly reason?: string
}
