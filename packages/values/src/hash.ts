import { createHmac, createSecretKey, hash, type KeyObject } from 'node:crypto'

/** Returns the SHA-256 of a text's UTF-8 bytes, as 64 hex digits. */
export function sha256Hex(text: string): string {
  return hash('sha256', text, 'hex')
}

/** One key object for each key, because creating it costs several times as much as an HMAC. */
const keys = new WeakMap<Uint8Array, KeyObject>()

/** Returns the HMAC-SHA-256 (RFC 2104) of a text's UTF-8 bytes, as 64 hex digits. The key must not be changed afterwards. */
export function hmacSha256Hex(key: Uint8Array, text: string): string {
  let made = keys.get(key)
  if (!made) keys.set(key, (made = createSecretKey(key)))
  return createHmac('sha256', made).update(text).digest('hex')
}
