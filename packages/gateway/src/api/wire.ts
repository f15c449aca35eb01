import type { AccessDifference, StatedHistory, Suggestion, TallyState } from '@toolgate/core/change'
import type { KeyRow } from '../auth/keys.ts'
import type { ConfigComparison } from '../change/compare-configs.ts'
import type { FileResults, TestedClauseRow } from '../change/test-rows.ts'
import type { Reload } from '../reload/describe.ts'
import type { Approval, OutcomeWord, Reason } from '@toolgate/core'
import type { AuditCounts, AuditOutcome, AuditRecord } from '@toolgate/core/audit'
import type { Need } from '@toolgate/core/groups'
import type {
  Budget,
  ClauseRef,
  HaltTarget,
  JsonObject,
  LayerAnswer,
  NeededChange,
  SchemaWarning,
} from '@toolgate/core/internal'
import type { ConfigPlace } from '../config/problems.ts'
import type { ItemKind } from '@toolgate/core/toolset'
import type { DefinitionDiff, DefinitionFinding, PinStatus } from '@toolgate/core/pins'
import type { ApprovalDecision } from '@toolgate/core/stores'

/** The bodies of `/api/*`, as the console and the command read them. Errors are `{ error: { code, message } }`. */

/** `GET /api/tools?as=<user>&app=<app>&kind=<kind>`: the items of one kind; without `kind`, the tools. */
export interface ToolsBody {
  readonly as: string
  readonly app?: string
  readonly policyRevision: number
  readonly catalogRevision: number
  readonly kind: ItemKind
  readonly tools: readonly ToolRow[]
  readonly servers: readonly ServerRow[]
  readonly groups: readonly GroupRow[]
  /** Whose lists are shown, of the servers with a list for each user. Absent if there are none. */
  readonly lists?: readonly ListRow[]
}

/** `GET /api/tools/columns`: a `ToolsBody` in columns, which is half as long, and parsed in a fourth of the time. */
export interface ToolColumnsBody extends Omit<ToolsBody, 'tools'> {
  readonly columns: ToolColumns
}

/** Fields of `ToolRow`s, each in the order of the items. A column is absent where no item has the field. */
export interface ToolColumns {
  /** The distinct decisions. */
  readonly decisions: readonly Pick<ToolRow, 'outcome' | 'visible' | 'reasons'>[]
  /** The distinct lists of tags. */
  readonly tagSets: readonly (readonly string[])[]
  readonly id: readonly string[]
  readonly description: readonly string[]
  /** Places in `decisions`. */
  readonly decision: readonly number[]
  /** Places in `tagSets`. */
  readonly tags: readonly number[]
  /** Absent where each is the id with `__` for `:`. */
  readonly wireName?: readonly string[]
  /** Empty for none. */
  readonly title?: readonly string[]
  /** Empty for none. */
  readonly hash?: readonly string[]
}

/** What a caller sees of the tools of a row. */
export interface MatrixCell {
  readonly visible: number
  readonly total: number
  /** How many of the visible ones ask a person. */
  readonly asks: number
  /** The most common reason of the hidden tools; empty for none. */
  readonly why: string
}

/** A group, or the tools of a server that are in no group. */
export interface MatrixRow {
  readonly key: string
  readonly name: string
  readonly title?: string
  readonly group?: Omit<GroupRow, 'tools'>
  /** How many tools it has. */
  readonly tools: number
}

/** `GET /api/matrix` */
export interface MatrixBody {
  /** How many callers there are, and the place of the first column among them. */
  readonly total: number
  readonly from: number
  readonly rows: readonly MatrixRow[]
  readonly columns: readonly {
    readonly user: string
    readonly tenant?: string
    readonly roles: readonly string[]
    readonly for: 'mcp' | 'console' | 'host'
    /** In the order of the rows. */
    readonly cells: readonly MatrixCell[]
    /** In the order of the tools of the open row. */
    readonly tools?: readonly {
      readonly outcome: OutcomeWord
      readonly visible: boolean
      /** The deciding reason; empty for a plain allow. */
      readonly why: string
    }[]
  }[]
  /** The row whose tools are shown one by one: their ids, and how many others it has. */
  readonly open?: { readonly key: string; readonly tools: readonly string[]; readonly more: number }
}

/**
 * Whose list of a server is shown. `known`: it is part of the answer. `unknown`: no instance of this user has listed yet.
 * `no_user`: the caller has none. `withheld`: only approvers and the user see it.
 */
export interface ListRow {
  readonly server: string
  readonly user?: string
  readonly tenant?: string
  readonly state: 'known' | 'unknown' | 'no_user' | 'withheld'
  /** Why it is unknown. Absent where nobody has asked for it yet. */
  readonly reason?: string
}

/** A tool, or an item of another kind. */
export interface ToolRow {
  readonly id: string
  readonly kind: ItemKind
  /** The name on the wire, `namespace__name`; of a resource its URI, of a template its URI template. */
  readonly wireName: string
  readonly title?: string
  readonly description: string
  /** Of its definition, for a server with a list for each user: the `hash` of its pin. */
  readonly hash?: string
  readonly tags: readonly string[]
  readonly outcome: OutcomeWord
  /** Whether the caller sees it. */
  readonly visible: boolean
  /** The deciding one first; empty for a plain allow. */
  readonly reasons: readonly Reason[]
}

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

/** `GET /api/preferences?as=<user>`, and the body of `PUT` and its answer: what users have switched off for themselves. */
export interface PreferencesBody {
  readonly groups: readonly string[]
  readonly tools: readonly string[]
}

/** `GET /api/tool?tool=<id>&as=<user>`: one tool in full. */
export interface ToolBody {
  readonly tool: ToolRow
  /** A JSON Schema. */
  readonly inputSchema: unknown
  /** A JSON Schema. */
  readonly outputSchema?: unknown
  /** As the server sent them, such as MCP's `ToolAnnotations`. */
  readonly annotations: unknown
  /** Fields of the input that say where it sends something, as the operator names them. */
  readonly addressees?: readonly string[]
  readonly groups: readonly string[]
  /** As `20/60`, each with its selector. */
  readonly limits: readonly string[]
  readonly exports: readonly ToolExport[]
}

export interface ToolExport {
  readonly target: string
  /** As this provider or framework takes it. */
  readonly definition: unknown
  readonly warnings: readonly string[]
  readonly errors: readonly string[]
  readonly tokens?: number
}

/**
 * A message of `/api/live`, as JSON text. The first is `groups` with all groups. Later ones have the changed groups only,
 * to be merged by name. After the first message a client misses nothing.
 */
export type LiveMessage =
  | { readonly type: 'groups'; readonly groups: readonly GroupRow[] }
  | { readonly type: 'audit'; readonly record: AuditRecord }
  | { readonly type: 'approval'; readonly approval: Approval }

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
  readonly user: string
  readonly tenant?: string
  /** The id of the key in the file whose rights it has. Needed where the user has keys with different rights. */
  readonly like?: string
  /** The apps that it opens. Default: all. */
  readonly apps?: readonly string[]
  /** Wall-clock milliseconds. Default: never. */
  readonly expiresAt?: number
  /** Default: a random one. */
  readonly id?: string
}

/** `POST /api/keys`: the row, and the key itself, which nothing keeps. */
export interface NewKeyBody extends KeyRow {
  readonly key: string
}

/** The body of `POST /api/runs`: of a caller in the file, or with `parent` of a sub-agent, which has the caller of its parent. */
export interface NewRunRequestBody {
  readonly user?: string
  readonly tenant?: string
  /** The id of the caller's key whose rights the run has, where several differ. */
  readonly like?: string
  readonly apps?: readonly string[]
  /** The id of the run whose history it shares. It brings no words. */
  readonly parent?: string
  /** Selectors: no other tool is allowed. */
  readonly tools?: readonly string[]
  /** Policies, as in the file. They can only narrow. */
  readonly policy?: readonly object[]
  /** What the user has written, for `origin`. */
  readonly userWords?: readonly string[]
  /** Default: an hour, or until the parent ends. At most a day. */
  readonly ttlMs?: number
}

/** `POST /api/runs`. The token is nowhere else. */
export interface StartedRunBody {
  readonly id: string
  readonly token: string
  /** Wall-clock milliseconds. */
  readonly expiresAt: number
}

/** A run, or the session of a client that has no run. Its token is nowhere. Times are wall-clock milliseconds. */
export interface RunRow {
  readonly id: string
  readonly kind: 'run' | 'session'
  /** For whom its agent acts. */
  readonly user?: string | undefined
  readonly tenant?: string | undefined
  /** The OAuth client of its calls. */
  readonly client?: string | undefined
  readonly app?: string | undefined
  /** The user of the host that started it. */
  readonly host?: string | undefined
  /** While it goes on: the run that it is a sub-agent of. It has the history of the root. */
  readonly parent?: string | undefined
  /** While it goes on: what narrows it, for people. */
  readonly narrows?: string | undefined
  /** Of one that began more than a week ago: its first record since. */
  readonly startedAt: number
  /** Its latest call, or its start. */
  readonly lastAt: number
  readonly expiresAt?: number | undefined
  /** Absent: not known, as of sessions and of runs in a program. */
  readonly state?: 'open' | 'ended' | undefined
  readonly endedAt?: number
  /** Why it ended, as in its record `run_ended`. */
  readonly end?: string
  /** Of its latest record. Absent: it has none yet. */
  readonly seq?: number | undefined
  /** Attempts that ended, in the last week. */
  readonly calls: number
  readonly refused: number
  readonly failed: number
  /** Approvals that wait now. */
  readonly waiting: number
  /** The labels that its records have named. */
  readonly labels: readonly string[]
}

/**
 * `GET /api/runs?user=&tenant=&label=&text=&state=&since=&until=&before=&limit=`: those with the latest records first. For a person
 * those of their tenant, of the last week; for a host its own that go on.
 */
export interface RunsBody {
  readonly runs: readonly RunRow[]
  /** How many match, of the 10,000 with the latest records. */
  readonly total: number
  /** The `before` of the next page. */
  readonly next?: number
  /** Every label of the runs that may be seen. */
  readonly labels: readonly string[]
  /** `false`: the audit is still being counted. Ask again. */
  readonly isComplete: boolean
}

/** What is left of a budget: of a limit with a cost, for one holder. */
export interface LimitRow {
  /** The selector of its rule. */
  readonly rule: string
  /** As `50000/86400`. */
  readonly limit: string
  /** Whose it is, by the parts that the rule counts apart. */
  readonly holder: Budget['holder']
  readonly max: number
  readonly used: number
  readonly remaining: number
  /** When some of it is free again, in wall-clock milliseconds. Absent where nothing is used. */
  readonly until?: number
}

/** `GET /api/limits?limit=`: of budgets that calls through this gateway have asked for lately. */
export interface LimitsBody {
  readonly limits: readonly LimitRow[]
}

/** `DELETE /api/runs/<id>` */
export interface EndedRunBody {
  readonly id: string
}

/** The body of `POST /api/reload`. */
export interface ReloadRequestBody {
  /** Only says what would change. */
  readonly dryRun?: boolean
  /** Has all replicas run the file of this one. Refused with `config_invalid` if a live one cannot. */
  readonly publish?: boolean
  /** Publishes it also then. A replica that cannot run it starts no call. */
  readonly force?: boolean
}

/** The body of `POST /api/what-if`. */
export interface WhatIfRequestBody {
  /** The text of a configuration, in the place of the gateway's file. */
  readonly config?: string
  /** Instead of `config`: the file with this in the place of its section `policy`, as `GET /api/policy` shows it. */
  readonly policy?: string
  /** RFC 3339, or milliseconds since 1970: calls from then on are judged. Default: seven days ago. */
  readonly since?: string | number
}

/** `POST /api/what-if`: what the rules of another configuration would mean. */
export interface WhatIfBody extends TallyState {
  /** Whether all records were read. A gateway reads for a minute at most, the oldest first. */
  readonly isWhole: boolean
  /** Who gains and who loses what: at most 1,000 callers, and 100 ids of each kind. */
  readonly access: readonly WhatIfAccessRow[]
  /** How many callers gain or lose something. */
  readonly callers: number
}

export interface WhatIfAccessRow extends AccessDifference {
  readonly counts: { readonly gains: number; readonly loses: number; readonly unknown: number }
}

/** The body of `POST /api/compare`: one of the two. */
export type CompareRequestBody = Pick<WhatIfRequestBody, 'config' | 'policy'>

/** `POST /api/compare`: whether another configuration grants no more than the one in force. */
export type CompareBody = ConfigComparison

/** The body of `POST /api/test`. */
export interface PolicyTestsRequestBody extends CompareRequestBody {
  /** The text of a file of tests, without `config` and `catalog`. Without `config` and `policy` here, it tests what is in force. */
  readonly tests: string
}

/** `POST /api/test`: what tests of a policy come to. */
export interface PolicyTestsBody {
  /** One file, named `tests`. */
  readonly files: readonly FileResults[]
  /** Every clause, with how many of the expected calls it held for. */
  readonly clauses: readonly TestedClauseRow[]
  readonly warnings: readonly string[]
}

/** The body of `POST /api/suggest`. */
export interface SuggestRequestBody extends Pick<WhatIfRequestBody, 'since'> {
  /** Only calls of callers with this role. */
  readonly role?: string
}

export interface SuggestedClause {
  readonly match: string
  readonly when?: string
  readonly input?: string
}

/** `POST /api/suggest`: the least that recorded calls show to be needed. */
export interface SuggestBody extends Omit<Suggestion, 'policy'> {
  readonly policy: {
    readonly name: string
    readonly allow: readonly SuggestedClause[]
    readonly ask?: readonly SuggestedClause[]
  }
  /** What it would mean for the same calls. */
  readonly whatIf: WhatIfBody
}

/** `POST /api/reload`: what has changed, or would. */
export type ReloadBody = Reload

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

/** `GET /api/callers`: the callers that `as` may name, without their keys. */
export interface CallersBody {
  readonly callers: readonly {
    readonly user: string
    readonly tenant?: string
    readonly roles: readonly string[]
    readonly for: 'mcp' | 'console' | 'host'
    /** This person may make calls as this caller: an agent of their own user. */
    readonly mayCall?: true
    readonly visible: number
  }[]
}

/** `GET /api/why?tool=<id>&as=<user>&app=<app>` */
/** A reason with the place of its rule in the configuration, and how often its clause has held for calls. */
export interface PlacedReason extends Reason {
  readonly place?: ConfigPlace
  readonly hits?: number
  /** Wall-clock milliseconds. */
  readonly lastHitAt?: number
  /** Wall-clock milliseconds. */
  readonly countedSince?: number
}

export interface WhyBody {
  /** The id of an item of any kind. A resource need not be listed. */
  readonly tool: string
  readonly kind: ItemKind
  readonly as: string
  readonly app?: string
  readonly outcome: OutcomeWord
  readonly visible: boolean
  readonly reasons: readonly PlacedReason[]
  /** The answer of every layer, the deciding one first. */
  readonly answers: readonly LayerAnswer[]
  /** What the shadows of policies would decide, if there are some. */
  readonly shadow?: { readonly outcome: OutcomeWord; readonly reasons: readonly PlacedReason[] }
  /** What would have to change for it to be visible: ways that have been decided again, the smallest first. Absent if none is known. */
  readonly wouldAllow?: readonly (readonly PlacedChange[])[]
  /** Keywords of the tool's input schema that are not checked, if any. */
  readonly schemaWarnings?: readonly SchemaWarning[]
  /** Whose list of the server it was looked up in. Absent where all users share one. */
  readonly list?: ListRow
}

/** One change of a way, with the place of the rule that it is about. */
export interface PlacedChange extends NeededChange {
  readonly place?: ConfigPlace
}

/** The body of `POST /api/tool/call`: of a configured caller by name, or any other. */
export interface TrialRequestBody {
  readonly tool: string
  readonly as?: string
  /** Instead of `as`: a caller as JSON. */
  readonly caller?: string
  readonly app?: string
  /** Of a resource its URI if absent. Default: `{}`. */
  readonly input?: JsonObject
}

/** The body of `POST /api/why`: a call, and what has happened before it. */
export interface WhyRequestBody extends TrialRequestBody {
  /**
   * What has happened, in the place of what has: what a file of tests has under `history`, as an object or as YAML. Problems
   * of YAML are named with line and column.
   */
  readonly history?: string | StatedHistory
}

/** `POST /api/why`: what a call with an input would get now. Nothing runs, and nothing is recorded. */
export interface WhyInputBody {
  readonly tool: string
  readonly kind: ItemKind
  readonly as: string
  readonly app?: string
  /** `allow` also where a later check may still refuse it, such as a hook. */
  readonly outcome: OutcomeWord
  readonly visible: boolean
  /** The deciding one first; empty for a plain allow. */
  readonly reasons: readonly PlacedReason[]
  /** The answer of every layer that was asked, the deciding one first. */
  readonly answers: readonly LayerAnswer[]
  /** What the shadows of policies would decide, if there are some. */
  readonly shadow?: { readonly outcome: OutcomeWord; readonly reasons: readonly PlacedReason[] }
  /** What would have to change for this call to go on. As in `WhyBody`. */
  readonly wouldAllow?: readonly (readonly PlacedChange[])[]
  /** The refusal that the agent would get. */
  readonly text?: string
}

/**
 * `GET /api/audit?limit=&tool=&user=&session=&event=&outcome=&call=&since=&until=&before=&after=`, newest first.
 * `GET /api/audit/export` takes the same without `limit`, and returns all matches, oldest first, as JSON lines.
 */
export interface AuditBody {
  readonly records: readonly AuditRecord[]
}

/**
 * `GET /api/audit/counts?since=&until=&bucket=&tool=&user=&session=&event=&outcome=&call=`: how many attempts ended in each
 * way, in buckets of `bucket` milliseconds from `since` on. At most 500 buckets.
 */
export type AuditCountsBody = AuditCounts

/**
 * `GET /api/audit/evidence`: the current checkpoints of the audit. `toolgate audit verify` checks the records. A person of
 * a tenant sees the codes of problems, and no paths.
 */
export interface AuditEvidenceBody {
  readonly store: 'postgres' | 'sqlite' | 'jsonl' | 'memory'
  /** Absent without checkpoints. */
  readonly checkpoints?: {
    readonly path?: string
    /** The last record that a checkpoint has signed; 0 for none. */
    readonly signedSeq: number
    readonly signedAt?: string
  }
  readonly problems: readonly { readonly code: string; readonly message: string }[]
}

/** How a call ended, or `running`. */
export type CallOutcome = AuditOutcome | 'running'

/** A call with its records. One attempt: a call that waited for a person is made again, and is another one. */
export interface CallRow {
  /** The `tool_call_id` of its records. */
  readonly id: string
  /** Of its latest record. */
  readonly seq: number
  readonly outcome: CallOutcome
  /** RFC 3339. */
  readonly startedAt: string
  /** RFC 3339. Absent while it runs. */
  readonly endedAt?: string
  /** The oldest first. */
  readonly records: readonly AuditRecord[]
}

/**
 * `GET /api/calls`: newest first. `GET /api/calls/export` takes the same without `limit` and `before`, and returns all matches
 * as JSON lines or CSV.
 */
export interface CallsBody {
  readonly calls: readonly CallRow[]
  /** The `before` of the next page. Absent at the end of the audit. A long search may return it without calls. */
  readonly next?: number
  /** RFC 3339: how far back was searched. */
  readonly searchedTo?: string
}

/** The period of an overview, up to now. */
export type OverviewPeriod = '1h' | '24h' | '7d'

/** How long calls took, in milliseconds; at most 3 % off. */
export interface LatencyRow {
  readonly p50: number
  readonly p95: number
  readonly p99: number
}

/** How the attempts to call something ended. An MCP result with `isError` is `failed`. */
export interface AttemptsRow {
  /** All of them. */
  readonly attempts: number
  readonly outcomes: AuditCounts['buckets'][number]
  /** Of those that ran to their end. Absent if none did. */
  readonly latency?: LatencyRow
}

/**
 * `GET /api/overview?period=`: what happened in a period, for all calls that this person may see. Not of one replica: of all
 * that share the audit.
 */
export interface OverviewBody extends AttemptsRow {
  readonly period: OverviewPeriod
  /** Wall-clock milliseconds. */
  readonly since: number
  readonly until: number
  /** `false`: the audit is still being counted, so that the figures grow. Ask again. */
  readonly isComplete: boolean
  readonly bucketMs: number
  /** Oldest first, from `since` on. */
  readonly buckets: AuditCounts['buckets']
  /** The most called first, at most 200. */
  readonly tools: readonly OverviewToolRow[]
  /** How many other tools were called. */
  readonly moreTools: number
  readonly servers: readonly OverviewServerRow[]
  /** What was refused most, at most 20. */
  readonly denied: readonly DeniedRow[]
  readonly waiting: {
    readonly count: number
    /** Wall-clock milliseconds. Absent if nothing waits. */
    readonly oldestAt?: number
  }
  /** What the lists of agents cost, the most expensive first, at most 100. */
  readonly lists: readonly ListCostRow[]
  /** How many other agents are configured. */
  readonly moreLists: number
}

export interface OverviewToolRow extends AttemptsRow {
  /** Absent: names that no tool has, and tools beyond those that are counted apart. */
  readonly tool?: string
}

export interface OverviewServerRow extends AttemptsRow {
  readonly name: string
  /** Absent for tools of no server, such as the gateway's own. */
  readonly status?: ServerRow['status']
  readonly reason?: string
  readonly since?: number
  readonly restarts?: number
  /** The last lines of its stderr. For operators and approvers without a tenant. */
  readonly stderr?: readonly string[]
}

/** Calls that were refused for one reason. */
export interface DeniedRow {
  readonly tool?: string
  readonly user?: string
  readonly tenant?: string
  readonly reason?: string
  readonly count: number
}

/** What the list of tools of an agent costs its model: an estimate of 4 bytes a token. */
export interface ListCostRow {
  readonly user: string
  readonly tenant?: string
  readonly tools: number
  readonly tokens: number
}

/** `POST /api/audit/rotate`: the name of the closed file; `null` if there was nothing to close, as in SQLite. */
export interface AuditRotationBody {
  readonly closed: string | null
}

/** `GET /api/approvals?status=&user=&tool=&before=&limit=`, newest first */
export interface ApprovalsBody {
  readonly approvals: readonly ApprovalRow[]
}

/** `GET /api/approvals/waiting`: at most 1,000, newest first */
export interface WaitingApprovalsBody {
  readonly approvals: readonly WaitingApprovalRow[]
}

/** A call that waits, without its input. */
export interface WaitingApprovalRow {
  readonly id: string
  readonly tool: string
  readonly user?: string
  readonly tenant?: string
  /** Whether this person may decide it now. */
  readonly mayDecide: boolean
}

/** An approval for one person. `/api/live` sends the same text to everybody, so it leaves out these two fields. */
export interface ApprovalRow extends Approval {
  /** Whether this person may decide it now: approve or reject a pending one, revoke an approved one. */
  readonly mayDecide: boolean
  /** The users whose console keys may decide it, as far as this person may see them. Empty if it is already decided. */
  readonly deciders: readonly string[]
  /** Whether this person can compare what it would write with what is there. */
  readonly mayCompare?: true
}

/** `POST /api/approvals/<id>/compare`: what was there when it was read. It may change until the call runs. */
export interface ApprovalComparisonBody {
  readonly approval: string
  /** When it was read. */
  readonly atMs: number
  /** The tool that read it. */
  readonly reader?: string
  /** The field of the call with the proposed text, such as `input.content`. */
  readonly field?: string
  readonly present?: string
  readonly proposed?: string
  /** Secrets in what is there are masked. */
  readonly masked?: true
  /** Why nothing is shown. */
  readonly notShown?: string
}

/** `POST /api/approvals/<id>`: answered with the approval, as a row. `revoke` is for an approved one that was not used yet. */
export interface ApprovalVerdictBody {
  readonly decision: ApprovalDecision
  /** At most 500 characters. The model sees it when its call is refused. */
  readonly reason?: string
}

/** `GET /api/pins?status=`: every tool of the catalog; empty if neither pins nor the definition check are on */
export interface PinsBody {
  readonly pins: readonly PinRow[]
}

/** The state of one tool's definition. `POST /api/pins/accept` returns it, too. */
export interface PinRow {
  readonly tool: string
  readonly status: PinStatus
  /** A new tool of a known server that nobody has accepted yet. Only with `pins: { new: suspend }`. */
  readonly isNew?: boolean
  /** Of the current definition, which would be accepted. */
  readonly hash: string
  readonly pinnedHash?: string
  readonly since?: number
  /** Who accepted it. Absent if it was pinned at first sight. */
  readonly by?: string
  /** From the pinned definition to the current one. */
  readonly diff?: DefinitionDiff
  readonly findings: readonly DefinitionFinding[]
  readonly quarantined: boolean
  /** Whose own lists have this definition. Absent where all callers share it. Only approvers get such rows. */
  readonly users?: readonly { readonly user: string; readonly tenant?: string | undefined }[]
}

/** `POST /api/pins/accept` */
export interface AcceptPinBody {
  readonly tool: string
  /** Of the definition that was reviewed. Another hash is refused with `pin_unknown`. */
  readonly hash: string
}

/** `GET /api/halts`: halts, newest first. A person of a tenant sees those of the tenant */
export interface HaltsBody {
  readonly halts: readonly HaltRow[]
  /** Whether this person may halt. */
  readonly mayHalt: boolean
}

/** One halt. `POST /api/halts` and `DELETE /api/halts/<id>` answer with it too. */
export interface HaltRow {
  /** Follows from the target. */
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
  /** Absent where this gateway is alone, and while the database does not answer. */
  readonly inForce?: InForceBody
}

/** What a target matches now. A halt also covers later matches. */
export interface HaltReach {
  /** The number of matching tools. */
  readonly tools: number
  /** The nearest id, if no tool matches. */
  readonly nearestTool?: string
  /** The number of matching configured agents, if the target names a user or a tenant. */
  readonly callers?: number
}

/** `GET /api/halts/reach?user=&session=&tool=&tenant=&all=true`: what such a halt would stop now. */
export interface HaltReachBody extends HaltReach {
  /** Calls of this gateway that wait or run. */
  readonly underWay: number
}

/** `POST /api/halts`: any of the fields together, or `all` alone. A person with a tenant acts within it. */
export interface HaltBody {
  readonly user?: string
  readonly session?: string
  /** A selector, such as `files:write_file`, `browser:*` or `group:web`. */
  readonly tool?: string
  readonly tenant?: string
  readonly all?: true
  /** The reason. The model sees it. */
  readonly reason: string
  /** Halts even if no tool or no configured agent matches now. Otherwise such a halt is refused with `halt_empty`. */
  readonly force?: boolean
}

/** `GET /api/policy`. For a person of a tenant, only the revision: the rest is of all tenants. */
export interface PolicyBody {
  /** Grows with each reload. */
  readonly revision: number
  /** As it was named when the gateway started. For approvers without a tenant, as `text` and `line` are. */
  readonly file?: string
  /** The section `policy`, as it is written. */
  readonly text?: string
  /** The line of the file in which the text begins. */
  readonly line?: number
  /** Something in the text is redacted, so that it cannot be sent back changed. */
  readonly isRedacted?: boolean
  /** Of the gateway's policies and its apps, in their order. */
  readonly clauses: readonly ClauseRow[]
  /** The state store did not answer: the counts are those of this process since its start. */
  readonly countsAreOwn?: true
}

/** A clause, and how often it held when a call was decided, at any replica. */
export interface ClauseRow {
  /** A hash of what it says: equal wherever it stands in the file, and at every replica. */
  readonly id: string
  /** As in records: `baseline#deny[2]`. */
  readonly clause: string
  readonly ref: ClauseRef
  /** Such as `policy[0].deny[2]`. */
  readonly path: string
  readonly place?: ConfigPlace
  readonly shadow?: true
  readonly hits: number
  /** Calls that a shadow could not judge, as it was unknown what their runs had done. Absent: none. */
  readonly unjudged?: number
  /** Wall-clock milliseconds. Absent: none since `countedSince`. */
  readonly lastHitAt?: number
  /** Wall-clock milliseconds. */
  readonly countedSince: number
  /** How many tools and other items its selectors match now. */
  readonly matchesTools: number
}

/** `GET /api/warnings`: likely mistakes in the configuration, as of now */
export interface WarningsBody {
  readonly warnings: readonly WarningRow[]
}

export interface WarningRow {
  /** Such as `selector_unmatched`. */
  readonly code: string
  /** Where it was written, such as `policy[0].deny[1]`. */
  readonly path: string
  /** For people. */
  readonly text: string
  /** The tools concerned, if any. */
  readonly tools?: readonly string[]
}

/** `GET /api/list?kind=&app=`: the items of one kind that an agent sees. For agents' keys and tokens. */
export interface AgentItemsBody {
  readonly kind: ItemKind
  readonly items: readonly AgentItemRow[]
}

export interface AgentItemRow {
  /** What `/api/decide` and `/api/call` take as `tool`. */
  readonly id: string
  readonly name: string
  readonly title?: string
  readonly description: string
  /** A JSON Schema, of tools and prompts. */
  readonly inputSchema?: unknown
  /** Of resources, and the URI template of templates. */
  readonly uri?: string
  readonly mimeType?: string
}

/** The body of `POST /api/decide?app=` and `POST /api/call?app=`, for agents' keys and tokens. */
export interface AgentCallRequestBody {
  readonly tool: string
  /** Default: `{}`. */
  readonly input?: Readonly<Record<string, unknown>>
}

/** `POST /api/decide`: what the call would get now. Nothing runs, and no limit is taken. */
export type AgentDecisionBody = { readonly tool: string } & (
  | { /** `ask`: a person must approve, or has already. */ readonly outcome: 'allow' | 'ask' }
  | AgentRefusal
)

/** Why a call is refused, as far as its caller may know. */
export interface AgentRefusal {
  /** `wait`: it may be allowed later. */
  readonly outcome: 'deny' | 'wait'
  /** For the model. */
  readonly text: string
  /** Of a used-up limit. */
  readonly retryAfterSeconds?: number
}

/** `POST /api/call`: the outcome of the call. `text` is for the model. */
export type AgentCallBody = { readonly callId: string; readonly text: string } & (
  | {
      readonly status: 'done'
      /** The tool ran and says that it failed. */
      readonly isError: boolean
      /** The server's result, such as MCP's `CallToolResult`. */
      readonly result: unknown
    }
  | ({ readonly status: 'refused' } & AgentRefusal)
  | {
      /** A person decides. Make the same call again then. */
      readonly status: 'waiting'
      readonly approval: {
        readonly id: string
        /** Wall-clock milliseconds. */
        readonly expiresAt: number
        /** Where a person decides. */
        readonly url?: string
      }
    }
  | { readonly status: 'failed'; /** Such as `tool_failed`. */ readonly reason: string }
)

/** The body of `POST /api/login`. */
export interface LoginBody {
  /** A console key. */
  readonly key: string
}

/** `POST /api/logout`. */
export interface LogoutBody {
  /** Where the browser goes to log out of the authorization server, too. */
  readonly logoutUrl?: string
}

/** `GET /api/login`: how people log in beside console keys. */
export interface LoginsBody {
  readonly oidc?: {
    /** Of the authorization server. */
    readonly name: string
    /** Where the browser goes. */
    readonly url: string
  }
}

/** `GET /api/openapi.json`: the API in OpenAPI 3.1. */
export interface OpenapiBody {
  readonly openapi: string
  readonly info: object
  readonly tags: readonly object[]
  readonly paths: object
  readonly components: object
}

/** `GET /api/session` and `POST /api/login` */
export interface SessionBody {
  readonly user: string
  readonly tenant?: string
  /** This person sees callers of several tenants. */
  readonly manyTenants?: true
  readonly roles: readonly string[]
}

/** The body of every response that is not 2xx. `code` is stable; `message` is for people. */
export interface ErrorBody {
  readonly error: { readonly code: string; readonly message: string }
}

/** An authorization server whose tokens the gateway accepts. */
export interface IssuerRow {
  readonly name: string
  readonly issuer: string
  /** `down`: its keys cannot be read, so tokens that were not seen before are refused. */
  readonly status: 'unknown' | 'up' | 'down'
  /** Why it is down. For console keys. */
  readonly problem?: string
}

/** `GET /readyz`: 200 once every server has answered or failed its first start, else 503. `servers` is for console keys. */
export interface ReadyBody {
  /** `refusing`: a replica that starts no call. */
  readonly status: 'ready' | 'starting' | 'stopping' | 'refusing'
  /** Absent where this gateway is alone. Without a console key it has no reasons. */
  readonly replica?: ReplicaState | Pick<ReplicaState, 'id' | 'problem'>
  /** Why no call can be recorded by a replica: `silent`, `unshipped`, `disk` or `forked`. The message is for console keys. */
  readonly audit?: { readonly code: string; readonly message?: string }
  readonly servers?: readonly { readonly name: string; readonly status: ServerRow['status'] }[]
  /** Absent without OAuth. An issuer that is down does not make the gateway unready. */
  readonly issuers?: readonly IssuerRow[]
  /** Why what the watched file says is not in force. For console keys. */
  readonly reload?: string
}
