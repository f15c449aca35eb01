import type { Grant, GrantRevocation, NewGrant } from '@toolgate/core/stores'
import { grantAt } from '@toolgate/core/stores'
import { readOwnJson, toJsonText } from '@toolgate/values/json'
import { numberIn, type Row, textIn } from '../rows.ts'
import { textOf } from './approval-rows.ts'

/** How long an ended grant stays visible, in milliseconds. */
export const GRANT_HISTORY_MS = 30 * 86_400_000
export const DEFAULT_LIMIT = 100

/** The columns that decide the status of a grant. A revocation or a seen end is stored, and all else is computed. */
export const GRANT_DATED = 'seq, id, status, granted_at, expires_at, uses, used'

/** The parts of a grant that are stored in one column. */
type GrantBody = Omit<Grant, 'status' | 'used' | 'revokedBy' | 'revokedAt' | 'revokeReason'>

/** Returns a new grant as its columns. */
export function toGrantRow(grant: NewGrant) {
  const { id, tenant, user, tool, uses, grantedAt, expiresAt } = grant
  return {
    id,
    holder: holderKey(grant),
    texts: [textOf(tenant), textOf(user), JSON.stringify(tool)],
    numbers: [uses, grantedAt, expiresAt],
    body: toJsonText(grant satisfies GrantBody) ?? '',
  }
}

/** Returns the key of the user who may use a grant. */
export function holderKey({ tenant, user }: Pick<Grant, 'tenant' | 'user'>): string {
  return JSON.stringify([tenant ?? null, user ?? null])
}

/** Returns a grant as of a time. */
export function toGrant(row: Row, nowMs: number): Grant {
  const body = readOwnJson(textIn(row, 'body'), 'exact') as GrantBody
  const { tenant, user, run } = body
  const revocation = row['revocation'] === null ? undefined : textIn(row, 'revocation')
  const { by, atMs, reason } = (revocation === undefined ? {} : readOwnJson(revocation)) as Partial<GrantRevocation>
  const grant: Grant = Object.freeze({
    ...body,
    // JSON has no place for an absent part.
    tenant,
    user,
    run,
    used: numberIn(row, 'used'),
    status: storedStatus(row),
    ...(by !== undefined && { revokedBy: by }),
    ...(atMs !== undefined && { revokedAt: atMs }),
    ...(reason !== undefined && { revokeReason: reason }),
  })
  return grantAt(grant, nowMs)
}

export function storedStatus(row: Row): 'live' | 'revoked' | 'expired' {
  const status = textIn(row, 'status')
  if (status === 'live' || status === 'revoked' || status === 'expired') return status
  throw new Error(`a grant has the unknown status ${status}`)
}

/** Returns a revocation as the text of its column. */
export function revocationText({ revokedBy: by, revokedAt: atMs, revokeReason: reason }: Grant): string {
  return toJsonText({ by, atMs, reason }) ?? ''
}
