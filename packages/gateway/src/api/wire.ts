import type { Approval, OutcomeWord, Reason } from '@toolgate/core'
import type { AuditCounts, AuditRecord } from '@toolgate/core/audit'
import type { Need } from '@toolgate/core/groups'
import type { HaltTarget, SchemaWarning } from '@toolgate/core/internal'
import type { DefinitionDiff, DefinitionFinding, PinStatus } from '@toolgate/core/pins'
import type { ApprovalDecision } from '@toolgate/core/stores'

/** The bodies of `/api/*`, as the console and the command read them. Errors are `{ error: { code, message } }`. */

/** `GET /api/tools?as=<user>&app=<app>` */
export interface ToolsBody {
  readonly as: string
  readonly app?: string
  readonly policyRevision: number
  readonly catalogRevision: number
  readonly tools: readonly ToolRow[]
  readonly servers: readonly ServerRow[]
  readonly groups: readonly GroupRow[]
}

export interface ToolRow {
  readonly id: string
  /** The name on the wire, `namespace__name`. */
  readonly wireName: string
  readonly title?: string
  readonly description: string
  readonly tags: readonly string[]
  readonly outcome: OutcomeWord
  /** Whether the caller's `tools/list` has it. */
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
  readonly toolCount: number
  readonly era?: 'legacy' | 'modern'
  readonly rejected: readonly { readonly tool: string; readonly reason: string }[]
  /** The latest change of its command, args, url or of what it calls itself. */
  readonly changed?: { readonly text: string; readonly at: number }
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
  /** `unknown`: not asked yet. `locked`: a session must open it. Absent from gateways that do not say yet. */
  readonly badge?: GroupBadge
  /** What it is good for, as a sentence. */
  readonly hint?: string
  readonly dependsOn?: readonly string[]
  /** Why its tools could not be loaded. */
  readonly failure?: string
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
  /** How many of them are not held back now. */
  readonly available: number
}

/** `GET /api/needs?app=<app>`: what must work for an app's tools to be available; without an app, for those of all groups */
export interface NeedsBody {
  readonly app?: string
  /** By kind, and then by name. The order does not follow the state. */
  readonly needs: readonly NeedRow[]
}

/** `groups` has configured groups only. It is empty for a server that only its own tools need. */
export type NeedRow = Need

/** `GET /api/preferences?as=<user>`, and the body of `PUT` and its answer: what a user has switched off for himself. */
export interface PreferencesBody {
  readonly groups: readonly string[]
  readonly tools: readonly string[]
}

/** `GET /api/tool?tool=<id>&as=<user>`: one tool with all there is to say of it. */
export interface ToolBody {
  readonly tool: ToolRow
  readonly inputSchema: unknown
  readonly outputSchema?: unknown
  readonly annotations: unknown
  readonly groups: readonly string[]
  /** As `20/60`, each with its selector. */
  readonly limits: readonly string[]
  readonly exports: readonly ToolExport[]
}

export interface ToolExport {
  readonly target: string
  readonly definition: unknown
  readonly warnings: readonly string[]
  readonly errors: readonly string[]
  readonly tokens?: number
}

/**
 * What `/api/live` sends, as JSON texts. `groups` comes first with all groups, and then with those that changed, so rows
 * are put in place by their names. Whoever has had the first message misses nothing after it.
 */
export type LiveMessage =
  | { readonly type: 'groups'; readonly groups: readonly GroupRow[] }
  | { readonly type: 'audit'; readonly record: AuditRecord }
  | { readonly type: 'approval'; readonly approval: Approval }

/** `GET /api/callers`: whom `as` may name. Never a key. */
export interface CallersBody {
  readonly callers: readonly {
    readonly user: string
    readonly roles: readonly string[]
    readonly for: 'mcp' | 'console'
    readonly visible: number
  }[]
}

/** `GET /api/why?tool=<id>&as=<user>&app=<app>` */
export interface WhyBody {
  readonly tool: string
  readonly as: string
  readonly app?: string
  readonly outcome: OutcomeWord
  readonly visible: boolean
  readonly reasons: readonly Reason[]
  /** Keywords of the tool's input schema that are not checked, where there are some. */
  readonly schemaWarnings?: readonly SchemaWarning[]
}

/**
 * `GET /api/audit?limit=&tool=&user=&session=&event=&outcome=&call=&since=&until=&before=&after=`, newest first.
 * `GET /api/audit/export` takes the same but `limit`, and gives all that match, oldest first, as JSON lines.
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
 * `GET /api/audit/evidence`: what vouches for the audit beside its own chain, as it is now. `toolgate audit verify` checks
 * the records. A person of a tenant is told the codes of problems, and no paths.
 */
export interface AuditEvidenceBody {
  readonly store: 'sqlite' | 'jsonl' | 'memory'
  /** Absent where no checkpoints are made. */
  readonly checkpoints?: {
    readonly path?: string
    /** The last record that a checkpoint has signed; 0 for none. */
    readonly signedSeq: number
    readonly signedAt?: string
  }
  readonly problems: readonly { readonly code: string; readonly message: string }[]
}

/** `GET /api/approvals?status=&user=&tool=&before=&limit=`, newest first */
export interface ApprovalsBody {
  readonly approvals: readonly ApprovalRow[]
}

/** An approval as one person has it. `/api/live` sends approvals without these two fields: its texts are for everybody. */
export interface ApprovalRow extends Approval {
  /** Whether this person may decide it now: approve or reject a pending one, revoke an approved one. */
  readonly mayDecide: boolean
  /** The users whose console keys may, as far as this person may know them. Empty where nothing is left to decide. */
  readonly deciders: readonly string[]
}

/** `POST /api/approvals/<id>`: answered with the approval, as a row. `revoke` is for an approved one that was not used yet. */
export interface ApprovalVerdictBody {
  readonly decision: ApprovalDecision
  /** At most 500 characters. The model is told it when its call is refused. */
  readonly reason?: string
}

/** `GET /api/pins?status=`: every tool of the catalog; empty where neither pins nor the check are on */
export interface PinsBody {
  readonly pins: readonly PinRow[]
}

/** What is known of one tool's definition. `POST /api/pins/accept` answers with it too. */
export interface PinRow {
  readonly tool: string
  readonly status: PinStatus
  /** It joined the tools of a known server, and nobody has accepted it. Only with `pins: { new: suspend }`. */
  readonly isNew?: boolean
  /** Of the definition as it is: what is accepted. */
  readonly hash: string
  readonly pinnedHash?: string
  readonly since?: number
  /** Who accepted it; absent where it was pinned at first sight. */
  readonly by?: string
  /** From the pinned definition to the one there is. */
  readonly diff?: DefinitionDiff
  readonly findings: readonly DefinitionFinding[]
  readonly quarantined: boolean
}

/** `POST /api/pins/accept` */
export interface AcceptPinBody {
  readonly tool: string
  /** Of the definition that was looked at: another one is refused with `pin_unknown`. */
  readonly hash: string
}

/** `GET /api/halts`: what is halted, newest first; for a person of a tenant, what is halted of it */
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
  /** What the target names now. */
  readonly reach: HaltReach
  /** Whether this person may release it. */
  readonly mayRelease: boolean
}

/** What a target names now. A halt holds for what comes later, too. */
export interface HaltReach {
  /** How many tools of the catalog. */
  readonly tools: number
  /** The nearest id, where the target names a tool that there is not. */
  readonly nearestTool?: string
  /** How many of the configured agents, where the target names a user or a tenant. */
  readonly callers?: number
}

/** `POST /api/halts`: any of the fields together, or `all` alone. Within his tenant for a person who has one. */
export interface HaltBody {
  readonly user?: string
  readonly session?: string
  /** A selector, such as `files:write_file`, `browser:*` or `group:web`. */
  readonly tool?: string
  readonly tenant?: string
  readonly all?: true
  /** Why. The model is told it. */
  readonly reason: string
  /** Halts it even if no tool or no configured agent has the name now. Without it such a halt is refused with `halt_empty`. */
  readonly force?: boolean
}

/** `GET /api/warnings`: names in the configuration that nothing has, and the like, as they are now */
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
  /** The tools that it is about, where it is about some. */
  readonly tools?: readonly string[]
}

/** `GET /api/session` and `POST /api/login` (which takes `{ key }`) */
export interface SessionBody {
  readonly user: string
  readonly tenant?: string
  readonly roles: readonly string[]
}

/** The body of every answer that is not 2xx. `code` is stable; `message` is for people. */
export interface ErrorBody {
  readonly error: { readonly code: string; readonly message: string }
}

/** `GET /readyz`: 200 once every server has answered or failed its first start, else 503. `servers` is for console keys. */
export interface ReadyBody {
  readonly status: 'ready' | 'starting' | 'stopping'
  readonly servers?: readonly { readonly name: string; readonly status: ServerRow['status'] }[]
}
