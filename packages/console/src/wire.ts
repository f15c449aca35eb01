/** The bodies of the gateway's API. Types only: the console and the gateway share no code. */
export type {
  ApprovalRow,
  ApprovalsBody,
  ApprovalVerdictBody,
  AppRow,
  AppsBody,
  AuditBody,
  AuditCountsBody,
  AuditEvidenceBody,
  CallersBody,
  ErrorBody,
  GroupBadge,
  GroupRow,
  HaltBody,
  HaltReach,
  HaltRow,
  HaltsBody,
  ListRow,
  NeedRow,
  NeedsBody,
  PinRow,
  PinsBody,
  LiveMessage,
  ServerInstances,
  ServerRow,
  SessionBody,
  ToolBody,
  ToolExport,
  ToolRow,
  ToolsBody,
  WarningRow,
  WarningsBody,
  WhyBody,
} from '../../gateway/src/api/wire.ts'
export type { Approval, OutcomeWord, Reason } from '@toolgate/core'
export type { AuditEvent, AuditOutcome, AuditRecord } from '@toolgate/core/audit'
export type { ApprovalStatus } from '@toolgate/core/stores'
export type { ItemKind } from '@toolgate/core/toolset'
