/** A key, as people see it: never the key itself, nor its hash. */
export interface KeyRow {
  readonly id: string
  readonly for: 'mcp' | 'console' | 'host'
  readonly user: string | undefined
  readonly tenant?: string | undefined
  /** Absent: none, or the key opens nothing. */
  readonly roles?: readonly string[] | undefined
  /** Of a made key: the id of the key in the file whose rights it has. Absent: all of its user have the same. */
  readonly like?: string | undefined
  /** The apps that it opens. Absent: all. */
  readonly apps?: readonly string[] | undefined
  /** Wall-clock milliseconds, as the other times. */
  readonly expiresAt?: number | undefined
  /** Within a minute. Absent: not since it is known. */
  readonly lastUsedAt?: number | undefined
  readonly createdAt?: number | undefined
  readonly createdBy?: string | undefined
  /** `file`: of the configuration. `made`: by `toolgate keys create`, and kept in the state store. */
  readonly from: 'file' | 'made'
  readonly isExpired: boolean
  /** Of a made key: it opens nothing, as the file has no key of its user, or none that it is like. */
  readonly isOrphan?: boolean
}
