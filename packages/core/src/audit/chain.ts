import type { AuditEntry } from '../ports.ts'
import { sha256Hex } from '../util/hash.ts'
import { checkSealOptions, type SealOptions, textAfterHash, textBeforeHash } from './record.ts'

/** Keeps a hash of ours from being one of anything else. */
const DOMAIN = 'toolgate.audit.v1\0'

/** What the first record of a chain has as `prev`. */
export const GENESIS: string = '0'.repeat(64)

/** Where a chain ends: what the next record goes on from. */
export interface ChainEnd {
  readonly seq: number
  readonly head: string
}

/** Seals entries into the records of one chain. */
export interface Sealer extends ChainEnd {
  /** Gives the next record, as the text of its RFC 8785 form. */
  seal(entry: AuditEntry): string
  /** Goes on from here: after what was sealed could not be stored, or when somebody else has written. */
  goOnFrom(end: ChainEnd): void
}

/**
 * Gives a sealer that goes on from the end of a chain; by default at the beginning of one.
 *
 * Each record carries `prev`, the hash of the one before it ({@link GENESIS} for the first), and `hash`:
 * SHA-256 of `toolgate.audit.v1`, a NUL, `prev`, and the RFC 8785 form of the record without `hash`.
 */
export function createSealer(options: SealOptions = {}, { seq: from, head: after }: ChainEnd = START): Sealer {
  checkSealOptions(options)
  let seq = from
  let head = after
  return {
    get seq() {
      return seq
    },
    get head() {
      return head
    },
    seal(entry) {
      const before = textBeforeHash(entry, options)
      const rest = textAfterHash(entry, seq + 1, head, options)
      head = hashRecord(head, before + rest)
      seq++
      return `${before},"hash":"${head}"${rest}`
    },
    goOnFrom(end) {
      seq = end.seq
      head = end.head
    },
  }
}

const START: ChainEnd = { seq: 0, head: GENESIS }

/** Gives the hash of a record: `text` is its RFC 8785 form without `hash`. */
export function hashRecord(prev: string, text: string): string {
  return sha256Hex(DOMAIN + prev + text)
}

const HASH_FIELD = ',"hash":"'
const PREV_FIELD = ',"prev":"'
const HASH_LENGTH = 64

/** What the text of a chained record says of its place. */
export interface Link {
  readonly seq: number
  readonly prev: string
  readonly hash: string
  /** The text without `hash`. */
  readonly hashed: string
}

/**
 * Reads the links of a record from its text without parsing it; `undefined` where it has none.
 *
 * In JSON, the quotes of a field's name occur nowhere else: inside of texts they have a backslash before them.
 */
export function readLink(text: string): Link | undefined {
  const at = text.indexOf(HASH_FIELD)
  const prevAt = text.indexOf(PREV_FIELD, at)
  if (at < 0 || prevAt < 0) return undefined
  const end = at + HASH_FIELD.length + HASH_LENGTH + 1
  const hash = text.slice(at + HASH_FIELD.length, end - 1)
  const prev = text.slice(prevAt + PREV_FIELD.length, prevAt + PREV_FIELD.length + HASH_LENGTH)
  return { seq: readSeq(text), prev, hash, hashed: text.slice(0, at) + text.slice(end) }
}

const SEQ_FIELD = ',"seq":'

/** Reads the number of a record from its text; NaN where it has none. */
export function readSeq(text: string): number {
  const at = text.indexOf(SEQ_FIELD)
  return at < 0 ? Number.NaN : Number.parseInt(text.slice(at + SEQ_FIELD.length, at + SEQ_FIELD.length + 16), 10)
}
