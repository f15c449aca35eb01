import { ConfigError } from '@toolgate/core'
import { checkShape, shapeOf } from '@toolgate/values'
import type { LeasedLockOptions } from './leased-lock.ts'
import type { StoredApprovalsOptions } from './state/approval-rows.ts'

const APPROVALS = shapeOf<StoredApprovalsOptions>({ ttlMs: true, historyMs: true, maxKept: true })
const LOCK = shapeOf<LeasedLockOptions>({ leaseMs: true })

/** Checks the options that SQLite and Postgres share. @throws {ConfigError} for an unknown one */
export function checkCommonOptions(
  opener: string,
  { approvals, lock }: { readonly approvals?: StoredApprovalsOptions; readonly lock?: LeasedLockOptions },
): void {
  if (approvals !== undefined) checkShape(`${opener}.approvals`, approvals, APPROVALS)
  if (lock !== undefined) checkShape(`${opener}.lock`, lock, LOCK)
}

/**
 * Returns the URL of a server without its password and its parameters, which may contain a password.
 *
 * @throws {ConfigError} if the text is not a URL of one of the protocols
 */
export function placeOf(opener: string, url: string, protocols: readonly string[], example: string): string {
  const parsed = typeof url === 'string' && URL.canParse(url) ? new URL(url) : undefined
  if (parsed === undefined || !protocols.includes(parsed.protocol))
    throw new ConfigError(`${opener}.url`, `must be a URL such as ${example}`)
  const { protocol, username, host, pathname } = parsed
  return `${protocol}//${username === '' ? '' : `${username}@`}${host}${pathname}`
}
