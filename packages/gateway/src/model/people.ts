import type { KeyRow } from './key-row.ts'

/** `GET /api/people?text=&tenant=&role=&limit=`: by name. */
export interface PeopleBody {
  readonly people: readonly PersonRow[]
  /** How many match. */
  readonly total: number
  /** Every tenant of the people that this person may see. */
  readonly tenants: readonly string[]
  /** Every role of theirs. */
  readonly roles: readonly string[]
  /** `false`: calls are still being counted, or lists of tools are still being made. Ask again. */
  readonly isComplete: boolean
}

/** A user of one tenant: with keys, with calls in the last week, or both. Times are wall-clock milliseconds. */
export interface PersonRow {
  /** The user; of a key without one, its agent. */
  readonly name: string
  readonly user?: string
  readonly tenant?: string
  /** The person who asks. */
  readonly isSelf?: true
  /** Of the configuration. Empty: known by their login, their calls or a key that opens nothing. */
  readonly callers: readonly PersonCaller[]
  /** Of a user without callers: those of the latest call, if the audit keeps facts. */
  readonly seenRoles?: readonly string[]
  /** For people who may manage keys. */
  readonly keys?: PersonKeys
  /** For approvers and the user, where servers want connections. */
  readonly connections?: { readonly wanted: number; readonly connected: number }
  /** Attempts that ended, in the last week. */
  readonly calls: number
  readonly refused: number
  readonly lastCallAt?: number
  /** The OAuth client of the latest calls. */
  readonly client?: string
}

export interface PersonKeys {
  readonly count: number
  /** How many of them have expired, or open nothing. */
  readonly unusable: number
  /** When the first of the others expires. */
  readonly expiresAt?: number
  readonly lastUsedAt?: number
}

/** Equal rights of some keys of a user. */
export interface PersonCaller {
  /** As `as` takes it. */
  readonly as: string
  readonly for: KeyRow['for']
  readonly roles: readonly string[]
  /** The person who asks may make calls as this caller. */
  readonly mayCall?: true
  /** Of agents: how many tools they see. Absent: not made yet. */
  readonly visible?: number
  /** What their list of tools costs a model: an estimate of 4 bytes a token. */
  readonly tokens?: number
}

/** `GET /api/connections?user=&tenant=`: the servers that users connect to their own accounts. */
export interface ConnectionsBody {
  readonly connections: readonly ConnectionRow[]
}

/** One server that wants a connection, with that of the user. */
export interface ConnectionRow {
  readonly server: string
  /** The path of the page where the person connects it. */
  readonly page: string
  /** Absent: the user has not connected it. */
  readonly connected?: {
    /** Wall-clock milliseconds. */
    readonly since: number
    /** The authorization server. */
    readonly issuer: string
    /** As which account, if the authorization server says so. */
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
   * The id of the key in the file whose rights it has. Needed where the user has keys with different rights.
   *
   * @minLength 1
   * @maxLength 300
   */
  readonly like?: string
  /**
   * The apps that it opens. Default: all.
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
