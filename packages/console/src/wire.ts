/** The bodies of the gateway's API. Types only: the console and the gateway meet over HTTP. */
export type {
  ApprovalsBody,
  ApprovalVerdictBody,
  AuditBody,
  CallersBody,
  ErrorBody,
  GroupRow,
  HaltBody,
  HaltReach,
  HaltRow,
  HaltsBody,
  PinRow,
  PinsBody,
  ServerRow,
  SessionBody,
  ToolRow,
  ToolsBody,
} from '../../gateway/src/api/wire.ts'
export type { Approval, ApprovalStatus, AuditEvent, AuditRecord, OutcomeWord, Reason } from '@toolgate/core'
