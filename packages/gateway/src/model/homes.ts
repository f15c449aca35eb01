import type { MaybePromise } from '@toolgate/core/internal'
import type { Owner } from './owner.ts'

/** Which replica has the instances of a user. */
export interface UserHomes {
  /** Whether it is this one. */
  has(owner: Owner): boolean
  /** Returns whether the instance of a server was lost with another replica. It is said once. */
  takeLost(owner: Owner, server: string): boolean
  note(owner: Owner, server: string, isOpen: boolean): void
  /** Finds or becomes the home of a user. @throws {RpcFault} `owner_unreachable` where this replica is the home of too many */
  find(owner: Owner): MaybePromise<unknown>
}
