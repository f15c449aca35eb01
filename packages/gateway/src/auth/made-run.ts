import type { Policy } from '@toolgate/core'
import type { AuditEntry } from '@toolgate/core/audit'
import { cut, sha256Hex } from '@toolgate/values'
import { isObject } from '@toolgate/values/json'
import type { Credential } from './credential.ts'
import { isTexts } from './made-key.ts'

/** A run that a host has started, stored under the hash of its token. */
export interface MadeRun {
  readonly id: string
  /** The ids of the parent run and its ancestors, nearest first. The history of the last one is shared. */
  readonly above: readonly string[]
  readonly user: string
  readonly tenant?: string | undefined
  readonly like?: string | undefined
  readonly apps?: readonly string[] | undefined
  readonly policy: readonly Policy[]
  readonly userWords?: readonly string[] | undefined
  readonly createdAt: number
  readonly expiresAt: number
  /** The credential that started the run. The run ends with it. */
  readonly host: string
  /**
   * The user of that credential and everyone who made it, and those of the parent runs. Absent for a run of an earlier
   * version.
   */
  readonly makers?: readonly string[] | undefined
}

/**
 * A run as it is listed, without its texts and rules. It is kept for a day after its end, until the end is recorded.
 */
export interface ListedRun extends Pick<
  MadeRun,
  'id' | 'above' | 'user' | 'tenant' | 'host' | 'createdAt' | 'expiresAt'
> {
  /** The user of the host. */
  readonly hostUser: string | undefined
  /** A text for people about the restrictions of the run. */
  readonly narrows: string | undefined
  /** The hash of its token. */
  readonly hash: string
}

/**
 * Why a run is over. `ended`: its host ended it. `revoked`: a person ended it. `parent_ended`: a parent run is over.
 * `host_ended`: the key of its host is no longer valid.
 */
export type RunEnd = 'ended' | 'revoked' | 'expired' | 'parent_ended' | 'host_ended'

/** How a run was ended early. */
export interface EndedRun {
  readonly reason: 'ended' | 'revoked'
  readonly by: string | undefined
}

export type RunRecord = Pick<AuditEntry, 'user_id' | 'tenant' | 'actor' | 'run_id' | 'reason' | 'detail'> & {
  readonly event: 'run_started' | 'run_ended'
}

const MAX_NARROWS = 600

export function toListed(
  { policy, userWords: _, makers: __, like, apps, ...run }: MadeRun,
  hash: string,
  hostUser: string | undefined,
): ListedRun {
  const parts = [
    like === undefined ? undefined : `like ${like}`,
    apps && `apps ${apps.join(', ')}`,
    policy.length === 0 ? undefined : `policy ${JSON.stringify(policy)}`,
  ].filter((part) => part !== undefined)
  return { ...run, hash, hostUser, narrows: parts.length === 0 ? undefined : cut(parts.join('; '), MAX_NARROWS) }
}

export function startRecord({ id, above: [parent], user, tenant, hostUser, narrows, expiresAt }: ListedRun): RunRecord {
  const of = parent === undefined ? '' : `of ${parent}, `
  const detail = `${of}until ${new Date(expiresAt).toISOString()}${narrows === undefined ? '' : `, narrowed by ${narrows}`}`
  const reason = parent === undefined ? 'root' : 'child'
  return { event: 'run_started', run_id: id, user_id: user, tenant, actor: hostUser, reason, detail }
}

export function endRecord({ id, user, tenant }: ListedRun, reason: RunEnd, by: string | undefined): RunRecord {
  return { event: 'run_ended', run_id: id, user_id: user, tenant, actor: by, reason }
}

/** Returns the key of the host. A key that replaces another key of the same host owns its runs. */
export function hostKey({ caller: { tenant, user } }: Credential): string {
  return sha256Hex(JSON.stringify([tenant ?? null, user ?? null]))
}

/** Parses a row. Only this class writes rows; an invalid row opens nothing. */
export function toMadeRun(value: unknown): MadeRun | undefined {
  if (!isObject(value)) return undefined
  const { id, above, user, policy, expiresAt, host, makers } = value
  const isRun = typeof id === 'string' && typeof user === 'string' && typeof host === 'string'
  if (!isRun || typeof expiresAt !== 'number' || !Array.isArray(above) || !Array.isArray(policy)) return undefined
  if (makers !== undefined && !isTexts(makers)) return undefined
  return value as unknown as MadeRun
}

export function toListedRun(value: unknown): ListedRun | undefined {
  if (!isObject(value) || typeof value['hash'] !== 'string' || typeof value['id'] !== 'string') return undefined
  return Array.isArray(value['above']) ? (value as unknown as ListedRun) : undefined
}
