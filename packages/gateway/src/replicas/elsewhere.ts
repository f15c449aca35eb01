import type { IncomingMessage, ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Caller } from '@toolgate/core'
import { isObject, type JsonObject } from '@toolgate/values/json'
import { ownerOf as sessionOwnerOf } from '@toolgate/mcp'
import type { ClientAddresses, RequestSource } from '../util/client-address.ts'
import { RpcFault } from '../model/protocol.ts'
import { sessionIdsIn } from '../calls/kept-session.ts'
import { readSession, type Session, type Sessions } from '../calls/sessions.ts'
import type { Owned, OwnerStore, ReplicaRow } from './replica-store.ts'
import { type Owner, ownerOf } from '../model/owner.ts'
import { FORWARDED_HEADER, type ForwardProof } from './forward-proof.ts'
import { Forwarder, unreachable } from './forward.ts'
import { type HomeInstances, Homes } from './homes.ts'
import { SessionOwners } from './session-owners.ts'

interface ElsewhereDeps {
  /** The id of this replica's current process. */
  readonly self: string
  readonly owners: OwnerStore
  /** Returns the rows of all replicas. */
  readonly replicas: () => Promise<readonly ReplicaRow[]>
  readonly proof: ForwardProof
  readonly onFault: (error: unknown) => void
}

/** The parts of this gateway that belong to one replica. */
export interface Here {
  readonly sessions: () => Pick<Sessions, 'handOver' | 'restore' | 'retain'>
  readonly instances: () => HomeInstances
  /** Whether a request may need an instance of its user. */
  readonly needsInstance: (method: string | undefined, params: JsonObject | undefined) => boolean
  readonly addresses: Pick<ClientAddresses, 'of'>
  /** Whether this replica is handing over its sessions and homes. */
  readonly isStopping: () => boolean
}

/** A request of a client. */
export interface Asked {
  readonly caller: Caller
  readonly request: IncomingMessage
  readonly response: ServerResponse
  /** The text of the body. */
  readonly text?: string | undefined
}

/** A lost owner is detected within 2 s. */
const LOST_MS = 5_000
/** A stopping owner hands things over after their calls have ended. */
const GIVEN_UP_MS = 30_000
const AGAIN_MS = 100
const HOLDER = /@([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/

/**
 * Finds the replica that must answer a request, and forwards the request there: the replica with the session of an
 * earlier client, the home of the user, or the holder of the call that it continues. A forwarded request is never
 * forwarded again.
 *
 * If a replica is lost, the next replica that receives a request takes over its sessions and homes, as far as they can
 * be continued.
 */
export class Elsewhere {
  readonly sessions: SessionOwners
  readonly homes: Homes
  readonly self: string
  readonly #deps: ElsewhereDeps
  readonly #here: Here
  readonly #forwarder = new Forwarder()

  constructor(deps: ElsewhereDeps, here: Here) {
    const { owners, self, onFault } = deps
    this.#deps = deps
    this.#here = here
    this.self = self
    this.sessions = new SessionOwners(owners, self, onFault)
    this.homes = new Homes({ owners, self, instances: here.instances, onFault })
  }

  /** Returns whether another replica forwarded a request. @throws {RpcFault} `forward_refused` */
  check(request: IncomingMessage): boolean {
    const header = request.headers[FORWARDED_HEADER]
    if (header === undefined) return false
    if (!this.#deps.proof.holds(String(header), this.self, request))
      throw new RpcFault('forward_refused', 'This request does not come from another replica.')
    return true
  }

  /** Returns the client's address for a request that another replica forwarded; `undefined` for any other request. */
  addressOf(request: RequestSource): string | undefined {
    const header = request.headers[FORWARDED_HEADER]
    return header === undefined ? undefined : this.#deps.proof.addressOf(String(header), this.self, request)
  }

  /**
   * Forwards a request to the home of its user, or to the holder of the call that it continues. Returns `false` for a
   * request that this replica answers.
   *
   * @throws {RpcFault} `session_elsewhere`, `owner_unreachable`, `owner_lost`
   */
  async place(asked: Asked, method?: string, params?: JsonObject): Promise<boolean> {
    const holder = holderIn(params)
    if (holder !== undefined) return holder !== this.self && this.#toHolder(asked, holder)
    // A session is at the home of its user, for all of its requests.
    const of = readSession(asked.request.headers) === undefined ? method : undefined
    return this.#here.needsInstance(of, params) && this.placeAtHome(asked)
  }

  /**
   * Forwards a request to the home of its user. Returns `false` if this replica is the home; it stays so until it has
   * answered.
   *
   * @throws {RpcFault} `session_elsewhere`, `owner_unreachable`, `owner_lost`, `stopping`
   */
  async placeAtHome(asked: Asked): Promise<boolean> {
    const owner = ownerOf(asked.caller)
    if (!owner || this.homes.enter(owner, asked.response)) return false
    return this.#reach(asked, async () => {
      this.#checkStopping(asked)
      const found = await this.homes.find(owner)
      if (!found) this.homes.enter(owner, asked.response)
      return found
    })
  }

  /**
   * Forwards a request about a user to their home, if that is another replica. Returns `false` for a request that this
   * replica answers.
   *
   * @throws {RpcFault} `session_elsewhere`, `owner_unreachable`
   */
  async askHomeOf(owner: Owner, asked: Omit<Asked, 'caller'>): Promise<boolean> {
    try {
      return await this.#reach(asked, () => this.homes.look(owner))
    } catch (error) {
      // The replica with the user's instances is lost, so there is nothing to ask it for.
      if (error instanceof RpcFault && error.rule === 'owner_lost' && !asked.response.headersSent) return false
      throw error
    }
  }

  /** Whether a request continues a call that waits at this replica. */
  holds(params: JsonObject | undefined): boolean {
    return holderIn(params) === this.self
  }

  /**
   * Returns the session of a request once it is at this replica; `undefined` once its owner has answered the request.
   *
   * @throws {RpcFault} `session_unknown`, `session_elsewhere`, `owner_unreachable`, `owner_lost`, `stopping`
   */
  async reach(id: string, asked: Asked): Promise<Session | undefined> {
    let session: Session | undefined
    const isAnswered = await this.#reach(asked, async () => {
      this.#checkStopping(asked)
      const found = await this.sessions.find(id)
      if (found?.kept.owner !== sessionOwnerOf(asked.caller)) throw unknown()
      const { owned, kept } = found
      // The session began before this replica became its user's home, where all of its requests are now answered.
      const isMoved = owned.owner !== this.self && this.#isHomeOf(asked)
      if (isMoved) await this.sessions.move(id)
      else if (owned.owner !== this.self) return owned
      session = this.#here.sessions().restore(asked.caller, id, kept)
      if (!session) throw unknown()
      return isMoved ? undefined : owned
    })
    return isAnswered ? undefined : session
  }

  /** Whether this replica is the home of the caller, and so answers all requests of the caller's sessions. */
  #isHomeOf({ caller, request }: Asked): boolean {
    const owner = ownerOf(caller)
    if (owner === undefined || !this.homes.has(owner)) return false
    return this.check(request) || this.#here.needsInstance(undefined, undefined)
  }

  /** Removes sessions and homes that others have taken over while this replica could not reach the database. */
  async review(): Promise<void> {
    const keys = await this.#deps.owners.keysOf(this.self)
    this.#here.sessions().retain(sessionIdsIn(keys))
    await this.homes.retain(new Set(keys))
  }

  /** Hands over each session and home once it runs nothing, for at most `forMs`. */
  async handOver(forMs: number): Promise<void> {
    try {
      for (let leftMs = forMs; leftMs > 0; leftMs -= AGAIN_MS) {
        const left = await Promise.all([this.#here.sessions().handOver(), this.homes.handOver()])
        if (!left.includes(true)) break
        await sleep(AGAIN_MS)
      }
    } catch (error) {
      // Without the database, the other replicas take over everything as lost.
      this.#deps.onFault(error)
    }
  }

  close(): void {
    this.#forwarder.close()
  }

  /** Forwards a request until its owner has answered. Returns `false` once `find` reports this replica. */
  async #reach(asked: Omit<Asked, 'caller'>, find: () => Promise<Owned | undefined>): Promise<boolean> {
    const isForwarded = this.check(asked.request)
    let lost: { readonly from: Owned; readonly fault: RpcFault } | undefined
    for (let leftMs = LOST_MS; leftMs > 0 && !asked.response.destroyed; leftMs -= AGAIN_MS) {
      const owned = await find()
      if (lost && !hasGivenUp(lost.from, owned)) throw lost.fault
      lost = undefined
      if (!owned || owned.owner === this.self) return false
      if (isForwarded) throw elsewhereFault()
      const result = await this.#forward(asked, owned).catch((fault: unknown) => {
        if (!(fault instanceof RpcFault) || fault.rule !== 'owner_lost') throw fault
        lost = { from: owned, fault }
      })
      if (result === 'answered') return true
      if (result === 'elsewhere') leftMs = Math.max(leftMs, GIVEN_UP_MS)
      await sleep(AGAIN_MS)
    }
    throw unreachable('The replica that has what this request needs does not answer.')
  }

  async #toHolder(asked: Asked, holder: string): Promise<boolean> {
    if (this.check(asked.request)) throw elsewhereFault()
    const row = (await this.#deps.replicas()).find(({ incarnation, isLive }) => incarnation === holder && isLive)
    const result = row && (await this.#forward(asked, { owner: holder, url: row.url }))
    if (result === 'answered') return true
    throw new RpcFault('owner_lost', 'The replica that held this call is gone, and the call with it.')
  }

  #forward({ request, response, text }: Omit<Asked, 'caller'>, { owner, url }: Pick<Owned, 'owner' | 'url'>) {
    if (url === undefined) throw unreachable('The replica that has what this request needs has no URL.')
    const proof = this.#deps.proof.make(owner, this.#here.addresses.of(request), request)
    return this.#forwarder.send({ request, text, response, url, proof })
  }

  /**
   * Throws if this replica is stopping, as it then takes nothing over. @throws {RpcFault} `stopping`,
   * `session_elsewhere`
   */
  #checkStopping({ request }: Asked): void {
    if (!this.#here.isStopping()) return
    if (this.check(request)) throw elsewhereFault()
    const headers = { 'retry-after': '1', connection: 'close' }
    throw new RpcFault('stopping', 'The gateway is stopping. Try again in a moment.', { headers })
  }
}

/** Returns the replica that holds the call that a request continues. */
function holderIn(params: JsonObject | undefined): string | undefined {
  const state = isObject(params) ? params['requestState'] : undefined
  return typeof state === 'string' ? HOLDER.exec(state.slice(-HOLDER_CHARS))?.[1] : undefined
}

const HOLDER_CHARS = 37

/**
 * Whether an owner that did not answer has handed over, judged by the owner that is found afterwards. An owner hands
 * over only after answering everything, so it did not run the request. A lost owner may have run it.
 */
function hasGivenUp(before: Owned, now: Owned | undefined): boolean {
  return now !== undefined && now.owner !== before.owner && now.losses === before.losses
}

function unknown(): RpcFault {
  return new RpcFault('session_unknown', 'Session not found.')
}

export function elsewhereFault(): RpcFault {
  return new RpcFault('session_elsewhere', 'This replica does not have what the request needs.')
}
