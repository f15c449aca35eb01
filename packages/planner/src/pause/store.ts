import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { ConfigError } from '@toolgate/core'
import { checkShape, shapeOf } from '@toolgate/values'
import { readOwnJson } from '@toolgate/values/json'
import type { StateOptions, StateStore } from '@toolgate/core/stores'
import type { Conversation, PauseState } from './state.ts'

/** Stores pauses, each under the hash of its content, so that a changed pause is invalid. */
export interface PauseStore {
  /** Stores a pause, and returns its id: 43 characters of base64url. */
  put(state: PauseState, options: StateOptions): Promise<string>
  /** Reads a pause. */
  get(id: string): Promise<PauseState | undefined>
  /** Takes a pause. If several callers try, only one gets it. */
  take(id: string): Promise<PauseState | undefined>
}

/**
 * The length of each part, in characters. A store accepts 1 MiB of UTF-8, in which a character takes up to three bytes,
 * or two if JSON escapes it.
 */
const MAX_PART_CHARS = 300_000

/** The maximum number of parts of a pause, so 300 million characters. A tampered head cannot cause more reads. */
const MAX_PARTS = 1000

interface PauseHead {
  readonly parts: number
  readonly text: string
}

export function createPauseStore(state: StateStore): PauseStore {
  /** Reads a pause. Without its head, the other parts are not a pause. */
  const read = async (id: string, head: unknown, part: (key: string) => unknown): Promise<PauseState | undefined> => {
    if (!isHead(head)) return undefined
    const rest = await Promise.all(Array.from({ length: head.parts }, (_, i) => part(partKeyOf(id, i))))
    const text = [head.text, ...rest].join('')
    return idOf(text) === id ? (fromStoredText(text) as PauseState) : undefined
  }

  return {
    async put(pause, options) {
      const text = toStoredText(pause)
      const id = idOf(text)
      const [first = '', ...rest] = split(text)
      if (rest.length > MAX_PARTS)
        throw new RangeError(`the conversation is too long to be stored: ${text.length} characters`)
      for (const [i, part] of rest.entries()) await state.set(partKeyOf(id, i), part, options)
      // The head is stored last, so that nobody finds an incomplete pause.
      await state.set(keyOf(id), { parts: rest.length, text: first } satisfies PauseHead, options)
      return id
    },
    get: async (id) => read(id, await state.get(keyOf(id)), (key) => state.get(key)),
    take: async (id) => read(id, await state.take(keyOf(id)), (key) => state.take(key)),
  }
}

function keyOf(id: string): string {
  return `planner:pause:${id}`
}

function partKeyOf(id: string, part: number): string {
  return `${keyOf(id)}:${part}`
}

function idOf(text: string): string {
  return createHash('sha256').update(text).digest('base64url')
}

function isHead(value: unknown): value is PauseHead {
  if (typeof value !== 'object' || value === null || !('parts' in value) || !('text' in value)) return false
  const { parts, text } = value
  return (
    typeof text === 'string' && typeof parts === 'number' && Number.isInteger(parts) && parts >= 0 && parts <= MAX_PARTS
  )
}

/** Splits a text between characters, because stores reject half of a surrogate pair. */
function split(text: string): readonly string[] {
  const parts: string[] = []
  for (let start = 0; start < text.length;) {
    let end = Math.min(start + MAX_PART_CHARS, text.length)
    const last = text.charCodeAt(end - 1)
    if (end < text.length && last >= 0xd800 && last <= 0xdbff) end--
    parts.push(text.slice(start, end))
    start = end
  }
  return parts
}

/**
 * Converts a value to a text from which `fromStoredText` restores it: plain JSON, and also the bytes and URLs
 * in messages. Fields that JSON leaves out are left out.
 *
 * @throws for a value without JSON: a circular one, a bigint
 */
export function toStoredText(value: unknown): string {
  return JSON.stringify(encode(value)) ?? 'null'
}

/** Leaves out the contexts that cannot be stored, and counts them. */
export function toStorable(conversation: Conversation): { readonly conversation: Conversation; readonly lost: number } {
  const isLost = conversation.context !== undefined && !isStorable(conversation.context)
  let lost = isLost ? 1 : 0
  const pending = conversation.pending.map((call) => {
    if (call.kind !== 'agent') return call
    const inside = toStorable(call.level)
    lost += inside.lost
    return { ...call, level: inside.conversation }
  })
  return { conversation: { ...conversation, pending, context: isLost ? undefined : conversation.context }, lost }
}

/** Whether a value is restored unchanged: no functions, no class instances, no circles. */
function isStorable(value: unknown): boolean {
  try {
    return isDeepStrictEqual(fromStoredText(toStoredText(value)), value)
  } catch {
    return false
  }
}

export function fromStoredText(text: string): unknown {
  return decode(readOwnJson(text))
}

const BYTES = '~bytes'
const ADDRESS = '~url'
/** Marks an object whose only key looks like one of our marks. */
const OBJECT = '~'

function encode(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(encode)
  if (ArrayBuffer.isView(value))
    return { [BYTES]: Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('base64') }
  if (value instanceof ArrayBuffer) return { [BYTES]: Buffer.from(value).toString('base64') }
  if (value instanceof URL) return { [ADDRESS]: value.href }
  const { toJSON } = value as { readonly toJSON?: unknown }
  if (typeof toJSON === 'function') return encode(toJSON.call(value))
  const entries = Object.entries(value).map(([key, field]) => [key, encode(field)] as const)
  const copy = Object.fromEntries(entries)
  return isMarked(copy) ? { [OBJECT]: copy } : copy
}

function decode(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(decode)
  const marked = isMarked(value) ? Object.entries(value)[0] : undefined
  if (marked === undefined) return decodeFields(value)
  const [mark, content] = marked
  if (mark === BYTES) return new Uint8Array(Buffer.from(String(content), 'base64'))
  if (mark === ADDRESS) return new URL(String(content))
  return typeof content === 'object' && content !== null ? decodeFields(content) : content
}

function decodeFields(value: object): object {
  return Object.fromEntries(Object.entries(value).map(([key, field]) => [key, decode(field)]))
}

function isMarked(value: object): boolean {
  const keys = Object.keys(value)
  return keys.length === 1 && (keys[0] === BYTES || keys[0] === ADDRESS || keys[0] === OBJECT)
}

/** A key that signs and verifies tokens. */
export interface TokenKey {
  /** The key's id, which each token contains: 1 to 32 of `[A-Za-z0-9_-]`. */
  readonly id: string
  /** At least 32 bytes from a random source. A text counts its UTF-8 bytes. */
  readonly secret: string | Uint8Array
}

/** The content of a token. */
interface TokenClaims {
  /** The id of the pause: 43 characters of base64url. */
  readonly pause: string
  /** Wall-clock milliseconds. */
  readonly expiresAt: number
}

/**
 * The audience and the identity that a token is for. They are signed but not contained, so a wrong token does not show
 * what differs.
 */
interface TokenBinding {
  readonly identity: string
  /** The deployment. */
  readonly audience: string
}

export interface PauseTokens {
  sign(claims: TokenClaims, binding: TokenBinding): string
  /**
   * Returns the claims of a token. Returns `undefined` unless the token is exactly as one of the keys signed it for
   * this binding, and has not expired.
   */
  open(token: unknown, binding: TokenBinding, nowMs: number): TokenClaims | undefined
}

const KEY = shapeOf<TokenKey>({ id: true, secret: true }, 'field')
const VERSION = 'tgr1'
/** A prefix that separates these signatures from all others with the same key. */
const DOMAIN = 'toolgate.resume.v1'
const KEY_ID = /^[A-Za-z0-9_-]{1,32}$/
const TOKEN = /^tgr1\.([A-Za-z0-9_-]{1,32})\.([A-Za-z0-9_-]{43})\.([0-9a-z]{1,11})\.([A-Za-z0-9_-]{43})$/
const MIN_SECRET_BYTES = 32

/**
 * Returns the signer of resume tokens: HMAC-SHA-256 with the first key. All keys verify, so they can be
 * rotated: put the new one first, and remove the old one when its last token has expired.
 *
 * @throws {ConfigError} for no key, two with one id, or a secret that is too short
 */
export function createTokens(keys: readonly TokenKey[]): PauseTokens {
  const secrets = readKeys(keys)
  const [first] = secrets
  if (!first) throw new ConfigError('keys', 'must have at least one key')
  const [firstId, firstSecret] = first
  return {
    sign(claims, binding) {
      const body = [VERSION, firstId, claims.pause, claims.expiresAt.toString(36)].join('.')
      return `${body}.${signatureOf(firstSecret, body, binding)}`
    },
    open(token, binding, nowMs) {
      const parts = typeof token === 'string' ? TOKEN.exec(token) : null
      const [text, keyId = '', pause = '', expires = '', signature = ''] = parts ?? []
      const secret = secrets.get(keyId)
      if (text === undefined || secret === undefined) return undefined
      // The texts are compared, not the bytes: base64 has several texts for the same bytes.
      const expected = signatureOf(secret, text.slice(0, text.lastIndexOf('.')), binding)
      if (!timingSafeEqual(Buffer.from(signature), Buffer.from(expected))) return undefined
      const expiresAt = Number.parseInt(expires, 36)
      return nowMs < expiresAt ? { pause, expiresAt } : undefined
    },
  }
}

function readKeys(keys: readonly TokenKey[]): ReadonlyMap<string, Uint8Array> {
  if (!Array.isArray(keys)) throw new ConfigError('keys', 'must have at least one key')
  const secrets = new Map<string, Uint8Array>()
  for (const [i, key] of keys.entries()) {
    checkShape(`keys[${i}]`, key, KEY)
    if (typeof key.id !== 'string' || !KEY_ID.test(key.id))
      throw new ConfigError(`keys[${i}].id`, 'must be 1 to 32 of A-Z, a-z, 0-9, _ and -')
    if (secrets.has(key.id)) throw new ConfigError(`keys[${i}].id`, `"${key.id}" is the id of another key`)
    const secret = secretOf(key)
    if (!secret) throw new ConfigError(`keys[${i}].secret`, 'must be a text or a Uint8Array')
    if (secret.byteLength < MIN_SECRET_BYTES)
      throw new ConfigError(`keys[${i}].secret`, `must have at least ${MIN_SECRET_BYTES} bytes`)
    secrets.set(key.id, secret)
  }
  return secrets
}

/** Copies a secret, because the host may wipe its own. It accepts only texts and bytes: a number would become zeros. */
function secretOf({ secret }: TokenKey): Uint8Array | undefined {
  if (typeof secret === 'string') return Buffer.from(secret)
  return secret instanceof Uint8Array ? new Uint8Array(secret) : undefined
}

function signatureOf(secret: Uint8Array, body: string, { identity, audience }: TokenBinding): string {
  // A JSON list, so that no two bindings have the same text.
  const text = JSON.stringify([DOMAIN, body, audience, identity])
  return createHmac('sha256', secret).update(text).digest('base64url')
}
