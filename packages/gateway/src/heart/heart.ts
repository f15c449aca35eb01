import type { Gate } from '@toolgate/core'
import type { createAvailability, parseGroups } from '@toolgate/core/groups'
import type { ClauseCountStore, Clock, PersonStore, StateStore } from '@toolgate/core/stores'
import type { ItemLists, ResourceOwners, ToolLists } from '@toolgate/mcp'
import type { EvidenceProblem } from '@toolgate/stores/verify'
import type { FailedLogins } from '../auth/failed-logins.ts'
import type { Keys } from '../auth/keys.ts'
import type { OpenedAuthenticator } from '../auth/open-authenticator.ts'
import type { OriginRules } from '../auth/origin.ts'
import type { People } from '../auth/people.ts'
import type { Revisions, Rules, Settings } from '../auth/revision.ts'
import type { Runs } from '../auth/runs.ts'
import type { GatewayConfig } from '../config/config.ts'
import type { LoadConfigOptions } from '../config/load-config.ts'
import type { OpenedAudit } from '../config/open-stores.ts'
import type { GatewayRedactor } from '../config/redaction.ts'
import type { LogLine } from '../model/log-line.ts'
import type { OpenedReplica } from '../replicas/open-replica.ts'
import type { Connections } from '../servers/connections/connections.ts'
import type { HeldCalls } from '../servers/asks/held-calls.ts'
import type { Fleet, StagedFleet } from '../servers/fleet.ts'
import type { CallCounts } from '../telemetry/call-counts.ts'
import type { FindTracing } from '../telemetry/tracing.ts'
import type { ClientAddresses } from '../util/client-address.ts'
import type { Warnings } from './warnings.ts'

/** The services that every room may use. A room is a capability that only some gateways have. */
export interface Heart {
  /** The settings that are read once. `revisions` has the rules that a reload replaces. */
  readonly config: Settings
  readonly revisions: Revisions
  readonly clock: Clock
  readonly redact: GatewayRedactor
  readonly log: (line: LogLine) => void
  readonly onFault: (error: unknown) => void
  readonly stores: Stores
  readonly gate: Gate
  readonly catalog: HeartCatalog
  readonly servers: Servers
  readonly door: Door
  readonly host: Host
  /** This gateway as one of several replicas. Absent if it runs alone. */
  readonly replica: OpenedReplica | undefined
}

export interface Stores {
  readonly audit: OpenedAudit
  readonly auditProblems: readonly EvidenceProblem[]
  /** The store of the gateway's state. Without a configured store, the state ends with the process. */
  readonly state: StateStore
  /** The same store, if it outlives this process. */
  readonly kept: StateStore | undefined
  readonly clauses: ClauseCountStore | undefined
  /** The people whom gateways have seen. Without a configured store, they are forgotten when the process ends. */
  readonly people: PersonStore
  /**
   * Absent if the state is in memory or shared by replicas. @throws {ToolgateError} `state_unavailable` if nothing can
   * be written now
   */
  readonly checkWritable: (() => void) | undefined
}

/** The catalog as clients see it. */
export interface HeartCatalog {
  readonly lists: ToolLists
  readonly items: ItemLists
  readonly owners: ResourceOwners
  readonly availability: ReturnType<typeof createAvailability>
  /** The ids of the gateway's own tools. */
  ownIds(): ReadonlySet<string>
  selectors(): ReturnType<typeof parseGroups>['selectors']
  /** Likely mistakes in the rules, and in the items that servers offer. */
  readonly warnings: Warnings
}

export interface Servers {
  readonly fleet: Fleet
  readonly connections: Connections
  /** The calls that wait for an answer from their client. */
  readonly held: HeldCalls
  readonly counts: CallCounts
  readonly tracing: FindTracing
  /** The id that marks requests as coming from this gateway. */
  readonly via: string
}

/** Authenticates callers, has the URL that they use, and knows whether they may still come. */
export interface Door extends OpenedAuthenticator {
  /** `isLeaving`: the gateway will stop soon. `isStopping`: it no longer accepts calls. */
  readonly stopping: { readonly isLeaving: boolean; readonly isStopping: boolean }
  readonly origins: OriginRules
  readonly port: number
  /** The origin at which people reach the gateway, if it is known. */
  readonly publicUrl: string | undefined
  readonly keys: Keys
  readonly runs: Runs
  readonly people: People
  readonly logins: FailedLogins
  readonly addresses: ClientAddresses
  /** When the certificate expires, in wall-clock milliseconds. `undefined` over HTTP. */
  certificateExpiresAtMs(): number | undefined
}

/** How a configuration is read. `text` replaces the text of the file. */
type ReadHow = Pick<LoadConfigOptions, 'mayRun' | 'text'>

/** The program around the rooms: its options, how it reads its file, and how it replaces the rules. */
export interface Host extends HostOptions {
  /** Reads the file or the published text again. Throws `ConfigFileError`. */
  read(how?: ReadHow): Promise<GatewayConfig>
  /**
   * Reads the certificate again. If it has changed, returns the function that starts serving it. Throws `ConfigError`.
   */
  readCertificate(): (() => void) | undefined
  /**
   * Replaces the rules of the gate, its groups and its servers in one turn, together with everything that `alongside`
   * replaces.
   *
   * @throws {ConfigError} and changes nothing
   */
  replace(next: Rules, alongside: () => void): ReturnType<StagedFleet['commit']>
}

/** Options that the host of the gateway sets. */
export interface HostOptions {
  /** The folder of the built console. */
  readonly consoleDir: string
  /** How to read a text that people propose for the file. Default: in the same way as the file. */
  readonly reading?: Pick<LoadConfigOptions, 'env' | 'packagesFrom'> | undefined
  /** With `watch: true`: how often the file is checked, in milliseconds. Default 1000. */
  readonly watchEveryMs?: number | undefined
}
