import { createCipheriv, createDecipheriv, hash, randomBytes } from 'node:crypto'
import type { Caller } from '@toolgate/core'
import { canonicalize, isObject } from '@toolgate/core/internal'
import type { Clock, StateStore } from '@toolgate/core/stores'
import { ROUND_MS } from '../upstream/limits.ts'

/** What a state is bound to. A retry that differs in any field cannot open it. */
export interface StateBinding {
  readonly caller: Pick<Caller, 'tenant' | 'user'>
  /** The SHA-256 of the client's credential: another client of the same user cannot use it. */
  readonly client: string
  /** The app of the endpoint: the policies of another are others. */
  readonly app?: string | undefined
  /** The id of the tool, prompt or resource. */
  readonly item: string
  /** The hash of its definition. */
  readonly definition: string
  readonly input: unknown
}

export interface SealedStateOptions {
  readonly state: StateStore
  readonly clock: Pick<Clock, 'wallMs'>
  /** How long a state can be used. Default 10 minutes. */
  readonly ttlMs?: number
  /** How many states of one user can be open. Default 100. */
  readonly maxOpen?: number
}

/** A state that cannot be used. It does not say why: forged, edited, used, expired, or of another caller or call. */
export class StateInvalid extends Error {
  override readonly name = 'StateInvalid'

  constructor() {
    super('params.requestState is invalid.')
  }
}

/** A user has too many open states. */
export class TooManyStates extends Error {
  override readonly name = 'TooManyStates'
}

const DEFAULT_MAX_OPEN = 100
const DAY_MS = 24 * 60 * 60_000
const MAX_LENGTH = 1024 * 1024
const FORM = /^tg1\.([0-9a-z]{1,8})\.([\w-]{40,})$/
const IV_BYTES = 12
const TAG_BYTES = 16
const KEY_BYTES = 32
const KEYS = 'gateway/state-keys/'
const OPEN = 'gateway/open-states/'

/**
 * Seals the `requestState` of clients with AES-256-GCM, and opens each of them once.
 *
 * The store has an entry for each open state, which opening takes: a replay finds nothing. The store also has the keys,
 * one for each day, so states outlive a restart as long as the store does, and gateways that share a store open each
 * other's. A key expires when no state can be sealed with it any more.
 */
export class SealedStates {
  readonly #state: StateStore
  readonly #clock: Pick<Clock, 'wallMs'>
  readonly #ttlMs: number
  readonly #maxOpen: number
  /** By id. At most those of today and yesterday. */
  readonly #keys = new Map<string, Buffer>()

  constructor({ state, clock, ttlMs = ROUND_MS, maxOpen = DEFAULT_MAX_OPEN }: SealedStateOptions) {
    this.#state = state
    this.#clock = clock
    this.#ttlMs = ttlMs
    this.#maxOpen = maxOpen
  }

  /** Returns the state of plain JSON for a client. @throws {TooManyStates} */
  async seal(bound: StateBinding, content: object): Promise<string> {
    const nowMs = this.#clock.wallMs()
    const owner = ownerOf(bound)
    if ((await this.#state.list(owner)).length >= this.#maxOpen)
      throw new TooManyStates('too many of its calls wait for an answer')
    const id = randomBytes(16).toString('base64url')
    const keyId = keyIdAt(nowMs)
    const sealed = encrypt(await this.#makeKey(keyId, nowMs), keyId, bound, JSON.stringify({ id, content }))
    await this.#state.set(owner + id, true, { expiresAt: nowMs + this.#ttlMs })
    return `tg1.${keyId}.${sealed.toString('base64url')}`
  }

  /** Returns the content of a state, and takes it from the store. @throws {StateInvalid} */
  async open(bound: StateBinding, text: unknown): Promise<object> {
    const form = typeof text === 'string' && text.length <= MAX_LENGTH ? FORM.exec(text) : null
    if (!form) throw new StateInvalid()
    const [, keyId = '', body = ''] = form
    const bytes = Buffer.from(body, 'base64url')
    const key = await this.#findKey(keyId)
    // A text that decodes to the same bytes is another text.
    if (!key || bytes.toString('base64url') !== body) throw new StateInvalid()
    const { id, content } = decrypt(key, keyId, bound, bytes)
    // The last question, so that nobody but its owner can use a state up.
    if ((await this.#state.take(ownerOf(bound) + id)) === undefined) throw new StateInvalid()
    return content
  }

  async #makeKey(keyId: string, nowMs: number): Promise<Buffer> {
    const expiresAt = (Math.floor(nowMs / DAY_MS) + 1) * DAY_MS + this.#ttlMs
    if ((await this.#findKey(keyId)) === undefined)
      await this.#state.add(KEYS + keyId, randomBytes(KEY_BYTES).toString('base64'), { expiresAt })
    // Another gateway may have been first.
    const key = await this.#findKey(keyId)
    if (!key) throw new Error('the key of sealed states cannot be read back from the state store')
    return key
  }

  async #findKey(keyId: string): Promise<Buffer | undefined> {
    const nowMs = this.#clock.wallMs()
    const usable = new Set([keyIdAt(nowMs), keyIdAt(nowMs - this.#ttlMs)])
    for (const known of this.#keys.keys()) if (!usable.has(known)) this.#keys.delete(known)
    if (!usable.has(keyId)) return undefined
    const known = this.#keys.get(keyId)
    if (known) return known
    const kept = await this.#state.get(KEYS + keyId)
    const key = typeof kept === 'string' ? Buffer.from(kept, 'base64') : undefined
    if (key?.byteLength !== KEY_BYTES) return undefined
    this.#keys.set(keyId, key)
    return key
  }
}

interface Sealed {
  readonly id: string
  readonly content: object
}

function keyIdAt(nowMs: number): string {
  return Math.max(0, Math.floor(nowMs / DAY_MS)).toString(36)
}

/** Returns the prefix of a user's entries. */
function ownerOf({ caller: { tenant, user } }: StateBinding): string {
  return `${OPEN}${hash('sha256', JSON.stringify([tenant ?? null, user ?? null]), 'base64url')}/`
}

function encrypt(key: Buffer, keyId: string, bound: StateBinding, text: string): Buffer {
  const iv = randomBytes(IV_BYTES)
  const cipher = createCipheriv('aes-256-gcm', key, iv).setAAD(toBytes(keyId, bound))
  return Buffer.concat([iv, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()])
}

/** @throws {StateInvalid} for any other key, binding or byte */
function decrypt(key: Buffer, keyId: string, bound: StateBinding, bytes: Buffer): Sealed {
  try {
    const iv = bytes.subarray(0, IV_BYTES)
    const decipher = createDecipheriv('aes-256-gcm', key, iv, { authTagLength: TAG_BYTES })
      .setAAD(toBytes(keyId, bound))
      .setAuthTag(bytes.subarray(-TAG_BYTES))
    const text = Buffer.concat([decipher.update(bytes.subarray(IV_BYTES, -TAG_BYTES)), decipher.final()])
    const sealed: unknown = JSON.parse(text.toString('utf8'))
    if (isObject(sealed)) return sealed as unknown as Sealed
  } catch {
    // It is not ours, or not of this call.
  }
  throw new StateInvalid()
}

/** The binding is authenticated with the content and not sent: nobody can read it, and nothing is compared. */
function toBytes(
  keyId: string,
  { caller: { tenant, user }, client, app, item, definition, input }: StateBinding,
): Buffer {
  const parts = ['tg1', keyId, tenant ?? null, user ?? null, client, app ?? null, item, definition, input ?? {}]
  return Buffer.from(canonicalize(parts), 'utf8')
}
