import { randomUUID } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import type { Caller, Gate, GateOptions } from '@toolgate/core'
import { type Canceller, createCanceller, isToolError } from '@toolgate/values'
import type { Clock } from '@toolgate/core/stores'
import { inSession, ownerOf, type RequestId } from '@toolgate/mcp'
import type { ClientCapabilities } from '../servers/asks/client-link.ts'
import type { LogLevel } from '../model/log-levels.ts'
import type { KeptSession, SessionClient, SessionKeeper } from './kept-session.ts'

export const SESSION_HEADER = 'mcp-session-id'

/** Returns the session that a client of an earlier revision names, known or not; `undefined` if it names none. */
export function readSession(headers: IncomingHttpHeaders): string | undefined {
  const id = headers[SESSION_HEADER]
  return Array.isArray(id) ? id.join() : id
}

/**
 * Returns the hook that raises the event `called:<tool id>` when a call in a session succeeds. The event opens the
 * groups that wait for it.
 */
export function unlockByCalls(
  locks: () => Pick<Gate['locks'], 'event'>,
  onUnlocked: (caller: Caller) => void,
): NonNullable<GateOptions['hooks']> {
  return {
    afterToolCall: (ended) => {
      if (ended.caller.session === undefined || !ended.ok || isToolError(ended.output)) return
      if (locks().event(ended.caller, `called:${ended.tool.id}`).length > 0) onUnlocked(ended.caller)
    },
  }
}

export interface SessionsOptions {
  readonly clock: Clock
  /** How long a session is kept without a request or a stream. Default: a week. */
  readonly idleMs?: number
  /** The maximum number of sessions. Default 100,000. */
  readonly maxSessions?: number
  /** The maximum for one user. Default 10,000. */
  readonly maxOfOne?: number
  /** Stores the data with which another process can continue a session. Absent: sessions end with this process. */
  readonly keeper?: SessionKeeper | undefined
  /** The groups that sessions open. Default: none are stored. */
  readonly locks?: Pick<Gate['locks'], 'opened' | 'reopen'> | undefined
  readonly onFault?: ((error: unknown) => void) | undefined
}

/** A response that may still be open. */
export interface Answering {
  readonly destroyed: boolean
  once(event: 'close', listener: () => void): unknown
}

/** A running request of a session. */
interface Running {
  readonly caller: Caller
  /** `undefined` once the request has ended, so that an old table keeps no data of it (see `LinkedList`). */
  canceller: Canceller | undefined
}

const NOTHING_STORED = Promise.resolve()

/** A session of a client of an earlier revision: the client's declarations, and its running requests. */
export class Session {
  readonly id: string
  readonly owner: string
  readonly capabilities: ClientCapabilities
  readonly protocolVersion: string
  usedMs = 0
  /** The caller of the credential that last used the session. */
  usedBy: Caller | undefined
  /** The minimum severity of log messages for the client. All are sent until it sets a level. */
  logLevel: LogLevel = 'debug'
  /** Callbacks for the end of the session. The session does not expire while there are any. */
  readonly uses = new Set<() => void>()
  /** Functions that end a subscription, by the resource's URI. Subscriptions do not keep the session from expiring. */
  readonly subscriptions = new Map<string, () => void>()
  /** The resources to which it was subscribed in another process, until it is subscribed here. */
  readonly unresumed = new Set<string>()
  /** Whether it began in another process, so that changes of its lists may have gone unannounced. */
  hasGap = false
  isEnded = false
  /** Resolves when all that was written of it is stored. */
  storing: Promise<void> = NOTHING_STORED
  /** When it was last stored, in monotonic milliseconds; `undefined` if it is not stored. */
  storedMs: number | undefined
  readonly #running = new Map<RequestId, Running>()
  /** The number of requests that are being answered. */
  #open = 0
  #caller: { readonly given: Caller; readonly inSession: Caller } | undefined

  constructor(id: string, owner: string, { capabilities, protocolVersion }: SessionClient) {
    this.id = id
    this.owner = owner
    this.capabilities = capabilities
    this.protocolVersion = protocolVersion
  }

  /** Returns the caller in this session. It is the same object for the same key, so that its views are found by identity. */
  callerOf(given: Caller): Caller {
    if (this.#caller?.given !== given) this.#caller = { given, inSession: inSession(given, this.id) }
    return this.#caller.inSession
  }

  /** Returns the signal of a request, and the function `end`, to call when the request has ended. */
  run(caller: Caller, id: RequestId): { readonly canceller: Canceller; readonly end: () => void } {
    const canceller = createCanceller()
    const running: Running = { caller, canceller }
    this.#running.set(id, running)
    return {
      canceller,
      end: () => {
        running.canceller = undefined
        if (this.#running.get(id) === running) this.#running.delete(id)
      },
    }
  }

  get isRunning(): boolean {
    return this.#running.size + this.#open > 0
  }

  /** Counts a response as running until it has ended. */
  enter(response: Answering): void {
    if (response.destroyed) return
    this.#open++
    response.once('close', () => this.#open--)
  }

  /**
   * Cancels a request, if it is running. Only the caller who sent it can cancel it. Some clients give the number of an id
   * as text: it counts if no running request has exactly that id.
   */
  cancel(caller: Caller, id: RequestId): void {
    const running = this.#running.get(id) ?? this.#running.get(otherSpellingOf(id) ?? id)
    if (running?.caller === caller) running.canceller?.abort(new Error('the client cancelled the call'))
  }
}

/** Returns the text of a number, and the number of a text in decimal digits. */
function otherSpellingOf(id: RequestId): RequestId | undefined {
  if (typeof id !== 'string') return String(id)
  const number = /^-?\d{1,15}$/.test(id) ? Number(id) : undefined
  return number !== undefined && String(number) === id ? number : undefined
}

const HOUR_MS = 60 * 60 * 1000
/** How long a session is kept without a request or a stream: longer than a weekend. */
export const IDLE_MS = 7 * 24 * HOUR_MS
/** The maximum number of characters in the URIs of the subscriptions that are stored. */
const MAX_STORED_URI_CHARS = 64 * 1024

/**
 * The sessions of clients of earlier revisions. A session belongs to the user and tenant that began it.
 *
 * Maps keep the order of insertion, so the least recently used session comes first.
 */
export class Sessions {
  readonly #options: Required<Omit<SessionsOptions, 'keeper' | 'locks' | 'onFault'>>
  readonly #onFault: (error: unknown) => void
  readonly #keeper: SessionKeeper | undefined
  readonly #locks: SessionsOptions['locks']
  readonly #all = new Map<string, Session>()
  readonly #owners = new Map<string, Map<string, Session>>()
  /** The ids of sessions that are being removed from the store. A read that began earlier may still find them. */
  readonly #ending = new Set<string>()

  constructor({
    clock,
    idleMs = IDLE_MS,
    maxSessions = 100_000,
    maxOfOne = 10_000,
    keeper,
    locks,
    onFault = () => {},
  }: SessionsOptions) {
    this.#options = { clock, idleMs, maxSessions, maxOfOne }
    this.#onFault = onFault
    this.#keeper = keeper
    this.#locks = locks
  }

  /** Begins a session. Other processes find it once `keep` has resolved. */
  begin(caller: Caller, client: SessionClient): Session {
    return this.#add(caller, new Session(randomUUID(), ownerOf(caller), client))
  }

  /** Continues a session of another process; `undefined` if it has been ended here since it was read. */
  restore(caller: Caller, id: string, kept: KeptSession): Session | undefined {
    const known = this.find(caller, id)
    if (known || this.#ending.has(id)) return known
    const session = new Session(id, kept.owner, kept)
    session.logLevel = kept.logLevel
    session.hasGap = true
    session.storedMs = this.#options.clock.monotonicMs() - HOUR_MS
    for (const uri of kept.subscriptions) session.unresumed.add(uri)
    this.#locks?.reopen(session.callerOf(caller), kept.opened)
    return this.#add(caller, session)
  }

  /** Stores the current session for other processes, if there is a store. An ended session is not stored again. */
  keep(session: Session): Promise<void> | undefined {
    return this.#after(session, async (keeper) => {
      if (session.isEnded) return
      const isStored = await keeper.put(session.id, this.#toKept(session))
      session.storedMs = isStored ? this.#options.clock.monotonicMs() : undefined
    })
  }

  #remove(session: Session): Promise<void> | undefined {
    const removed = this.#after(session, (keeper) => keeper.remove(session.id))
    if (!removed) return undefined
    this.#ending.add(session.id)
    return removed.finally(() => this.#ending.delete(session.id))
  }

  /** Writes to the store after earlier writes of the same session, so that none of them undoes a later one. */
  #after(session: Session, write: (keeper: SessionKeeper) => Promise<void>): Promise<void> | undefined {
    const keeper = this.#keeper
    if (!keeper) return undefined
    const written = session.storing.then(() => write(keeper))
    session.storing = written.catch(() => {})
    return written
  }

  /** Stores the session of a caller who has opened a group. Callers in no session of a client are ignored. */
  unlocked({ session: of = '' }: Caller): void {
    const session = this.#all.get(of.slice(of.lastIndexOf('/') + 1))
    if (session) this.keep(session)?.catch(this.#onFault)
  }

  #toKept(session: Session): KeptSession {
    const { owner, capabilities, protocolVersion, logLevel, usedBy } = session
    const opened = (usedBy && this.#locks?.opened(session.callerOf(usedBy))) ?? []
    const subscriptions = upToChars([...session.subscriptions.keys(), ...session.unresumed], MAX_STORED_URI_CHARS)
    return { owner, capabilities, protocolVersion, logLevel, opened: [...opened], subscriptions }
  }

  /** Stores a session again while it is used, so that it does not expire. */
  async #renew(session: Session): Promise<void> {
    if ((await this.#keeper?.has(session.id)) === true) await this.keep(session)
    else this.#forget(session)
  }

  /** Removes the sessions that other replicas have taken over. */
  retain(ids: ReadonlySet<string>): void {
    for (const session of this.#all.values()) if (!ids.has(session.id)) this.#forget(session)
  }

  /** Hands over the sessions that run nothing. Returns whether any are left. */
  async handOver(): Promise<boolean> {
    const given = [...this.#all.values()].filter(({ isRunning }) => !isRunning)
    for (const session of given) this.#forget(session)
    if (given.length > 0) await this.#keeper?.free(given.map(({ id }) => id))
    return this.#all.size > 0
  }

  #add(caller: Caller, session: Session): Session {
    const { owner } = session
    const own = this.#owners.get(owner)
    if (own && own.size >= this.#options.maxOfOne) this.#drop(firstOf(own))
    if (this.#all.size >= this.#options.maxSessions) this.#drop(firstOf(this.#all))
    session.usedBy = caller
    this.#use(session)
    return session
  }

  /** Returns the active session of this caller, and counts this as a use. */
  find(caller: Caller, id: string): Session | undefined {
    const session = this.#find(caller, id)
    if (session) {
      session.usedBy = caller
      this.#use(session)
    }
    return session
  }

  /**
   * Keeps a session alive while one of its streams is open. `onEnd` is called when the session ends. Returns the
   * function that releases the session.
   */
  hold(caller: Caller, id: string, onEnd: () => void): () => void {
    const session = this.#find(caller, id)
    session?.uses.add(onEnd)
    return () => {
      if (!session?.uses.delete(onEnd)) return
      session.usedMs = this.#options.clock.monotonicMs()
    }
  }

  /** Ends the sessions that these callers used last. A session that another key of the user has used since stays. */
  endOf(callers: ReadonlySet<Caller>): void {
    for (const session of this.#all.values()) if (session.usedBy && callers.has(session.usedBy)) this.#drop(session)
  }

  /** Ends a session, so that no replica can continue it. Returns `false` if it is unknown. */
  async end(caller: Caller, id: string): Promise<boolean> {
    const session = this.#find(caller, id)
    if (!session) return false
    this.#forget(session)
    await this.#remove(session)
    return true
  }

  #find(caller: Caller, id: string): Session | undefined {
    const session = this.#all.get(id)
    if (session?.owner !== ownerOf(caller)) return undefined
    const { clock, idleMs } = this.#options
    if (session.uses.size > 0 || clock.monotonicMs() - session.usedMs < idleMs) return session
    this.#drop(session)
    return undefined
  }

  #use(session: Session): void {
    const { id, owner } = session
    const own = this.#owners.get(owner) ?? new Map<string, Session>()
    this.#owners.set(owner, own)
    session.usedMs = this.#options.clock.monotonicMs()
    for (const sessions of [this.#all, own]) {
      sessions.delete(id)
      sessions.set(id, session)
    }
    if (session.storedMs === undefined || session.usedMs - session.storedMs < HOUR_MS) return
    session.storedMs = session.usedMs
    this.#renew(session).catch(this.#onFault)
  }

  #drop(session: Session | undefined): void {
    if (!session) return
    this.#forget(session)
    this.#remove(session)?.catch(this.#onFault)
  }

  #forget(session: Session): void {
    session.isEnded = true
    this.#all.delete(session.id)
    const own = this.#owners.get(session.owner)
    own?.delete(session.id)
    if (own?.size === 0) this.#owners.delete(session.owner)
    for (const end of session.subscriptions.values()) end()
    session.subscriptions.clear()
    for (const onEnd of session.uses) onEnd()
    session.uses.clear()
  }
}

/** Returns the texts up to this number of characters in all. */
function upToChars(texts: readonly string[], max: number): readonly string[] {
  let chars = 0
  return texts.filter((text) => (chars += text.length) <= max)
}

function firstOf(sessions: ReadonlyMap<string, Session>): Session | undefined {
  return sessions.values().next().value
}
