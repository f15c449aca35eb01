import type { Owner } from './owner.ts'

/** Finds the replica that has the instances of a user. */
export interface UserHomes {
  /** Returns whether this replica has the user's instances. */
  has(owner: Owner): boolean
  /** Returns whether the user's instance of a server was lost because its replica ended. Returns `true` only once. */
  takeLost(owner: Owner, server: string): boolean
  note(owner: Owner, server: string, isOpen: boolean): void
  /**
   * Finds the home of a user, or makes this replica the home. @throws {RpcFault} `owner_unreachable` if this replica is
   * the home of too many users
   */
  find(owner: Owner): Promise<unknown> | undefined
}
