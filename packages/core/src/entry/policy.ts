// `@toolgate/core/policy`: parsed rules. For packages that build on core, such as `@toolgate/change`; may change in any
// release.

// Parsed policies
export { type ParsedClause, type ParsedPolicy, parsePolicies } from '../policy/parse.ts'
export { type Condition, listPolicies } from '../policy/policy.ts'
export { type ClauseRef, clauseText } from '../policy/clause-ref.ts'
export { enforcedOf } from '../policy/shadow.ts'
export { coversApprover, describeApprover, strictestApprover } from '../policy/approver.ts'
export { findIdleClauses, type IdleClause } from '../policy/idle-clauses.ts'
export { parseAliases } from '../tools/aliases.ts'
export { toGroupMap } from '../tools/groups.ts'
export type { GroupSelectors, Selector } from '../tools/selector.ts'

// Conditions and the fields that they read
export { type ParsedCondition, readCallerAs, toCelTool } from '../policy/condition.ts'
export { host, within } from '../policy/functions.ts'
export { historyUse } from '../policy/history-use.ts'
export { joinOperands, NO_OPERANDS, type Operands } from '../policy/operands.ts'
export type { AmountContext } from '../policy/amount.ts'

// Unknown values, and values that satisfy a condition
export { type KnownParts, type Leaning, NOTHING_KNOWN, takeUnknownRead, uncertainValue } from '../policy/uncertain.ts'
export { joined, type Wish, wishesFor, type WishList } from '../policy/wishes.ts'
