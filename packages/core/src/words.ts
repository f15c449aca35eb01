// The word lists alone, for programs that must start fast: `@toolgate/core/words`.
export { APPROVAL_DECISIONS, APPROVAL_STATUSES, AUDIT_EVENTS, AUDIT_OUTCOMES } from './ports.ts'
