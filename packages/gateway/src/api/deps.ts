import type { Caller, Gate, Tool, View } from '@toolgate/core'
import type { AuditCounter, AuditExporter, AuditReader } from '@toolgate/core/audit'
import type { Approvals, HaltTarget, MaybePromise } from '@toolgate/core/internal'
import type { Pins } from '@toolgate/core/pins'
import type { Redactor } from '@toolgate/core/redact'
import type { Clock } from '@toolgate/core/stores'
import type { FailedLogins } from '../auth/failed-logins.ts'
import type { Keyring } from '../auth/keyring.ts'
import type { OriginRules } from '../auth/origin.ts'
import type { CallerConfig } from '../config/config.ts'
import type { AppRow, AuditEvidenceBody, GroupRow, HaltReach, NeedRow, ServerRow, WarningRow } from './wire.ts'

/** What halts need: the gate's own, and what their targets name now. */
export interface HaltDeps extends Pick<Gate, 'halt' | 'release'> {
  list(): Gate['halts']
  reach(target: HaltTarget): HaltReach
}

/** All that the API reads and changes. */
export interface ApiDeps {
  readonly keyring: Keyring
  readonly origins: OriginRules
  /** Counts and slows wrong keys. Absent where nobody does. */
  readonly logins?: Pick<FailedLogins, 'failed'>
  /** Whom `as` may name. */
  readonly callers: readonly CallerConfig[]
  /** What a caller sees; in an app where one is named. @throws {ToolgateError} `app_unknown` */
  view(caller: Caller, app?: string): MaybePromise<View>
  /** Every tool of the catalog, in its order, also those nobody sees. */
  tools(): readonly Tool[]
  /** The configured limits that count this tool's calls, as they are written. */
  limitsOf?(tool: Tool): readonly string[]
  /** The name of a tool on the wire; absent where it cannot have one. */
  wireName(id: string): string | undefined
  groups(): readonly GroupRow[]
  servers(): readonly ServerRow[]
  /** What is allowed and probably not meant. Absent: nothing is. */
  warnings?(): readonly WarningRow[]
  /** Absent where there are none. */
  apps?(): readonly AppRow[]
  /** What an app needs, or all groups. Absent: nothing. @throws {ToolgateError} `app_unknown` */
  needs?(app?: string): readonly NeedRow[]
  /** Absent where nothing can be switched off. */
  readonly preferences?: Gate['preferences']
  readonly audit: AuditReader & AuditExporter & AuditCounter
  /** What vouches for the audit. Absent for one in memory. */
  evidence?(): AuditEvidenceBody
  readonly approvals: Approvals
  /** Absent where there are none. */
  readonly pins?: Pick<Pins, 'list' | 'accept'>
  /** Absent where nothing can be halted. */
  readonly halts?: HaltDeps
  readonly clock: Clock
  /** What texts of servers pass through before they are shown. Default: the built-in tables. */
  readonly redact?: Redactor
  policyRevision(): number
  catalogRevision(): number
  /** Cookies are not kept apart by port, so gateways on one host need names of their own. Default `toolgate_session`. */
  readonly cookieName?: string
  /** Hears of a fault that the client is told nothing about. */
  readonly onFault?: (error: unknown) => void
}
