/** A key as people see it. It contains neither the key itself nor its hash. */
export interface KeyRow {
  readonly id: string
  readonly for: 'mcp' | 'console' | 'host'
  readonly user: string | undefined
  readonly tenant?: string | undefined
  /** Absent if the key has no roles or no longer works. */
  readonly roles?: readonly string[] | undefined
  /** The id of the key in the file whose rights a made key has. Absent if all keys of its user have the same rights. */
  readonly like?: string | undefined
  /** The apps that the key opens. Absent for all. */
  readonly apps?: readonly string[] | undefined
  /** Wall-clock milliseconds, like the other times. */
  readonly expiresAt?: number | undefined
  /** To within a minute. Absent if no use is known. */
  readonly lastUsedAt?: number | undefined
  readonly createdAt?: number | undefined
  readonly createdBy?: string | undefined
  /** `file`: a key of the configuration. `made`: a key of `toolgate keys create`, which is in the state store. */
  readonly from: 'file' | 'made'
  readonly isExpired: boolean
  /** Whether a made key no longer works, because the file has no key of its user, or not the one that it follows. */
  readonly isOrphan?: boolean
}
