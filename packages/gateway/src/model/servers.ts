import type { Need } from '@toolgate/core/groups'
import type { ItemKind } from '@toolgate/core/toolset'

export interface ServerRow {
  readonly name: string
  readonly status: 'starting' | 'ready' | 'down' | 'stopped'
  readonly reason?: string
  readonly since: number
  readonly restarts: number
  /** Of what all users share. */
  readonly toolCount: number
  /** `user`: each user's list comes from their own instance, and only they see it. */
  readonly listing?: 'user'
  readonly era?: 'legacy' | 'modern'
  /** Listed items that are invalid, and lists that cannot be read, by their method. */
  readonly rejected: readonly {
    readonly kind: ItemKind
    readonly name: string
    readonly reason: string
  }[]
  /** Of a server with an instance for each user. */
  readonly instances?: ServerInstances
  /** The latest change of its command, args, url, or reported name and version. */
  readonly changed?: { readonly text: string; readonly at: number }
}

/** One line about a server: of its process's stderr, or of the gateway's log. */
export interface ServerLogRow {
  readonly seq: number
  readonly wallMs: number
  readonly level: 'debug' | 'info' | 'warn' | 'error' | 'stderr'
  /** The user whose instance it is. */
  readonly user?: string
  readonly text: string
}

/** `GET /api/servers`: of the replica that answers. */
export interface ServersBody {
  readonly servers: readonly ServerRow[]
  /** Whether this person may restart servers and read their logs. */
  readonly mayOperate: boolean
}

/** `POST /api/servers/<name>/restart`: it ends, with the calls that it runs, and starts again, at every live replica. */
export interface RestartedBody {
  readonly server: string
  /** Each live replica, with why the server was not restarted there. Absent where this gateway is alone. */
  readonly replicas?: readonly { readonly id: string; readonly problem?: string }[]
}

/** `GET /api/logs` */
export interface LogsBody {
  readonly server: string
  readonly lines: readonly ServerLogRow[]
}

/** How many instances of a server are in each state, within the tenant of a person. One that is `running` has a call in progress. */
export interface ServerInstances {
  readonly starting: number
  readonly running: number
  readonly idle: number
  readonly down: number
  /** For approvers: those of their tenant, or of all if they have none. */
  readonly users?: readonly InstanceRow[]
}

export interface InstanceRow {
  readonly user: string
  readonly tenant?: string
  readonly state: 'starting' | 'running' | 'idle' | 'down'
}

export interface GroupRow {
  readonly name: string
  readonly title?: string
  readonly visibility: 'always' | 'conditional'
  readonly available: boolean
  readonly reason?: string
  readonly suggestion?: string
  readonly since?: number
  readonly tools: readonly string[]
  /** `unknown`: not probed yet. `locked`: a session must open it. */
  readonly badge?: GroupBadge
  /** Its purpose, as a sentence. */
  readonly hint?: string
  readonly dependsOn?: readonly string[]
  /** Why its tools could not be loaded. */
  readonly failure?: string
  /** The replica whose state this is. Absent where the gateway is alone. */
  readonly replica?: string
  /** Other replicas where it is in another state, as each probes its own network. At most 20. */
  readonly elsewhere?: readonly GroupElsewhere[]
}

/** The state of a group at another replica. */
export interface GroupElsewhere {
  readonly replica: string
  readonly badge: GroupBadge
  readonly reason?: string
  readonly since?: number
}

export type GroupBadge = 'always' | 'available' | 'unavailable' | 'unknown' | 'locked'

/** `GET /api/groups` */
export interface GroupsBody {
  readonly groups: readonly GroupRow[]
}

/** `GET /api/apps` */
export interface AppsBody {
  readonly apps: readonly AppRow[]
}

export interface AppRow {
  readonly name: string
  readonly title?: string
  /** Where it is served: `/mcp/<name>`. */
  readonly path: string
  readonly instructions?: string
  /** The groups it imports, by name. */
  readonly groups: readonly string[]
  /** Every tool it may offer, in the order of their ids. */
  readonly tools: readonly string[]
  /** How many of them are available now. */
  readonly available: number
}

/** `GET /api/needs?app=<app>`: the dependencies of an app's tools, or of all groups */
export interface NeedsBody {
  readonly app?: string
  /** Sorted by kind and name. */
  readonly needs: readonly NeedRow[]
}

/** `groups` has configured groups only, so it is empty for a server that only its own tools need. */
export type NeedRow = Need
