import type { IncomingMessage, ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Caller } from '@toolgate/core'
import { isObject } from '@toolgate/core/internal'
import { ownerOf } from '@toolgate/mcp'
import type { ClientAddresses } from '../http/client-address.ts'
import { toLogLevel } from '../mcp/log-levels.ts'
import { RpcFault } from '../mcp/protocol.ts'
import type { KeptSession, Session, SessionKeeper, Sessions } from '../mcp/sessions.ts'
import type { Owned, OwnerStore } from '../replica/replica-store.ts'
import { FORWARDED_HEADER, type ForwardProof } from './forward-proof.ts'
import { Forwarder, unreachable } from './forward.ts'

export interface SessionOwnersDeps {
  /** The incarnation of this replica. */
  readonly self: string
  readonly owners: OwnerStore
  readonly proof: ForwardProof
  readonly addresses: Pick<ClientAddresses, 'of'>
  /** Whether this replica gives its sessions up. */
  readonly isStopping: () => boolean
  readonly onFault: (error: unknown) => void
}

/** A request in a session that is not here. */
export interface SessionRequest {
  readonly id: string
  readonly caller: Caller
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly text?: string
}

const ID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
const KEY = 'session/'
/** A lost owner is known to be lost after 2 s. */
const LOST_MS = 5_000
/** An owner that stops gives a session up when the calls in it have ended. */
const GIVEN_UP_MS = 30_000
const AGAIN_MS = 100

/**
 * The sessions of earlier clients over all replicas. Each session is in one of them; the others forward to it.
 *
 * A session whose replica is gone, or stops, is taken over by the one that its client reaches next, with what the client
 * declared. One that listens to resources is not: its client gets 404 and begins another one.
 */
export class SessionOwners implements SessionKeeper {
  readonly #deps: SessionOwnersDeps
  readonly #forwarder = new Forwarder()
  readonly #sessions: () => Pick<Sessions, 'handOver' | 'restore'>

  constructor(deps: SessionOwnersDeps, sessions: () => Pick<Sessions, 'handOver' | 'restore'>) {
    this.#deps = deps
    this.#sessions = sessions
  }

  /** Returns whether another replica has forwarded a request. @throws {RpcFault} `forward_refused` */
  check(request: IncomingMessage): boolean {
    const header = request.headers[FORWARDED_HEADER]
    if (header === undefined) return false
    if (!this.#deps.proof.holds(String(header), this.#deps.self, request))
      throw new RpcFault('forward_refused', 'This request does not come from another replica.')
    return true
  }

  async put(id: string, kept: KeptSession): Promise<void> {
    await this.#deps.owners.put(KEY + id, this.#deps.self, JSON.stringify(kept))
  }

  remove(id: string): void {
    this.#deps.owners.remove(KEY + id, this.#deps.self).catch(this.#deps.onFault)
  }

  async free(ids: readonly string[]): Promise<void> {
    const keys = ids.map((id) => KEY + id)
    await this.#deps.owners.free(keys, this.#deps.self)
  }

  /** Returns the ids of the sessions that are still those of this replica. */
  async held(): Promise<ReadonlySet<string>> {
    const keys = await this.#deps.owners.keysOf(this.#deps.self)
    return new Set(keys.flatMap((key) => (key.startsWith(KEY) ? [key.slice(KEY.length)] : [])))
  }

  /** Gives up each session when nothing runs in it, for so long. */
  async handOver(forMs: number): Promise<void> {
    for (let leftMs = forMs; leftMs > 0 && (await this.#sessions().handOver()); leftMs -= AGAIN_MS)
      await sleep(AGAIN_MS)
  }

  /**
   * Returns the session of a request once it is here; `undefined` once its owner has answered the request.
   *
   * @throws {RpcFault} `session_unknown`, `session_elsewhere`, `owner_unreachable`, `owner_lost`, `stopping`
   */
  async reach(asked: SessionRequest): Promise<Session | undefined> {
    const { id, caller, request, response } = asked
    const { owners, self, isStopping } = this.#deps
    if (!ID.test(id)) throw unknown()
    const isForwarded = this.check(request)
    let leftMs = LOST_MS
    for (; leftMs > 0 && !response.destroyed; leftMs -= AGAIN_MS) {
      if (isForwarded && isStopping()) throw elsewhere()
      if (isStopping())
        throw new RpcFault('stopping', STOPPING, { headers: { 'retry-after': '1', connection: 'close' } })
      const owned = await owners.find(KEY + id, self)
      const kept = owned && toKept(owned)
      if (!owned || kept?.owner !== ownerOf(caller)) throw unknown()
      if (owned.owner === self) return this.#adopt(id, caller, kept)
      if (isForwarded) throw elsewhere()
      const result = await this.#forward(asked, owned)
      if (result === 'answered') return undefined
      if (result === 'elsewhere') leftMs = Math.max(leftMs, GIVEN_UP_MS)
      await sleep(AGAIN_MS)
    }
    throw unreachable('The replica that has this session does not answer.')
  }

  close(): void {
    this.#forwarder.close()
  }

  #forward({ request, text, response }: SessionRequest, { owner, url }: Owned) {
    if (url === undefined) throw unreachable('The replica that has this session has no URL.')
    const proof = this.#deps.proof.make(owner, this.#deps.addresses.of(request), request)
    return this.#forwarder.send({ request, text, response, url, proof })
  }

  #adopt(id: string, caller: Caller, kept: KeptSession): Session {
    if (kept.listens) {
      this.remove(id)
      throw unknown()
    }
    return this.#sessions().restore(caller, id, kept)
  }
}

const STOPPING = 'The gateway is stopping. Try again in a moment.'

function unknown(): RpcFault {
  return new RpcFault('session_unknown', 'Session not found.')
}

function elsewhere(): RpcFault {
  return new RpcFault('session_elsewhere', 'This replica does not have the session.')
}

/** Returns what another replica has kept of a session; `undefined` for a row of a later version. */
function toKept({ content }: Owned): KeptSession | undefined {
  const kept: unknown = JSON.parse(content)
  if (!isObject(kept)) return undefined
  const { owner, capabilities, protocolVersion, logLevel, listens } = kept
  const level = toLogLevel(logLevel)
  if (typeof owner !== 'string' || typeof protocolVersion !== 'string' || !isObject(capabilities) || !level)
    return undefined
  return { owner, capabilities, protocolVersion, logLevel: level, listens: listens === true }
}
