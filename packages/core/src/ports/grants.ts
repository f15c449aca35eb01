import type { ApprovalBinding, MaybePromise } from './ports.ts'

/**
 * What a grant covers: calls with an equal input, calls whose input differs only in the named fields, or all calls of the
 * tool.
 */
export const GRANT_COVERS = ['input', 'fields', 'tool'] as const
export type GrantCovers = (typeof GRANT_COVERS)[number]

export const GRANT_STATUSES = ['live', 'used', 'expired', 'revoked'] as const
export type GrantStatus = (typeof GRANT_STATUSES)[number]

/** How a field may differ: `any` value or none, or a number between two bounds, both included. */
export type GrantedField = { readonly any: true } | { readonly from: number | bigint; readonly upTo: number | bigint }

/**
 * A field that the approver names. `any`: any value or none. `upTo`: a number of at least 0, or of at least the approved
 * one if that is less. `is` states the approved value, and grants nothing: another value is an error.
 */
export type NamedField = { readonly any: true } | { readonly upTo: number | bigint } | { readonly is: unknown }

/** What an approver grants with an approval: calls like the approved one, without asking again. */
export interface GrantRequest {
  readonly covers: GrantCovers
  /**
   * Only with `covers: 'fields'`: the fields that may differ, by name, or by an RFC 6901 pointer such as `/order/amount`.
   * All other fields must be equal to those of the approved input.
   */
  readonly fields?: Readonly<Record<string, NamedField>> | undefined
  /** How many calls it covers, besides the approved one. Default: as many as the bounds allow. */
  readonly uses?: number | undefined
  /** For how long, in milliseconds. Give this or `untilMs`. */
  readonly forMs?: number | undefined
  /** Until when, in wall-clock milliseconds. */
  readonly untilMs?: number | undefined
  /** It also covers other runs of the same user. Default: only the run of the approved call. */
  readonly anyRun?: true | undefined
}

/** The bounds within which approvers may grant. */
export interface GrantRules {
  /** The longest life of a grant, in milliseconds. */
  readonly maxMs: number
  /** The most calls of a grant. Default 100, at most 1,000. */
  readonly maxUses?: number | undefined
  /** `other`: only another person than the one who asked may grant. Default: whoever may approve. */
  readonly by?: 'other' | undefined
}

/** An approval with a longer life: it covers further calls like the approved one. */
export interface Grant extends Omit<ApprovalBinding, 'inputHash'> {
  /** The id of the approval with which it was made. */
  readonly id: string
  readonly covers: GrantCovers
  /** The fields that may differ, by RFC 6901 pointer. */
  readonly fields?: Readonly<Record<string, GrantedField>>
  /** SHA-256, hex, of the input without `fields`. Absent if it covers the tool. */
  readonly inputHash?: string
  /** The approved input without `fields`. Absent if it covers the tool. */
  readonly input?: unknown
  /** The hashes of the reasons that asked. Another reason needs a person again. */
  readonly clauses: readonly string[]
  /** It also covers other runs of the user. */
  readonly anyRun?: true
  /** How many calls it covers. */
  readonly uses: number
  readonly used: number
  readonly status: GrantStatus
  readonly grantedBy: string
  /** Wall-clock milliseconds. */
  readonly grantedAt: number
  readonly expiresAt: number
  /** Why it was granted, as the approver says. */
  readonly reason?: string
  /** The approver is another person than the one who asked, and than those behind the call. */
  readonly byOther?: true
  readonly revokedBy?: string
  readonly revokedAt?: number
  readonly revokeReason?: string
}

/** The fields of a new grant. */
export type NewGrant = Omit<Grant, 'used' | 'status' | 'revokedBy' | 'revokedAt' | 'revokeReason'>

/** Selects the grants that match every given field. */
export interface GrantFilter {
  readonly status?: GrantStatus
  readonly tenant?: string
  readonly user?: string
  readonly tool?: string
  /** Only grants older than the one with this id: the next page. Empty for an unknown id. */
  readonly before?: string
  /** Default 100. */
  readonly limit?: number
}

export interface GrantRevocation {
  readonly by: string
  readonly atMs: number
  readonly reason?: string | undefined
}

/** Keeps grants, each used a fixed number of times by all processes together. Times are wall-clock milliseconds. */
export interface GrantStore {
  /**
   * Keeps a new grant.
   *
   * @throws {ToolgateError} `grant_too_many` if the user has 100 live grants, or the store 10,000; `approval_decided` if
   * the approval has made one before
   */
  create(grant: NewGrant, nowMs: number): MaybePromise<Grant>
  get(id: string, nowMs: number): MaybePromise<Grant | undefined>
  /** Returns the live grants of a user for a tool, those that end first come first. */
  find(of: Pick<Grant, 'tenant' | 'user' | 'tool'>, nowMs: number): MaybePromise<readonly Grant[]>
  /** Returns grants, newest first. Includes finished ones for as long as the store keeps them. */
  list(filter: GrantFilter, nowMs: number): MaybePromise<readonly Grant[]>
  /**
   * Takes one use of a live grant. Returns `false` if none is left, or if it was revoked or has expired. `spend` names the
   * use: a repeated call with the same name takes nothing more and returns `true`.
   */
  take(id: string, nowMs: number, spend: string): MaybePromise<boolean>
  /** Returns a use, because the call did not run. */
  giveBack(id: string, spend: string): MaybePromise<void>
  /**
   * Ends a grant. No `take` succeeds from then on.
   *
   * @throws {ToolgateError} `grant_unknown`, `grant_ended` if it was revoked or has expired
   */
  revoke(id: string, revocation: GrantRevocation): MaybePromise<Grant>
}
