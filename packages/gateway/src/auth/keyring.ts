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
  /** Returns the credential of an id, expired or not. */
  current(id: string): Credential | undefined
  renewed(credential: Credential): Credential | undefined
}

/** Callers of credentials, as they were. */
export interface EndedCallers {
  /** Of credentials that are gone, or that may do less: they lose their sessions and logins. */
  readonly ended: ReadonlySet<Caller>
  /** These, and those that may do more now, with the caller of today. Streams that were opened for them end. */
  readonly replaced: ReadonlyMap<Caller, Caller | undefined>
}

const DIGEST_BYTES = 32
const MAX_REMEMBERED = 1024

/**
 * Returns the keys of the configured callers.
 *
 * Only the SHA-256 of keys is kept. The hash of a presented key is compared in
 * constant time with every known one, without stopping at a match.
 * Each caller is frozen once, so that its views are found by identity. `before` are the keys of the revision before.
 *
 * @throws {ConfigError} for a hash that is not SHA-256 and for two callers with one key
 */
export function createKeyring(callers: readonly CallerConfig[], before?: Keyring): Keyring {
  const entries = callers.map((caller, i) => toEntry(caller, i, before))
  checkDistinct(entries)
  const byId = new Map(entries.map(({ credential }) => [credential.id, credential]))
  /** Successes only, by digest. Its timing reveals only something about a hash, which a sender cannot choose. */
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
    current: (id) => byId.get(id),
    renewed: ({ id }) => byId.get(id),
  }
}

/** Returns an authenticator that knows the keys of the configured callers and nothing else. */
export function authenticateKeys(callers: readonly CallerConfig[]): Authenticator {
  return createAuthenticator([createKeyring(callers)])
}

interface Entry {
  readonly keyHash: Uint8Array
  readonly credential: Credential
}

function toEntry(
  { keyHash, for: kind, caller, apps, expiresAtMs }: CallerConfig,
  index: number,
  before: Keyring | undefined,
): Entry {
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
  // The same object for an unchanged key: streams and subscriptions are found by it.
  return { keyHash, credential: known && isDeepStrictEqual(known, credential) ? known : Object.freeze(credential) }
}

function checkDistinct(entries: readonly Entry[]): void {
  const first = new Map<string, number>()
  for (const [index, { credential }] of entries.entries()) {
    const other = first.get(credential.id)
    if (other !== undefined) throw new ConfigError(`callers[${index}]`, `has the same key as callers[${other}]`)
    first.set(credential.id, index)
  }
}

/** Compares every entry, also after a match, so that timing reveals nothing about the keys. */
function findEntry(entries: readonly Entry[], digest: Uint8Array): Entry | undefined {
  let found: Entry | undefined
  for (const entry of entries) if (timingSafeEqual(entry.keyHash, digest)) found = entry
  return found
}

/** Returns the callers of credentials that are gone, or that may do less than before: they lose their sessions and logins. */
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

/** Other attributes may narrow, too, as policies read them. */
function isNarrower(before: Caller, after: Caller): boolean {
  const { roles: oldRoles, scopes: oldScopes, ...old } = before
  const { roles, scopes, ...now } = after
  if (callerKey(old) !== callerKey(now)) return true
  return !includesAll(roles, oldRoles) || !includesAll(scopes, oldScopes)
}

function includesAll(now: readonly string[] = [], old: readonly string[] = []): boolean {
  return old.every((one) => now.includes(one))
}

/** A credential without a list opens every app. */
function opensAll(now: readonly string[] | undefined, old: readonly string[] | undefined): boolean {
  return now === undefined || (old !== undefined && includesAll(now, old))
}
