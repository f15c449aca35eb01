import { hash } from 'node:crypto'

/** Gives the SHA-256 of a text's UTF-8 bytes, as 64 hex digits. */
export function sha256Hex(text: string): string {
  return hash('sha256', text, 'hex')
}
