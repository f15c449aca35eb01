import type { Need } from '@toolgate/core/groups'
import type { ItemKind } from '@toolgate/core/toolset'

export interface ServerRow {
  readonly name: string
  readonly status: 'starting' | 'ready' | 'down' | 'stopped'
  readonly reason?: string
  /** The places in the file whose variable or secret file this machine lacks. Present if the server waits for them. */
  readonly waitsFor?: readonly string[]
  readonly since: number
  readonly restarts: number
  /** The number of tools that all users share. */
  readonly toolCount: number
  /** `user`: each user's list comes from their own instance, and only they see it. */
  readonly listing?: 'user'
  readonly era?: 'legacy' | 'modern'
  /** What the server may ask clients for: words of `may`, with each origin as `open <origin>`. Absent for nothing. */
  readonly may?: readonly string[]
  /** Invalid items of the lists, and lists that cannot be read; `name` is then the method. */
  readonly rejected: readonly {
    readonly kind: ItemKind
    readonly name: string
    readonly reason: string
    /** The item is offered without this part. Absent if the item is not offered. */
    readonly part?: 'name' | 'outputSchema'
  }[]
  /** Present if the server has an instance for each user. */
  readonly instances?: ServerInstances
  /** The latest change of its command, args, url, or reported name and version. */
  readonly changed?: { readonly text: string; readonly at: number }
}

/** One line about a server, from the stderr of its process or from the gateway's log. */
export interface ServerLogRow {
  readonly seq: number
  readonly wallMs: number
  readonly level: 'debug' | 'info' | 'warn' | 'error' | 'stderr'
  /** The user whose instance wrote the line. */
  readonly user?: string
  readonly text: string
}

/** `GET /api/servers`: the servers of the replica that answers. */
export interface ServersBody {
  readonly servers: readonly ServerRow[]
  /** Whether this person may restart servers and read their logs. */
  readonly mayOperate: boolean
}

/** `POST /api/servers/<name>/restart`: restarts a server on every live replica. Its running calls end. */
export interface RestartedBody {
  readonly server: string
  /** Each live replica, with the reason if the restart failed there. Absent if this gateway has no replicas. */
  readonly replicas?: readonly { readonly id: string; readonly problem?: string }[]
}

/** `GET /api/logs` */
export interface LogsBody {
  readonly server: string
  readonly lines: readonly ServerLogRow[]
}

/**
 * The number of instances of a server in each state. A person with a tenant sees the counts of that tenant. A `running`
 * instance has a call in progress.
 */
export interface ServerInstances {
  readonly starting: number
  readonly running: number
  readonly idle: number
  readonly down: number
  /** The users of the instances. Only approvers see them; an approver with a tenant sees only that tenant's users. */
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
  /** The replica whose state this is. Absent if the gateway has no replicas. */
  readonly replica?: string
  /** At most 20 other replicas where the group is in another state, because each replica probes its own network. */
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
  /** The path at which the app is served: `/mcp/<name>`. */
  readonly path: string
  readonly instructions?: string
  /** The groups it imports, by name. */
  readonly groups: readonly string[]
  /** Every tool it may offer, in the order of their ids. */
  readonly tools: readonly string[]
  /** The number of these tools that are available now. */
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
