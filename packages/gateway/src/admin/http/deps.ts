import type { Caller, Gate, Tool, View } from '@toolgate/core'
import type { AuditCounter, AuditExporter, AuditReader } from '@toolgate/core/audit'
import type { Approvals } from '@toolgate/core/call'
import type { HaltTarget, MaybePromise } from '@toolgate/core/internal'
import type { Pins } from '@toolgate/core/pins'
import type { Redactor } from '@toolgate/values/redact'
import type { Clock, StateStore } from '@toolgate/core/stores'
import type { FailedLogins } from '../../auth/failed-logins.ts'
import type { Authenticator } from '../../auth/credential.ts'
import type { Keys } from '../../auth/keys.ts'
import type { RunRouteDeps } from './runs.ts'
import type { OriginRules } from '../../auth/origin.ts'
import type { RequestSource } from '../../util/client-address.ts'
import type { ServerLogLine } from '../../servers/transport/server-logs.ts'
import type { Comparisons } from '../comparisons/comparisons.ts'
import type { PageConnections } from './connect-page.ts'
import type { CallerConfig } from '../../config/config.ts'
import type { ConfigPlaces, PolicySource } from '../../config/places.ts'
import type { OidcDeps } from './oidc.ts'
import type { Questions } from '../change/questions.ts'
import type { Reload } from '../../model/reload.ts'
import type { ReloadOptions } from '../reload/describe.ts'
import type { ReplicaReport } from '../../replicas/report.ts'
import type { EndedCallers } from '../../auth/keyring.ts'
import type {
  AppRow,
  AuditEvidenceBody,
  GroupRow,
  HaltReach,
  ListRow,
  NeedRow,
  RestartedBody,
  ServerRow,
  WarningRow,
} from '../../model/rows.ts'
import type { AgentDeps } from './agent.ts'
import type { CountedClauses } from '../overview/clause-hits.ts'

/** The halts of the gate, and what their targets match now. */
export interface HaltDeps extends Pick<Gate, 'halt' | 'release' | 'underWay'> {
  list(): Gate['halts']
  reach(target: HaltTarget): Pick<HaltReach, 'tools' | 'nearestTools'>
}

/** The policy as it is written. */
export interface PolicyInForce {
  readonly revision: number
  readonly source?: PolicySource | undefined
  readonly places?: ConfigPlaces
}

/** Everything that the API reads and changes. */
export interface ApiDeps {
  readonly authenticator: Authenticator
  readonly origins: OriginRules
  /** Whether another replica has forwarded a request, and has checked where it comes from. Default: none has. */
  isForwarded?(from: RequestSource): boolean
  /** Counts and delays failed logins, if present. */
  readonly logins?: Pick<FailedLogins, 'failed'>
  /** Absent: people log in with keys. */
  readonly oidc?: OidcDeps | undefined
  /** Tokens are of users of tenants. Default: what `callers` says. */
  readonly hasTenants?: boolean
  /** The callers that `as` may name. */
  callers(): readonly CallerConfig[]
  /** Returns the callers whose tokens were verified and hold. Default: none. */
  signedIn?(): Iterable<Caller>
  /** Returns a caller's view, in an app if one is named. @throws {ToolgateError} `app_unknown` */
  view(caller: Caller, app?: string): MaybePromise<View>
  /** Returns every tool of the catalog in its order, hidden ones included: what all callers share, or a caller's. */
  tools(caller?: Caller): readonly Tool[]
  /** Returns every resource, template and prompt of the catalog, hidden ones included. Default: none. */
  items?(caller?: Caller): readonly Tool[]
  /** Returns whose lists a caller sees, of the servers with a list for each user. Default: none. */
  listsOf?(caller: Caller): readonly ListRow[]
  /** Returns the configured limits that count this tool's calls, as they are written. */
  limitsOf?(tool: Tool): readonly string[]
  /** Returns the name of a tool or a prompt on the wire, if it can have one; with a view, also of its caller's own. */
  wireName(id: string, view?: View): string | undefined
  groups(): readonly GroupRow[]
  /** Reads the groups of other replicas. Default: there are none. */
  refreshGroups?(): MaybePromise<void>
  servers(): readonly ServerRow[]
  /** Returns the latest lines of a server, oldest first. Default: none. */
  logs?(server: string, range: { readonly after?: number; readonly limit?: number }): readonly ServerLogLine[]
  /** Returns the policy that is in force. Default: it is not known. */
  policy?(): PolicyInForce
  /** The clauses in force, or those at some paths, with the counts of all replicas. */
  clauses?(paths?: ReadonlySet<string>): Promise<CountedClauses>
  /** Restarts a server with the calls that it runs, at every replica. Absent if none can be restarted. */
  restart?(server: string): Promise<RestartedBody['replicas']>
  /** Returns the current warnings. Default: none. */
  warnings?(): readonly WarningRow[]
  /** Default: none. */
  apps?(): readonly AppRow[]
  /** Returns the needs of an app, or of all groups. Default: none. @throws {ToolgateError} `app_unknown` */
  needs?(app?: string): readonly NeedRow[]
  /** Absent if nothing can be switched off. */
  readonly preferences?: Gate['preferences']
  /** What agents reach without MCP. Absent if they reach nothing. */
  readonly agents?: Omit<AgentDeps, 'authenticator'>
  readonly audit: AuditReader &
    AuditExporter &
    AuditCounter & {
      /** Absent for one in memory. */
      rotate?(): Promise<string | undefined>
    }
  /** Returns the evidence of the audit. Absent for an audit in memory. */
  evidence?(): AuditEvidenceBody
  readonly approvals: Approvals
  /** Compares what calls would write with what is there. Default: nothing is compared. */
  readonly comparisons?: Pick<Comparisons, 'askerOf' | 'compare' | 'has'>
  /** Absent without pins. */
  readonly pins?: Pick<Pins, 'list' | 'accept'>
  /** Absent if nothing can be halted. */
  readonly halts?: HaltDeps
  /** The keys. Absent if none can be made. */
  readonly keys?: Pick<Keys, 'list' | 'create' | 'revoke' | 'isExpired'>
  /** Returns what is left of the latest budgets. Default: none. */
  budgets?: Gate['budgets']
  /** The runs of hosts. Absent if none can be started. */
  readonly runs?: Omit<RunRouteDeps, 'authenticator'>
  /** The accounts that people connect servers to. Default: no server wants that. */
  readonly connections?: PageConnections
  /** Records a change of the configuration. Default: does not. */
  recordChange?(reason: string, detail: string, by: string): Promise<void>
  /** Reads the configuration again. Absent if there is no file. */
  reload?(options: ReloadOptions): Promise<Reload>
  /** Says what the rules of other texts would mean. Absent if there is no file. */
  readonly changes?: Questions
  /** Keeps the logins of people for all replicas. Absent where this gateway is alone. */
  readonly sharedState?: StateStore | undefined
  /** Absent where this gateway is alone. */
  readonly replica?: Pick<ReplicaReport, 'list' | 'accept' | 'inForce'> | undefined
  /** Returns why what the watched file says is not in force, if it is not. */
  reloadWaiting?(): string | undefined
  /** Calls the listener after credentials have ended or changed. Default: they never do. */
  onEnded?(listener: (callers: EndedCallers) => void): () => void
  readonly clock: Clock
  /** Redacts the texts of servers. Default: the built-in tables. */
  readonly redact?: Redactor
  policyRevision(): number
  catalogRevision(): number
  /** Browsers share cookies between ports, so each gateway on a host needs its own name. Default `toolgate_session`. */
  readonly cookieName?: string
  /** Receives faults whose details the client does not see. */
  readonly onFault?: (error: unknown) => void
}
