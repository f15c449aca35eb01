/**
 * The maximum number of separate pieces. More are joined, as a separate piece of one byte takes more than 100 bytes.
 */
const MAX_APART = 1024

/** Bytes that arrive in pieces. They take little more memory than their total size, however small each piece is. */
export class Pieces {
  readonly #joined: Buffer[] = []
  #apart: Buffer[] = []
  /** The number of bytes. */
  bytes = 0

  push(piece: Buffer): void {
    this.bytes += piece.length
    if (this.#apart.push(piece) < MAX_APART) return
    this.#joined.push(Buffer.concat(this.#apart))
    this.#apart = []
  }

  /** Returns all bytes, and removes them. */
  take(): Buffer {
    const pieces = [...this.#joined.splice(0), ...this.#apart]
    this.#apart = []
    this.bytes = 0
    const [first] = pieces
    return first && pieces.length === 1 ? first : Buffer.concat(pieces)
  }
}
