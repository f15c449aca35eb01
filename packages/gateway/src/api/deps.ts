import type {
  Approval,
  ApprovalStatus,
  ApprovalVerdict,
  AuditReader,
  Caller,
  Clock,
  MaybePromise,
  Tool,
  View,
} from '@toolgate/core'
import type { Keyring, OriginRules } from '../auth/index.ts'
import type { CallerConfig } from '../config/config.ts'
import type { GroupRow, ServerRow } from './wire.ts'

/** Answers whether a person may decide this approval. */
export type MayApprove = (approver: Caller, approval: Approval) => boolean

/** All that the API reads and changes. */
export interface ApiDeps {
  readonly keyring: Keyring
  readonly origins: OriginRules
  /** Whom `as` may name. */
  readonly callers: readonly CallerConfig[]
  view(caller: Caller): MaybePromise<View>
  /** Every tool of the catalog, in its order, also those nobody sees. */
  tools(): readonly Tool[]
  /** The name of a tool on the wire; absent where it cannot have one. */
  wireName(id: string): string | undefined
  groups(): readonly GroupRow[]
  servers(): readonly ServerRow[]
  readonly audit: AuditReader
  readonly approvals: ApprovalDesk
  readonly clock: Clock
  policyRevision(): number
  catalogRevision(): number
  /** Default: the role `approver`, and the requester himself. */
  readonly mayApprove?: MayApprove
  /** Cookies are not kept apart by port, so gateways on one host need names of their own. Default `toolgate_session`. */
  readonly cookieName?: string
  /** Hears of a fault that the client is told nothing about. */
  readonly onFault?: (error: unknown) => void
}

/** Approvals as people handle them. */
export interface ApprovalDesk {
  /** Newest first. */
  list(filter: { status?: ApprovalStatus; limit?: number }): MaybePromise<readonly Approval[]>
  get(id: string): MaybePromise<Approval | undefined>
  /**
   * Decides a pending one. The API has asked `mayApprove` before.
   *
   * @throws {ToolgateError} `approval_unknown`, `approval_decided`, `approval_forbidden`
   */
  decide(approver: Caller, id: string, verdict: ApprovalVerdict): MaybePromise<Approval>
}
