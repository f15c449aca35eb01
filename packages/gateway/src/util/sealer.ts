import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import { canonicalize } from '@toolgate/values/json'
import type { Clock, StateStore } from '@toolgate/core/stores'

interface SealerOptions {
  readonly state: Pick<StateStore, 'get' | 'add'>
  readonly clock: Pick<Clock, 'wallMs'>
  /** Whether to use one permanent key, for texts that are stored for long. Default: a key for each day. */
  readonly isLasting?: boolean
}

const DAY_MS = 24 * 60 * 60_000
/** How long a text can be opened. A key is kept for this time after its day. */
export const SEALED_MS = DAY_MS + 60 * 60_000
/** The base64url length of an empty text: a nonce and a tag. */
const MIN_LENGTH = 38
const IV_BYTES = 12
const TAG_BYTES = 16
const KEY_BYTES = 32
const KEYS = 'gateway/state-keys/'
/** The id of the permanent key. It never equals the id of a day. */
const LASTING = 'lasting'

/**
 * Seals texts with AES-256-GCM. The binding of a text is authenticated but not sent: with any difference in it,
 * decryption fails.
 *
 * The keys are in the state store, one for each day. So texts survive a restart if the store does, and gateways that
 * share a store can open each other's texts.
 */
export class SecretSealer {
  readonly #state: SealerOptions['state']
  readonly #clock: SealerOptions['clock']
  readonly #isLasting: boolean
  /** Keys by id, only those that can still open a text. */
  readonly #keys = new Map<string, Buffer>()

  constructor({ state, clock, isLasting = false }: SealerOptions) {
    this.#state = state
    this.#clock = clock
    this.#isLasting = isLasting
  }

  /** Returns the id of a key, a dot, and the text in base64url. */
  async seal(text: string, bound: unknown): Promise<string> {
    const keyId = this.#isLasting ? LASTING : keyIdAt(this.#clock.wallMs())
    const iv = randomBytes(IV_BYTES)
    const cipher = createCipheriv('aes-256-gcm', await this.#makeKey(keyId), iv).setAAD(toBytes(keyId, bound))
    const sealed = Buffer.concat([iv, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()])
    return `${keyId}.${sealed.toString('base64url')}`
  }

  /** Returns the text; `undefined` if the key, the binding or any byte differs. */
  async open(sealed: string, bound: unknown): Promise<string | undefined> {
    // Not a regular expression, which could overflow its stack on millions of characters.
    const dot = sealed.indexOf('.')
    const keyId = sealed.slice(0, Math.max(dot, 0))
    const body = sealed.slice(dot + 1)
    const key = body.length < MIN_LENGTH ? undefined : await this.#findKey(keyId)
    const bytes = Buffer.from(body, 'base64url')
    // A different text that decodes to the same bytes is rejected.
    if (!key || bytes.toString('base64url') !== body) return undefined
    try {
      const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, IV_BYTES), { authTagLength: TAG_BYTES })
        .setAAD(toBytes(keyId, bound))
        .setAuthTag(bytes.subarray(-TAG_BYTES))
      const opened = [decipher.update(bytes.subarray(IV_BYTES, -TAG_BYTES)), decipher.final()]
      return Buffer.concat(opened).toString('utf8')
    } catch {
      // The text is not ours, or has another binding.
      return undefined
    }
  }

  async #makeKey(keyId: string): Promise<Buffer> {
    const endOfDay = (Math.floor(this.#clock.wallMs() / DAY_MS) + 1) * DAY_MS
    const options = this.#isLasting ? {} : { expiresAt: endOfDay + SEALED_MS }
    if ((await this.#findKey(keyId)) === undefined)
      await this.#state.add(KEYS + keyId, randomBytes(KEY_BYTES).toString('base64'), options)
    // Another gateway may have created the key first.
    const key = await this.#findKey(keyId)
    if (!key) throw new Error('the key that seals texts cannot be read back from the state store')
    return key
  }

  async #findKey(keyId: string): Promise<Buffer | undefined> {
    const nowMs = this.#clock.wallMs()
    const usable = new Set(this.#isLasting ? [LASTING] : [0, DAY_MS, SEALED_MS].map((agoMs) => keyIdAt(nowMs - agoMs)))
    for (const known of this.#keys.keys()) if (!usable.has(known)) this.#keys.delete(known)
    if (!usable.has(keyId)) {
      // Expired keys are removed from the store, so they stay expired if a clock is set back.
      if (isDayBefore(keyId, nowMs)) await this.#state.get(KEYS + keyId)
      return undefined
    }
    const known = this.#keys.get(keyId)
    if (known) return known
    const kept = await this.#state.get(KEYS + keyId)
    const key = typeof kept === 'string' ? Buffer.from(kept, 'base64') : undefined
    if (key?.byteLength !== KEY_BYTES) return undefined
    this.#keys.set(keyId, key)
    return key
  }
}

function keyIdAt(ms: number): string {
  return Math.max(0, Math.floor(ms / DAY_MS)).toString(36)
}

/** Whether an id is the day before. Any other form is not an id of ours. */
function isDayBefore(keyId: string, nowMs: number): boolean {
  const startMs = Number.parseInt(keyId.slice(0, 8), 36) * DAY_MS
  return startMs < nowMs && keyIdAt(startMs) === keyId
}

function toBytes(keyId: string, bound: unknown): Buffer {
  return Buffer.from(canonicalize([keyId, bound]), 'utf8')
}
