import { createCipheriv, createDecipheriv, createSecretKey, type KeyObject, randomFillSync } from 'node:crypto'
import type { AuditRecord, MaybePromise } from '../ports/ports.ts'
import { checkShape, ConfigError, sha256Hex, shapeOf } from '@toolgate/values'
import { isObject, toJsonText } from '@toolgate/values/json'

/** Keeps the whole input of each call, sealed with AES-256-GCM under a key of the operator. */
export interface SealedInputs {
  readonly keep: 'sealed'
  /** 32 bytes, as bytes, hex or base64. One key seals about 4 billion inputs. Replace it then, or once others know it. */
  readonly key: string | Uint8Array
  /** Keys of earlier inputs. They only open inputs. */
  readonly olderKeys?: readonly (string | Uint8Array)[] | undefined
  /** How long inputs are kept at least, in milliseconds. Their records stay. Default: as long as the records. */
  readonly keepForMs?: number | undefined
}

/** What an audit keeps of inputs. */
const AUDIT_INPUTS = ['redacted', 'facts'] as const
export type AuditInputs = (typeof AUDIT_INPUTS)[number] | SealedInputs

const INPUTS = shapeOf<SealedInputs>({ keep: true, key: true, olderKeys: true, keepForMs: true })

const KEY_BYTES = 32
const NONCE_BYTES = 12
const TAG_BYTES = 16
/** Longer inputs are not stored, and their records say so. A message to the gateway has at most half this length. */
const MAX_INPUT = 8 * 1024 * 1024
/** The `input_box` of a record whose input was too long to be kept. */
export const TOO_LARGE = 'too_large'

/** A key for inputs, and the id by which boxes name it. */
interface InputKey {
  readonly id: string
  readonly key: KeyObject
}

/**
 * Returns the 32 bytes of a key in hex or base64. Never repeats the key in an error.
 *
 * @throws {ConfigError} for anything else
 */
export function parseInputKey(given: string | Uint8Array, name = 'inputs.key'): Uint8Array {
  const bytes = typeof given === 'string' ? bytesOf(given) : given
  if (bytes instanceof Uint8Array && bytes.length === KEY_BYTES) return bytes
  throw new ConfigError(name, `must be ${KEY_BYTES} bytes in hex or base64: make one with "openssl rand -hex 32"`)
}

function bytesOf(text: string): Uint8Array | undefined {
  if (/^[\da-f]{64}$/i.test(text)) return Buffer.from(text, 'hex')
  return /^[\w+/-]{43}=?$/.test(text) ? Buffer.from(text, 'base64') : undefined
}

function toKey(given: string | Uint8Array, name: string): InputKey {
  const bytes = parseInputKey(given, name)
  const id = sha256Hex(`toolgate.input-key.v1\0${Buffer.from(bytes).toString('hex')}`).slice(0, 16)
  return { id, key: createSecretKey(bytes) }
}

const known = new WeakMap<SealedInputs, InputKey>()

/** Returns the key that seals; `undefined` if inputs are not sealed. @throws {ConfigError} for invalid settings */
export function sealingKeyOf(inputs: AuditInputs | undefined): InputKey | undefined {
  if (inputs === undefined || typeof inputs === 'string') {
    if (inputs === undefined || AUDIT_INPUTS.includes(inputs)) return undefined
    throw new ConfigError('inputs', 'must be "redacted", "facts", or an object with keep: "sealed" and a key')
  }
  const found = known.get(inputs)
  if (found) return found
  const key = checkInputs(inputs)
  known.set(inputs, key)
  return key
}

function checkInputs(inputs: SealedInputs): InputKey {
  if (!isObject(inputs)) throw new ConfigError('inputs', 'must be "redacted", "facts", or an object')
  checkShape('inputs', inputs, INPUTS)
  const { keep, key, olderKeys = [], keepForMs } = inputs
  if (keep !== 'sealed') throw new ConfigError('inputs.keep', 'must be "sealed"')
  if (keepForMs !== undefined && (!Number.isSafeInteger(keepForMs) || keepForMs < 1))
    throw new ConfigError('inputs.keepForMs', 'must be a whole number, 1 or greater')
  for (const [i, older] of olderKeys.entries()) toKey(older, `inputs.olderKeys[${i}]`)
  return toKey(key, 'inputs.key')
}

/** An input, sealed. */
export interface SealedInput {
  /**
   * The SHA-256 of the box, or a mark for an input that was too long. The record stores it. It reveals nothing about the
   * input.
   */
  readonly hash: string
  /** Absent for an input that was too long. */
  readonly box?: string
}

/** The fields that a box is bound to, so that it is valid for one record only. */
type BoundTo = readonly (string | number | undefined)[]

/** Returns an input in a box for one record; `undefined` if it is not JSON. */
export function sealInput({ id, key }: InputKey, input: unknown, to: BoundTo): SealedInput | undefined {
  const text = jsonOf(input)
  if (text === undefined) return undefined
  if (text.length > MAX_INPUT) return { hash: TOO_LARGE }
  const nonce = randomFillSync(Buffer.allocUnsafe(NONCE_BYTES))
  const cipher = createCipheriv('aes-256-gcm', key, nonce)
  cipher.setAAD(aadOf(id, to))
  const sealed = Buffer.concat([nonce, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()])
  const box = `v1.${id}.${sealed.toString('base64url')}`
  return { box, hash: sha256Hex(box) }
}

function jsonOf(input: unknown): string | undefined {
  try {
    return toJsonText(input)
  } catch {
    return undefined
  }
}

function aadOf(keyId: string, to: BoundTo): Buffer {
  return Buffer.from(`toolgate.input.v1\0${JSON.stringify([keyId, ...to.map((part) => part ?? null)])}`)
}

/** Returns the fields that the box of a record is bound to. */
function boundTo(record: BoxedRecord): BoundTo {
  const { event, ts, tool, tool_call_id: call, user_id: user, session_id: session, tenant } = record
  return [event, Date.parse(ts), tool, call, user, session, tenant]
}

/** The part of a record that its box is bound to. */
export type BoxedRecord = Pick<
  AuditRecord,
  'event' | 'ts' | 'tool' | 'tool_call_id' | 'user_id' | 'session_id' | 'tenant' | 'input_box'
>

/** Reads sealed inputs. */
export interface InputBoxes {
  /** Returns the boxes of records, in the same order; `undefined` for a box that is not stored. */
  inputBoxes(records: readonly AuditRecord[]): MaybePromise<readonly (string | undefined)[]>
}

/** `wrong_key`: none of the keys sealed the box. `altered`: the box differs from the recorded one. */
export type OpenedInput =
  | { readonly status: 'opened'; readonly text: string }
  | { readonly status: 'wrong_key' | 'altered' }

type InputKeys = Pick<SealedInputs, 'key' | 'olderKeys'>

const KEYS = shapeOf<InputKeys>({ key: true, olderKeys: true })

/** Opens the box of a record. */
export type InputOpener = (record: BoxedRecord, box: string) => OpenedInput

/** Returns a function that opens boxes sealed with any of these keys. @throws {ConfigError} for an invalid key */
export function createInputOpener(given: InputKeys): InputOpener {
  checkShape('createInputOpener', given, KEYS)
  const { key, olderKeys = [] } = given
  const all = [toKey(key, 'inputs.key'), ...olderKeys.map((older, i) => toKey(older, `inputs.olderKeys[${i}]`))]
  const keys = new Map(all.map((one) => [one.id, one.key]))
  return (record, box) => {
    const [, id, sealed] = /^v1\.([\da-f]{16})\.([\w-]+)$/.exec(box) ?? []
    if (id === undefined || sealed === undefined || !isBoxOf(record, box)) return { status: 'altered' }
    const found = keys.get(id)
    if (!found) return { status: 'wrong_key' }
    const bytes = Buffer.from(sealed, 'base64url')
    if (bytes.length < NONCE_BYTES + TAG_BYTES) return { status: 'altered' }
    try {
      const decipher = createDecipheriv('aes-256-gcm', found, bytes.subarray(0, NONCE_BYTES), {
        authTagLength: TAG_BYTES,
      })
      decipher.setAAD(aadOf(id, boundTo(record)))
      decipher.setAuthTag(bytes.subarray(-TAG_BYTES))
      const text = Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()])
      return { status: 'opened', text: text.toString('utf8') }
    } catch {
      return { status: 'altered' }
    }
  }
}

/** Returns whether a box is the one that a record names. Needs no key. */
export function isBoxOf({ input_box: hash }: Pick<AuditRecord, 'input_box'>, box: string): boolean {
  return hash !== undefined && sha256Hex(box) === hash
}
