import { checkShape, ConfigError, shapeOf, ToolgateError } from '@toolgate/values'
import type {
  Grant,
  GrantFilter,
  GrantRequest,
  GrantRevocation,
  GrantRules,
  GrantStatus,
  GrantStore,
} from '../ports/grants.ts'
import { CLOCK_TOLERANCE_MS } from './approval-rules.ts'

/** More than a person keeps in mind. */
export const MAX_LIVE_PER_USER = 100
export const MAX_GRANTS = 10_000
export const DEFAULT_USES = 100
const MAX_USES = 1000
const MAX_LIFE_MS = 30 * 86_400_000

/** Returns a grant at a given time. */
export function grantAt(grant: Grant, nowMs: number): Grant {
  const status = statusAt(grant, nowMs)
  return status === grant.status ? grant : Object.freeze({ ...grant, status })
}

/** The fields of a grant that decide its status. */
export type DatedGrant = Pick<Grant, 'status' | 'grantedAt' | 'expiresAt' | 'uses' | 'used'>

function statusAt({ status, grantedAt, expiresAt, uses, used }: DatedGrant, nowMs: number): GrantStatus {
  if (status === 'revoked' || status === 'expired') return status
  // A grant from the future would live longer than its approver allowed.
  if (nowMs >= expiresAt || nowMs < grantedAt - CLOCK_TOLERANCE_MS) return 'expired'
  return used >= uses ? 'used' : 'live'
}

/**
 * Returns whether a grant has reached its end. A store that sees this must store it as expired, so that setting the clock
 * back does not open it again.
 */
export function isGrantOver({ status, expiresAt }: Pick<Grant, 'status' | 'expiresAt'>, nowMs: number): boolean {
  return status !== 'revoked' && status !== 'expired' && nowMs >= expiresAt
}

/**
 * Returns a revoked grant. Pass `grant` as of the time of the revocation; `undefined` for an unknown id. A used one can be
 * revoked too, because a call that does not run returns its use.
 *
 * @throws {ToolgateError} `grant_unknown`, `grant_ended`
 */
export function revokedGrant(grant: Grant | undefined, id: string, { by, atMs, reason }: GrantRevocation): Grant {
  if (!grant) throw unknownGrant(id)
  if (grant.status === 'revoked' || grant.status === 'expired')
    throw new ToolgateError('grant_ended', `The grant "${id}" is ${grant.status} already.`)
  const revoked = { ...grant, status: 'revoked' as const, revokedBy: by, revokedAt: atMs }
  return Object.freeze(reason === undefined ? revoked : { ...revoked, revokeReason: reason })
}

export function unknownGrant(id: string): ToolgateError {
  return new ToolgateError('grant_unknown', `There is no grant "${id.slice(0, 100)}".`)
}

/** @throws {ToolgateError} `grant_too_many` if a user has as many live grants as they may */
export function checkLiveGrants(count: number): void {
  if (count >= MAX_LIVE_PER_USER)
    throw new ToolgateError(
      'grant_too_many',
      `This user has ${MAX_LIVE_PER_USER} live grants. Revoke one before you make another.`,
    )
}

/** The error of a store that is full of live grants. */
export function tooManyGrants(): ToolgateError {
  return new ToolgateError(
    'grant_too_many',
    `There are ${MAX_GRANTS} live grants. Revoke some before you make another.`,
  )
}

/** An approval makes one grant. */
export function grantedBefore(id: string): ToolgateError {
  return new ToolgateError('approval_decided', `The approval "${id}" has made a grant already.`)
}

const FILTER = shapeOf<GrantFilter>(
  { status: true, tenant: true, user: true, tool: true, before: true, limit: true },
  'field',
)

/** Checks the fields. @throws {ConfigError} for an unknown field, which would list too much */
export function checkGrantFilter(filter: GrantFilter): void {
  checkShape('list', filter, FILTER)
}

export function matchesGrant(grant: Grant, { status, tenant, user, tool }: GrantFilter): boolean {
  return (
    (status === undefined || grant.status === status) &&
    (tenant === undefined || grant.tenant === tenant) &&
    (user === undefined || grant.user === user) &&
    (tool === undefined || grant.tool === tool)
  )
}

/** The bounds of grants, with their defaults. */
export interface ParsedGrantRules extends GrantRules {
  readonly maxUses: number
}

/** The grants of a gate, and the current bounds. */
export interface OpenGrants {
  readonly store: GrantStore
  /** `undefined` while grants are switched off. */
  readonly rules: () => ParsedGrantRules | undefined
}

const RULES = shapeOf<GrantRules>({ maxMs: true, maxUses: true, by: true })

/** Checks the bounds of grants. `undefined`: grants are switched off. @throws {ConfigError} */
export function parseGrantRules(rules: GrantRules | undefined): ParsedGrantRules | undefined {
  if (rules === undefined) return undefined
  checkShape('grants', rules, RULES)
  const { maxMs, maxUses = DEFAULT_USES, by } = rules
  checkWhole('grants.maxMs', maxMs, MAX_LIFE_MS)
  checkWhole('grants.maxUses', maxUses, MAX_USES)
  if (by !== undefined && by !== 'other') throw new ConfigError('grants.by', 'must be "other"')
  return Object.freeze({ maxMs, maxUses, by })
}

function checkWhole(path: string, value: number, max: number): void {
  if (Number.isSafeInteger(value) && value >= 1 && value <= max) return
  throw new ConfigError(path, `must be a whole number from 1 to ${max}`)
}

const REQUEST = shapeOf<GrantRequest>(
  { covers: true, fields: true, uses: true, forMs: true, untilMs: true, anyRun: true },
  'field',
)

/** Checks the form of a request for a grant. @throws {ConfigError} naming the field */
export function checkGrantRequest(request: GrantRequest): void {
  checkShape('decide.grant', request, REQUEST)
}

/**
 * Returns how often and until when a grant holds.
 *
 * @throws {ToolgateError} `grant_invalid` beyond the bounds
 */
export function lifeOf(
  { uses, forMs, untilMs }: GrantRequest,
  { maxMs, maxUses }: ParsedGrantRules,
  nowMs: number,
): Pick<Grant, 'uses' | 'expiresAt'> {
  const count = uses ?? maxUses
  if (!Number.isSafeInteger(count) || count < 1 || count > maxUses)
    throw new ToolgateError('grant_invalid', `A grant covers 1 to ${maxUses} calls besides the approved one.`)
  if ((forMs === undefined) === (untilMs === undefined))
    throw new ToolgateError('grant_invalid', 'Give one of "forMs" and "untilMs": how long, or until when it holds.')
  const expiresAt = untilMs ?? nowMs + (forMs ?? 0)
  if (!Number.isSafeInteger(expiresAt) || expiresAt <= nowMs || expiresAt > nowMs + maxMs)
    throw new ToolgateError(
      'grant_invalid',
      `A grant holds at most ${maxMs / 60_000} minutes here, and ends in the future.`,
    )
  return { uses: count, expiresAt }
}
