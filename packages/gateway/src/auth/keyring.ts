import { hash, timingSafeEqual } from 'node:crypto'
import { type Caller, ConfigError, defineCaller } from '@toolgate/core'
import type { CallerConfig } from '../config/config.ts'

/** The caller of a key, or why there is none. */
export type Authentication =
  | { readonly ok: true; readonly for: 'mcp' | 'console'; readonly caller: Caller }
  | { readonly ok: false; readonly reason: 'missing' | 'malformed' | 'unknown' }

export type Authenticated = Extract<Authentication, { ok: true }>
export type AuthenticationProblem = Extract<Authentication, { ok: false }>['reason']

export interface Keyring {
  /** Reads an `Authorization` header. Never throws. */
  authenticate(authorizationHeader: string | undefined): Authentication
}

const DIGEST_BYTES = 32
const MAX_HEADER_LENGTH = 1024
const MAX_REMEMBERED = 1024
/** RFC 9110 §11.1: the scheme is case-insensitive. */
const BEARER = /^bearer(?: |$)/i
/** Wider than RFC 6750's b64token, so that every configured key without spaces can be sent. */
const BEARER_KEY = /^bearer +([\x21-\x7e]+)$/i

/**
 * Returns the keyring of the configured callers.
 *
 * Only the SHA-256 of keys is kept. A presented key is hashed and compared in
 * constant time with every known one, without stopping at a match.
 * Each caller is frozen once, so that its views are found by identity.
 *
 * @throws {ConfigError} for a hash that is not SHA-256 and for two callers with one key
 */
export function createKeyring(callers: readonly CallerConfig[]): Keyring {
  const entries = callers.map(toEntry)
  checkDistinct(entries)
  /** Successes only, by digest. Its timing reveals only something about a hash, which a sender cannot choose. */
  const known = new Map<string, Authenticated>()

  return {
    authenticate(header) {
      if (header === undefined || !BEARER.test(header)) return MISSING
      if (header.length > MAX_HEADER_LENGTH) return MALFORMED
      const key = BEARER_KEY.exec(header)?.[1]
      if (key === undefined) return MALFORMED
      const digest = hash('sha256', key, 'base64')
      const remembered = known.get(digest)
      if (remembered) return remembered
      const found = findEntry(entries, Buffer.from(digest, 'base64'))
      if (!found) return UNKNOWN
      if (known.size >= MAX_REMEMBERED) known.clear()
      known.set(digest, found.answer)
      return found.answer
    },
  }
}

/**
 * Returns the `WWW-Authenticate` header of a 401.
 *
 * RFC 6750 §3.1: without a bearer token there is no error code.
 */
export function toChallenge(problem: AuthenticationProblem): string {
  return problem === 'missing' ? 'Bearer realm="toolgate"' : 'Bearer realm="toolgate", error="invalid_token"'
}

interface Entry {
  readonly keyHash: Uint8Array
  readonly answer: Authenticated
}

const MISSING: Authentication = Object.freeze({ ok: false, reason: 'missing' })
const MALFORMED: Authentication = Object.freeze({ ok: false, reason: 'malformed' })
const UNKNOWN: Authentication = Object.freeze({ ok: false, reason: 'unknown' })

function toEntry({ keyHash, for: kind, caller }: CallerConfig, index: number): Entry {
  if (keyHash.byteLength !== DIGEST_BYTES)
    throw new ConfigError(`callers[${index}].keyHash`, 'must be a SHA-256 digest of 32 bytes')
  return { keyHash, answer: Object.freeze({ ok: true, for: kind, caller: defineCaller(caller) }) }
}

function checkDistinct(entries: readonly Entry[]): void {
  const first = new Map<string, number>()
  for (const [index, { keyHash }] of entries.entries()) {
    const text = Buffer.from(keyHash).toString('hex')
    const other = first.get(text)
    if (other !== undefined) throw new ConfigError(`callers[${index}]`, `has the same key as callers[${other}]`)
    first.set(text, index)
  }
}

/** Compares every entry, also after a match, so that timing reveals nothing about the keys. */
function findEntry(entries: readonly Entry[], digest: Uint8Array): Entry | undefined {
  let found: Entry | undefined
  for (const entry of entries) if (timingSafeEqual(entry.keyHash, digest)) found = entry
  return found
}

/** Returns the SHA-256 of the key in an `Authorization` header, in hex; an empty text without a key. */
export function toClientId(authorizationHeader: string | undefined): string {
  if (authorizationHeader === undefined || !BEARER.test(authorizationHeader)) return ''
  const key = authorizationHeader.slice(0, MAX_HEADER_LENGTH).replace(/^bearer */i, '')
  return hash('sha256', key, 'hex')
}

/** Returns an id of the key in an `Authorization` header: the start of its SHA-256, which does not reveal the key. */
export function toKeyId(authorizationHeader: string | undefined): string | undefined {
  return toClientId(authorizationHeader).slice(0, KEY_ID_LENGTH) || undefined
}

const KEY_ID_LENGTH = 8
