import { randomUUID } from 'node:crypto'
import type { Caller } from '@toolgate/core'
import type { Clock } from '@toolgate/core/stores'
import { ownerOf } from './session.ts'

export interface SessionsOptions {
  readonly clock: Clock
  /** How long a session without a request or a stream is known. Default: a day. */
  readonly idleMs?: number
  /** Default 100,000. */
  readonly maxSessions?: number
  /** Of one user. Default 10,000. */
  readonly maxOfOne?: number
}

/** The sessions of clients of earlier revisions. A session belongs to the user and tenant that began it. */
export interface Sessions {
  /** Begins a session and returns its id. */
  begin(caller: Caller): string
  /** Returns `true` for a session of this caller that goes on, which counts as its use. */
  has(caller: Caller, id: string): boolean
  /** Keeps a session alive while a stream of it is open. `onEnd` is called when the session ends. Returns the release. */
  hold(caller: Caller, id: string, onEnd: () => void): () => void
  /** Returns `false` where there was none. */
  end(caller: Caller, id: string): boolean
}

interface Session {
  readonly id: string
  readonly owner: string
  usedMs: number
  readonly streams: Set<() => void>
}

const DAY_MS = 24 * 60 * 60 * 1000

export function createSessions(options: SessionsOptions): Sessions {
  return new SessionBook(options)
}

/** Maps keep the order of insertion, so the least recently used session stands first. */
class SessionBook implements Sessions {
  readonly #options: Required<SessionsOptions>
  readonly #all = new Map<string, Session>()
  readonly #owners = new Map<string, Map<string, Session>>()

  constructor({ clock, idleMs = DAY_MS, maxSessions = 100_000, maxOfOne = 10_000 }: SessionsOptions) {
    this.#options = { clock, idleMs, maxSessions, maxOfOne }
  }

  begin(caller: Caller): string {
    const owner = ownerOf(caller)
    const session = { id: randomUUID(), owner, usedMs: 0, streams: new Set<() => void>() }
    const own = this.#owners.get(owner)
    if (own && own.size >= this.#options.maxOfOne) this.#drop(firstOf(own))
    if (this.#all.size >= this.#options.maxSessions) this.#drop(firstOf(this.#all))
    this.#use(session)
    return session.id
  }

  has(caller: Caller, id: string): boolean {
    const session = this.#find(caller, id)
    if (session) this.#use(session)
    return session !== undefined
  }

  hold(caller: Caller, id: string, onEnd: () => void): () => void {
    const session = this.#find(caller, id)
    session?.streams.add(onEnd)
    return () => {
      if (!session?.streams.delete(onEnd)) return
      session.usedMs = this.#options.clock.monotonicMs()
    }
  }

  end(caller: Caller, id: string): boolean {
    const session = this.#find(caller, id)
    this.#drop(session)
    return session !== undefined
  }

  #find(caller: Caller, id: string): Session | undefined {
    const session = this.#all.get(id)
    if (session?.owner !== ownerOf(caller)) return undefined
    const { clock, idleMs } = this.#options
    if (session.streams.size > 0 || clock.monotonicMs() - session.usedMs < idleMs) return session
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
  }

  #drop(session: Session | undefined): void {
    if (!session) return
    this.#all.delete(session.id)
    const own = this.#owners.get(session.owner)
    own?.delete(session.id)
    if (own?.size === 0) this.#owners.delete(session.owner)
    for (const onEnd of session.streams) onEnd()
    session.streams.clear()
  }
}

function firstOf(sessions: ReadonlyMap<string, Session>): Session | undefined {
  return sessions.values().next().value
}
