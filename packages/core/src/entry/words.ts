// `@toolgate/core/words`: word lists, for programs that must start fast.

export { APPROVAL_DECISIONS, APPROVAL_STATUSES, AUDIT_EVENTS, AUDIT_OUTCOMES } from '../ports/ports.ts'
export { GRANT_COVERS, GRANT_STATUSES } from '../ports/grants.ts'
export { ITEM_KINDS } from '../tools/tool-id.ts'
