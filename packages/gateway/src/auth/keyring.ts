import { timingSafeEqual } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { type Caller, ConfigError, defineCaller } from '@toolgate/core'
import { callerKey } from '@toolgate/core/internal'
import type { CallerConfig } from '../config/config.ts'
import { type Authenticator, createAuthenticator, type Bearer, type Credential } from './credential.ts'

/** The keys of a configuration. */
export interface Keyring {
  readonly credentials: readonly Credential[]
  find(bearer: Pick<Bearer, 'digest'>): Credential | undefined
  /** Returns the credential with an id, expired or not. */
  current(id: string): Credential | undefined
}

/** The callers of changed credentials, as they were before the change. */
export interface EndedCallers {
  /** Callers whose credentials were removed or lost rights. Their sessions and logins end. */
  readonly ended: ReadonlySet<Caller>
  /**
   * The current caller for each former one: all `ended` callers, and callers that gained rights. Streams of the former
   * callers end.
   */
  readonly replaced: ReadonlyMap<Caller, Caller | undefined>
}

const DIGEST_BYTES = 32
const MAX_REMEMBERED = 1024

/**
 * Returns the keys of the configured callers.
 *
 * Only the SHA-256 of a key is stored. The hash of a presented key is compared in constant time with every known hash,
 * without stopping at a match. Each caller is frozen once, so that its views are found by identity. `before`: the keys
 * of the previous revision.
 *
 * @throws {ConfigError} for a hash that is not SHA-256 and for two callers with one key
 */
export function createKeyring(callers: readonly CallerConfig[], before?: Keyring): Keyring {
  const entries = callers.map((caller, i) => toEntry(caller, i, before))
  checkDistinct(entries)
  const byId = new Map(entries.map(({ credential }) => [credential.id, credential]))
  /** Successful look-ups only, by digest. Their timing reveals something about a hash, which a sender cannot choose. */
  const known = new Map<string, Credential>()

  return {
    credentials: entries.map(({ credential }) => credential),
    find({ digest }) {
      const remembered = known.get(digest)
      if (remembered) return remembered
      const found = findEntry(entries, Buffer.from(digest, 'base64'))
      if (!found) return undefined
      if (known.size >= MAX_REMEMBERED) known.clear()
      known.set(digest, found.credential)
      return found.credential
    },
    current: byId.get.bind(byId),
  }
}

/** Returns an authenticator that accepts only the keys of the configured callers. */
export function authenticateKeys(callers: readonly CallerConfig[]): Authenticator {
  const keyring = createKeyring(callers)
  return createAuthenticator([{ ...keyring, find: async (bearer) => keyring.find(bearer) }])
}

interface KeyEntry {
  readonly keyHash: Uint8Array
  readonly credential: Credential
}

function toEntry(
  { keyHash, for: kind, caller, apps, expiresAtMs }: CallerConfig,
  index: number,
  before: Keyring | undefined,
): KeyEntry {
  if (keyHash.byteLength !== DIGEST_BYTES)
    throw new ConfigError(`callers[${index}].keyHash`, 'must be a SHA-256 digest of 32 bytes')
  const id = Buffer.from(keyHash).toString('hex')
  const credential: Credential = {
    id,
    for: kind,
    caller: defineCaller({ ...caller }),
    issuer: 'key',
    ...(apps && { apps }),
    ...(expiresAtMs === undefined ? {} : { expiresAtMs }),
  }
  const known = before?.current(id)
  // An unchanged key keeps its object, because streams and subscriptions are found by it.
  return { keyHash, credential: known && isDeepStrictEqual(known, credential) ? known : Object.freeze(credential) }
}

function checkDistinct(entries: readonly KeyEntry[]): void {
  const first = new Map<string, number>()
  for (const [index, { credential }] of entries.entries()) {
    const other = first.get(credential.id)
    if (other !== undefined) throw new ConfigError(`callers[${index}]`, `has the same key as callers[${other}]`)
    first.set(credential.id, index)
  }
}

/** Compares every entry, even after a match, so that timing reveals nothing about the keys. */
function findEntry(entries: readonly KeyEntry[], digest: Uint8Array): KeyEntry | undefined {
  let found: KeyEntry | undefined
  for (const entry of entries) if (timingSafeEqual(entry.keyHash, digest)) found = entry
  return found
}

/** Returns the callers whose credentials were removed or lost rights. Their sessions and logins end. */
export function findEnded({ credentials }: Keyring, after: Keyring): EndedCallers {
  const currentOf = (id: string) => after.current(id)
  const replaced = new Map(
    credentials.flatMap(({ id, caller }) => {
      const now = currentOf(id)?.caller
      return now === caller ? [] : [[caller, now] as const]
    }),
  )
  const ended = new Set(
    credentials.flatMap((credential) => {
      const now = currentOf(credential.id)
      const isSame = now !== undefined && now.for === credential.for && !isNarrower(credential.caller, now.caller)
      return isSame && opensAll(now.apps, credential.apps) ? [] : [credential.caller]
    }),
  )
  for (const caller of ended) replaced.set(caller, undefined)
  return { ended, replaced }
}

/** Whether a caller has fewer rights. Any changed attribute counts, as policies may read it. */
function isNarrower(before: Caller, after: Caller): boolean {
  const { roles: oldRoles, scopes: oldScopes, ...old } = before
  const { roles, scopes, ...now } = after
  if (callerKey(old) !== callerKey(now)) return true
  return !includesAll(roles, oldRoles) || !includesAll(scopes, oldScopes)
}

function includesAll(now: readonly string[] = [], old: readonly string[] = []): boolean {
  return old.every((one) => now.includes(one))
}

/** Whether all former apps are still open. A credential without a list opens every app. */
function opensAll(now: readonly string[] | undefined, old: readonly string[] | undefined): boolean {
  return now === undefined || (old !== undefined && includesAll(now, old))
}
