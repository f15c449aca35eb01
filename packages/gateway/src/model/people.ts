import type { KeyRow } from './key-row.ts'

/** What people are sorted by, instead of their names: the latest, the most, or for `expiry` the soonest first. */
export type PersonOrder = 'lastCall' | 'lastSeen' | 'calls' | 'tokens' | 'expiry'

/** `GET /api/people?text=&tenant=&role=&order=&from=&limit=`: by name, or in an order. */
export interface PeopleBody {
  readonly people: readonly PersonRow[]
  /** The number of people that match. */
  readonly total: number
  /** The index of the first row among those that match. */
  readonly from: number
  /** When people who sign in were first recorded, in wall-clock milliseconds. Absent if none has been recorded. */
  readonly since?: number
  /** Every tenant of the people that this person may see. */
  readonly tenants: readonly string[]
  /** Every role of these people. */
  readonly roles: readonly string[]
  /** `false`: calls are still being counted, or lists of tools are still being made. Ask again. */
  readonly isComplete: boolean
  /** The time up to which calls are counted, while they still are. Wall-clock milliseconds. */
  readonly countedTo?: number
}

/** The token, login or file that roles come from. `at`: when they were read, in wall-clock milliseconds. */
export interface RolesFrom {
  /** `login`: the person has come with no token, and has the roles of their login to the console. */
  readonly by: 'token' | 'login'
  /** The URL of the authorization server. */
  readonly issuer: string
  readonly at: number
}

/**
 * A user of one tenant and one authorization server: with keys, seen by the gateway, or both. Times are wall-clock
 * milliseconds.
 */
export interface PersonRow {
  /** The user, or the agent of a key without a user. */
  readonly name: string
  readonly user?: string
  readonly tenant?: string
  /** What people call them, according to their authorization server. It identifies nobody. */
  readonly label?: string
  /** Whether this is the person who sent the request. */
  readonly isSelf?: true
  /** The value of `as` for a person who signed in. Their tools are decided with the roles of their latest token. */
  readonly as?: string
  /** Their configured callers. Empty if they are known only by a login, calls or a key that no longer works. */
  readonly callers: readonly PersonCaller[]
  /** The roles of the latest token, or of the latest call, for a user without callers. */
  readonly seenRoles?: readonly string[]
  /** Present if `seenRoles` are those of a token or a login. */
  readonly rolesFrom?: RolesFrom
  /** The URL of the authorization server. Absent for users of the file. */
  readonly issuer?: string
  /** How they came last. Absent if they are known only from the file or the audit. */
  readonly cameBy?: 'key' | 'token' | 'login' | 'run'
  readonly firstSeenAt?: number
  readonly lastSeenAt?: number
  /** Their OAuth clients, the latest first. At most 8. */
  readonly clients?: readonly string[]
  /** The number of tools that an agent of theirs sees. Absent while the list is not yet made. */
  readonly visible?: number
  /** The token cost of that list, estimated at 4 bytes a token. */
  readonly tokens?: number
  /** Only people who may manage keys see them. */
  readonly keys?: PersonKeys
  /** Only approvers and the user see them. Absent if no server needs connections. */
  readonly connections?: { readonly wanted: number; readonly connected: number }
  /** Attempts that ended, in the last week. */
  readonly calls: number
  readonly refused: number
  readonly lastCallAt?: number
  /** The OAuth client of the latest calls. */
  readonly client?: string
}

/** `DELETE /api/people?user=&tenant=`: the person whose record was removed. */
export interface ForgottenPersonBody {
  readonly user: string
  readonly tenant?: string
  /** The number of records: one for each authorization server. */
  readonly removed: number
}

export interface PersonKeys {
  readonly count: number
  /** The number of keys that have expired or no longer work. */
  readonly unusable: number
  /** When the first of the other keys expires. */
  readonly expiresAt?: number
  readonly lastUsedAt?: number
}

/** A set of rights that one or more keys of a user have. */
export interface PersonCaller {
  /** The value of `as` for this caller. */
  readonly as: string
  readonly for: KeyRow['for']
  readonly roles: readonly string[]
  /** Whether the person who sent the request may make calls as this caller. */
  readonly mayCall?: true
  /** The number of tools that an agent sees. Absent while the list is not yet made. */
  readonly visible?: number
  /** The token cost of their tool list, estimated at 4 bytes a token. */
  readonly tokens?: number
}

/** `GET /api/connections?user=&tenant=`: the servers that users connect to their own accounts. */
export interface ConnectionsBody {
  readonly connections: readonly ConnectionRow[]
}

/** A server that needs a connection, with the user's connection, if there is one. */
export interface ConnectionRow {
  readonly server: string
  /** The path of the page where the person connects the server. */
  readonly page: string
  /** Absent if the user has not connected the server. */
  readonly connected?: {
    /** Wall-clock milliseconds. */
    readonly since: number
    /** The authorization server. */
    readonly issuer: string
    /** The connected account, if the authorization server names it. */
    readonly account?: string
    readonly scopes?: readonly string[]
  }
}

/** `GET /api/keys?user=&tenant=` */
export interface KeysBody {
  readonly keys: readonly KeyRow[]
}

/** The body of `POST /api/keys`. */
export interface NewKeyRequestBody {
  /** Default: `mcp`. */
  readonly for?: KeyRow['for']
  /**
   * @minLength 1
   * @maxLength 300
   */
  readonly user: string
  /**
   * @minLength 1
   * @maxLength 300
   */
  readonly tenant?: string
  /**
   * The id of the key in the file whose rights the new key has. Required if the user's keys have different rights.
   *
   * @minLength 1
   * @maxLength 300
   */
  readonly like?: string
  /**
   * The apps that the key opens. Default: all.
   *
   * @minItems 1
   */
  readonly apps?: readonly string[]
  /** Wall-clock milliseconds. Default: never. */
  readonly expiresAt?: number
  /**
   * Default: a random one.
   *
   * @minLength 1
   * @maxLength 300
   */
  readonly id?: string
}

/** `POST /api/keys`: the row, and the key itself, which nothing keeps. */
export interface NewKeyBody extends KeyRow {
  readonly key: string
}
