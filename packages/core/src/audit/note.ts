import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  sign,
  verify,
} from 'node:crypto'
import { ConfigError } from '@toolgate/values'
import { isHash } from './merkle.ts'

/**
 * Signed notes and tree heads as in the C2SP specifications `signed-note` and `tlog-checkpoint`, so that other programs can
 * read and witness them.
 */

/** The head of a log: a tree of RFC 6962. */
export interface TreeHead {
  /** Names the log. */
  readonly origin: string
  /** The number of its leaves. */
  readonly size: number
  /** 64 hex digits. */
  readonly root: string
}

export interface NoteSigner {
  /** The public key in the standard form `name+id+key`. */
  readonly verifierKey: string
  /** Returns the note of a tree head. */
  sign(head: TreeHead): string
}

export interface NoteVerifier {
  readonly name: string
  /** Returns the tree head of a note that the key has signed; `undefined` for any other text. */
  open(note: string): TreeHead | undefined
}

/** Ed25519, in key ids and in keys. */
const ALGORITHM = Buffer.from([1])
/** Ed25519 with a time, of witnesses. */
const COSIGNATURE = Buffer.from([4])
const USES: Readonly<Record<number, string>> = { 1: 'notes', 4: 'cosignatures' }
const TIME_BYTES = 8
const ID_BYTES = 4
const RAW_BYTES = 32
/** The head of an Ed25519 public key in SPKI form. The raw key follows. */
const SPKI = Buffer.from('302a300506032b6570032100', 'hex')
const NAME = /^[^\s+]{1,200}$/u

/** Returns a new Ed25519 private key, PEM, PKCS #8. */
export function newSigningKey(): string {
  return generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
}

/** Creates a signer. @throws {ConfigError} for an invalid name, and for anything but an Ed25519 private key in PEM */
export function createNoteSigner(name: string, pem: string): NoteSigner {
  if (!NAME.test(name)) throw new ConfigError('', 'the name of a log must have no spaces and no "+"')
  let key: KeyObject
  try {
    key = createPrivateKey(pem)
  } catch (cause) {
    throw new ConfigError('', 'the signing key is not a private key in PEM', { cause })
  }
  if (key.asymmetricKeyType !== 'ed25519') throw new ConfigError('', 'the signing key must be ed25519')
  const raw = createPublicKey(key).export({ type: 'spki', format: 'der' }).subarray(SPKI.length)
  const id = keyIdOf(name, raw)
  return {
    verifierKey: `${name}+${id.toString('hex')}+${Buffer.concat([ALGORITHM, raw]).toString('base64')}`,
    sign({ origin, size, root }) {
      const text = `${origin}\n${size}\n${Buffer.from(root, 'hex').toString('base64')}\n`
      const signature = Buffer.concat([id, sign(null, Buffer.from(text), key)])
      return `${text}\n\u2014 ${name} ${signature.toString('base64')}\n`
    },
  }
}

/** Creates a verifier. @throws {ConfigError} for anything but an Ed25519 verifier key, `name+id+key` */
export function createNoteVerifier(verifierKey: string): NoteVerifier {
  const { name, signed } = parseVerifierKey(verifierKey, ALGORITHM)
  return {
    name,
    open(note) {
      const isSigned = signed(note, (text, signature, key) => verify(null, Buffer.from(text), key, signature))
      return isSigned === undefined ? undefined : parseTreeHead(note)
    },
  }
}

export interface WitnessVerifier {
  readonly name: string
  /** Returns the line with which the witness has cosigned a note; `undefined` for none. */
  cosignatureOf(note: string): string | undefined
}

/**
 * Returns a verifier of Ed25519 cosignatures (C2SP `tlog-cosignature`).
 *
 * @throws {ConfigError} for anything but the key of such a witness, `name+id+key`
 */
export function createWitnessVerifier(verifierKey: string): WitnessVerifier {
  const { name, signed } = parseVerifierKey(verifierKey, COSIGNATURE)
  return {
    name,
    cosignatureOf: (note) =>
      signed(note, (text, signature, key) => {
        if (signature.length < TIME_BYTES) return false
        const message = `cosignature/v1\ntime ${signature.readBigUInt64BE()}\n${text}`
        return verify(null, Buffer.from(message), key, signature.subarray(TIME_BYTES))
      }),
  }
}

type Verify = (text: string, signature: Buffer, key: KeyObject) => boolean

/** Returns the name in a key, and a function that returns the first line of a note whose signature is valid. */
function parseVerifierKey(
  verifierKey: string,
  algorithm: Uint8Array,
): { readonly name: string; signed(note: string, isValid: Verify): string | undefined } {
  const [name = '', idText = '', ...rest] = verifierKey.trim().split('+')
  // Base64 may contain a plus sign.
  const bytes = Buffer.from(rest.join('+'), 'base64')
  const raw = bytes.subarray(1)
  const isKey = NAME.test(name) && bytes.length === RAW_BYTES + 1 && bytes[0] === algorithm[0]
  const id = keyIdOf(name, raw, algorithm)
  if (!isKey || id.toString('hex') !== idText)
    throw new ConfigError(
      '',
      `the key of the verifier is not "name+id+key" with an Ed25519 key for ${USES[algorithm[0] ?? 0]}`,
    )
  const key = createPublicKey({ key: Buffer.concat([SPKI, raw]), format: 'der', type: 'spki' })
  return {
    name,
    signed(note, isValid) {
      const end = note.lastIndexOf('\n\n')
      if (end < 0) return undefined
      const text = note.slice(0, end + 1)
      return note
        .slice(end + 2)
        .split('\n')
        .find((line) => {
          const [dash, signer, signature = ''] = line.split(' ')
          const given = Buffer.from(signature, 'base64')
          return (
            dash === '\u2014' &&
            signer === name &&
            given.subarray(0, ID_BYTES).equals(id) &&
            isValid(text, given.subarray(ID_BYTES), key)
          )
        })
    },
  }
}

/** Returns the tree head of a note that one of the keys has signed; `undefined` for any other text. */
export function openNote(note: string, keys: readonly NoteVerifier[]): TreeHead | undefined {
  for (const key of keys) {
    const head = key.open(note)
    if (head !== undefined) return head
  }
  return undefined
}

/** SHA-256(name ‖ newline ‖ algorithm ‖ key), its first 4 bytes. */
function keyIdOf(name: string, raw: Uint8Array, algorithm: Uint8Array = ALGORITHM): Buffer {
  return createHash('sha256').update(`${name}\n`).update(algorithm).update(raw).digest().subarray(0, ID_BYTES)
}

/** Returns the tree head in the text of a note, whose signature is not checked; `undefined` for any other text. */
export function parseTreeHead(text: string): TreeHead | undefined {
  const [origin = '', sizeText = '', rootText = ''] = text.split('\n')
  const size = Number(sizeText)
  const root = Buffer.from(rootText, 'base64').toString('hex')
  const isHead = origin !== '' && Number.isSafeInteger(size) && String(size) === sizeText && size >= 0 && isHash(root)
  return isHead ? { origin, size, root } : undefined
}
