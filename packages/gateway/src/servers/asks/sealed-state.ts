import { hash, randomBytes } from 'node:crypto'
import type { Caller } from '@toolgate/core'
import { isObject, readOwnJson, toJsonText } from '@toolgate/values/json'
import type { Clock, StateStore } from '@toolgate/core/stores'
import { ROUND_MS } from '../transport/limits.ts'
import { SecretSealer } from '../../util/sealer.ts'

/** The fields that a state is bound to. A retry that differs in any field cannot open it. */
export interface StateBinding {
  readonly caller: Pick<Caller, 'tenant' | 'user'>
  /** The SHA-256 of the client's credential, so that another client of the same user cannot use the state. */
  readonly client: string
  /** The app of the endpoint, as other apps have other policies. */
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
  /** The maximum number of open states of one user. Default 100. */
  readonly maxOpen?: number
}

/**
 * The state of a call cannot be used. It may be forged, edited, used or expired, or belong to another caller or call;
 * the error does not reveal which.
 */
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
const MAX_LENGTH = 1024 * 1024
/** The form of a state. The id of the replica that holds the call may follow. */
const FORM = /^tg1\.([^@]*)(?:@[0-9a-f-]{36})?$/
const OPEN = 'gateway/open-states/'

/**
 * Seals the `requestState` of clients, and opens each state once.
 *
 * The store has an entry for each open state. Opening removes it, so a replay finds nothing.
 */
export class SealedStates {
  readonly #state: StateStore
  readonly #clock: Pick<Clock, 'wallMs'>
  readonly #ttlMs: number
  readonly #maxOpen: number
  readonly #sealer: SecretSealer

  constructor({ state, clock, ttlMs = ROUND_MS, maxOpen = DEFAULT_MAX_OPEN }: SealedStateOptions) {
    this.#state = state
    this.#clock = clock
    this.#ttlMs = ttlMs
    this.#maxOpen = maxOpen
    this.#sealer = new SecretSealer({ state, clock })
  }

  /** Returns a sealed state with plain JSON for a client. @throws {TooManyStates} */
  async seal(bound: StateBinding, content: object): Promise<string> {
    const nowMs = this.#clock.wallMs()
    const owner = ownerOf(bound)
    if ((await this.#state.list(owner)).length >= this.#maxOpen)
      throw new TooManyStates('too many of its calls wait for an answer')
    const id = randomBytes(16).toString('base64url')
    const sealed = await this.#sealer.seal(toJsonText({ id, content }), partsOf(bound))
    await this.#state.set(owner + id, true, { expiresAt: nowMs + this.#ttlMs })
    return `tg1.${sealed}`
  }

  /** Returns the content of a state, and removes it from the store. @throws {StateInvalid} */
  async open(bound: StateBinding, text: unknown): Promise<object> {
    const [, sealed] = (typeof text === 'string' && text.length <= MAX_LENGTH && FORM.exec(text)) || []
    const opened = sealed === undefined ? undefined : await this.#sealer.open(sealed, partsOf(bound))
    if (opened === undefined) throw new StateInvalid()
    const { id, content } = toSealed(opened)
    // The entry is removed after all other checks, so that only its owner can use up a state.
    if ((await this.#state.take(ownerOf(bound) + id)) === undefined) throw new StateInvalid()
    return content
  }
}

interface Sealed {
  readonly id: string
  readonly content: object
}

/** Returns the prefix of a user's entries. */
function ownerOf({ caller: { tenant, user } }: StateBinding): string {
  return `${OPEN}${hash('sha256', JSON.stringify([tenant ?? null, user ?? null]), 'base64url')}/`
}

/** @throws {StateInvalid} */
function toSealed(text: string): Sealed {
  const sealed: unknown = readOwnJson(text, 'exact')
  if (!isObject(sealed)) throw new StateInvalid()
  return sealed as unknown as Sealed
}

/** Returns the associated data of the seal. The binding is not readable in the state, and none of it is compared. */
function partsOf({ caller: { tenant, user }, client, app, item, definition, input }: StateBinding): unknown {
  return ['tg1', tenant ?? null, user ?? null, client, app ?? null, item, definition, input ?? {}]
}
