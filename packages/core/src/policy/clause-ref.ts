import type { ClauseKind, ParsedClause } from './parse.ts'

/** Names a clause of a policy. */
export interface ClauseRef {
  /** The name of its policy. */
  readonly policy: string
  readonly kind: ClauseKind
  /** Position in its list, from 0. */
  readonly index: number
  readonly id?: string
  /** Its selectors, separated by commas. */
  readonly match: string
}

/**
 * Returns the text of a clause for records and people, such as `baseline#deny[2]`. For a clause with an id, the id replaces
 * kind and position, as in `baseline#no-mail`.
 */
export function clauseText({ policy, kind, index, id }: Omit<ClauseRef, 'match'>): string {
  return `${policy}#${id ?? `${kind}[${index}]`}`
}

export function toClauseRef(policy: string, { kind, index, id, match }: ParsedClause): ClauseRef {
  return { policy, kind, index, ...(id === undefined ? {} : { id }), match }
}
