import type { AuditEntry } from '../ports/ports.ts'
import { sha256Hex } from '@toolgate/values'
import { checkSealOptions, type SealOptions, writeRecord } from './record.ts'

/** Separates our hashes from those of other data. */
const DOMAIN = 'toolgate.audit.v1\0'

/** The `prev` of the first record of a chain. */
export const GENESIS: string = '0'.repeat(64)

/** The end of a chain, from which the next record continues. */
export interface ChainEnd {
  readonly seq: number
  readonly head: string
}

/** Seals entries into the records of one chain. */
export interface Sealer extends ChainEnd {
  /** Returns the next record as RFC 8785 text. */
  seal(entry: AuditEntry): string
  /** Continues from another end, after a record could not be stored or another process has written. */
  goOnFrom(end: ChainEnd): void
}

/**
 * Returns a sealer that continues a chain. By default it starts a new one.
 *
 * Each record carries `prev`, the hash of the previous record ({@link GENESIS} for the first), and `hash`: SHA-256 of
 * `toolgate.audit.v1`, a NUL, `prev`, and the RFC 8785 form of the record without `hash`.
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
      const { beforeHash, afterHash } = writeRecord(entry, { seq: seq + 1, prev: head }, options)
      head = hashRecord(head, beforeHash + afterHash)
      seq++
      return `${beforeHash},"hash":"${head}"${afterHash}`
    },
    goOnFrom(end) {
      seq = end.seq
      head = end.head
    },
  }
}

const START: ChainEnd = { seq: 0, head: GENESIS }

/** Returns the hash of a record: `text` is its RFC 8785 form without `hash`. */
export function hashRecord(prev: string, text: string): string {
  return sha256Hex(DOMAIN + prev + text)
}

const HASH_FIELD = ',"hash":"'
const PREV_FIELD = ',"prev":"'
const HASH_LENGTH = 64

/** The links in the text of a chained record. */
export interface ChainLink {
  readonly seq: number
  readonly prev: string
  readonly hash: string
  /** The text without `hash`. */
  readonly hashed: string
}

/**
 * Reads the links of a record from its text without parsing it; `undefined` if there are none.
 *
 * A field name with its quotes occurs only once in JSON, because quotes inside texts are escaped.
 */
export function readLink(text: string): ChainLink | undefined {
  const at = text.indexOf(HASH_FIELD)
  const prevAt = text.indexOf(PREV_FIELD, at)
  if (at < 0 || prevAt < 0) return undefined
  const end = at + HASH_FIELD.length + HASH_LENGTH + 1
  const hash = text.slice(at + HASH_FIELD.length, end - 1)
  const prev = text.slice(prevAt + PREV_FIELD.length, prevAt + PREV_FIELD.length + HASH_LENGTH)
  return { seq: readSeq(text), prev, hash, hashed: text.slice(0, at) + text.slice(end) }
}

const SEQ_FIELD = ',"seq":'

/** Reads the number of a record from its text; NaN if it has none. */
export function readSeq(text: string): number {
  const at = text.indexOf(SEQ_FIELD)
  return at < 0 ? Number.NaN : Number.parseInt(text.slice(at + SEQ_FIELD.length, at + SEQ_FIELD.length + 16), 10)
}
