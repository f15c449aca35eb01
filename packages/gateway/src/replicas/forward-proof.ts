import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import type { StateStore } from '@toolgate/core/stores'
import type { RequestSource } from '../util/client-address.ts'

/** The header with which a replica proves that it forwards a request. */
export const FORWARDED_HEADER = 'toolgate-forwarded'

const KEY = 'gateway/forward-key'
const KEY_BYTES = 32
/** Stands for an unknown client address. */
const UNKNOWN = '-'
const FORM = /^([\w:.%-]{1,64}) ([\w-]{43})$/

type SignedRequest = Pick<RequestSource, 'method' | 'url' | 'headers'>

/**
 * Proves that a request comes from a replica. The proof grants nothing: the owner still checks the credential of the
 * request.
 *
 * The replicas share a key in their state store. A proof is bound to one process of one replica, to the address of the
 * client, and to the request's method, path, host, origin, credential and session.
 */
export class ForwardProof {
  readonly #key: Buffer

  private constructor(key: Buffer) {
    this.#key = key
  }

  static async open(state: Pick<StateStore, 'add' | 'get'>): Promise<ForwardProof> {
    await state.add(KEY, randomBytes(KEY_BYTES).toString('base64'))
    const kept = await state.get(KEY)
    const key = Buffer.from(typeof kept === 'string' ? kept : '', 'base64')
    if (key.byteLength !== KEY_BYTES) throw new Error('the key of forwarded requests cannot be read from the state')
    return new ForwardProof(key)
  }

  /** Returns the header for a request to one process of a replica. */
  make(to: string, address: string | undefined, request: SignedRequest): string {
    const from = address ?? UNKNOWN
    return `${from} ${this.#sign(to, from, request).toString('base64url')}`
  }

  /** Returns whether a replica has made a header for this request. */
  holds(header: string, to: string, request: SignedRequest): boolean {
    return this.#open(header, to, request) !== undefined
  }

  /**
   * Returns the client's address for a forwarded request; `undefined` if it is not forwarded or the address is unknown.
   */
  addressOf(header: string, to: string, request: SignedRequest): string | undefined {
    const from = this.#open(header, to, request)
    return from === UNKNOWN ? undefined : from
  }

  #open(header: string, to: string, request: SignedRequest): string | undefined {
    const [, from = '', proof = ''] = FORM.exec(header) ?? []
    if (from === '') return undefined
    return timingSafeEqual(Buffer.from(proof, 'base64url'), this.#sign(to, from, request)) ? from : undefined
  }

  #sign(to: string, from: string, { method, url, headers }: SignedRequest): Buffer {
    const credential = createHash('sha256')
      .update(JSON.stringify([headers.authorization ?? null, headers.cookie ?? null]))
      .digest('base64url')
    const named = [headers.host, headers.origin, headers['mcp-session-id']].map((value) => value ?? null)
    return createHmac('sha256', this.#key)
      .update(JSON.stringify([to, from, method, url, credential, ...named]))
      .digest()
  }
}
