import { randomUUID } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import type { Caller, Gate, GateOptions } from '@toolgate/core'
import { isToolError } from '@toolgate/core/internal'
import type { Clock } from '@toolgate/core/stores'
import { ownerOf, type RequestId } from '@toolgate/mcp'

export const SESSION_HEADER = 'mcp-session-id'

/** Returns the session that a client of an earlier revision names, known or not; `undefined` if it names none. */
export function readSession(headers: IncomingHttpHeaders): string | undefined {
  const id = headers[SESSION_HEADER]
  return Array.isArray(id) ? id.join() : id
}

/**
 * Returns the hook that raises the event `called:<tool id>` when a call in a session succeeds. It opens the groups that
 * wait for that event.
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
  /** How long a session is kept without a request or a stream. Default: a day. */
  readonly idleMs?: number
  /** Default 100,000. */
  readonly maxSessions?: number
  /** Per user. Default 10,000. */
  readonly maxOfOne?: number
}

interface Session {
  readonly id: string
  readonly owner: string
  usedMs: number
  readonly streams: Set<() => void>
}

const DAY_MS = 24 * 60 * 60 * 1000

/**
 * The sessions of clients of earlier revisions. A session belongs to the user and tenant that began it.
 *
 * Maps keep the order of insertion, so the least recently used session comes first.
 */
export class Sessions {
  readonly #options: Required<SessionsOptions>
  readonly #all = new Map<string, Session>()
  readonly #owners = new Map<string, Map<string, Session>>()

  constructor({ clock, idleMs = DAY_MS, maxSessions = 100_000, maxOfOne = 10_000 }: SessionsOptions) {
    this.#options = { clock, idleMs, maxSessions, maxOfOne }
  }

  /** Begins a session and returns its id. */
  begin(caller: Caller): string {
    const owner = ownerOf(caller)
    const session = { id: randomUUID(), owner, usedMs: 0, streams: new Set<() => void>() }
    const own = this.#owners.get(owner)
    if (own && own.size >= this.#options.maxOfOne) this.#drop(firstOf(own))
    if (this.#all.size >= this.#options.maxSessions) this.#drop(firstOf(this.#all))
    this.#use(session)
    return session.id
  }

  /** Returns `true` for an active session of this caller, and counts that as its use. */
  has(caller: Caller, id: string): boolean {
    const session = this.#find(caller, id)
    if (session) this.#use(session)
    return session !== undefined
  }

  /** Keeps a session alive while a stream of it is open. `onEnd` is called when the session ends. Returns the release. */
  hold(caller: Caller, id: string, onEnd: () => void): () => void {
    const session = this.#find(caller, id)
    session?.streams.add(onEnd)
    return () => {
      if (!session?.streams.delete(onEnd)) return
      session.usedMs = this.#options.clock.monotonicMs()
    }
  }

  /** Ends a session. Returns `false` if it is unknown. */
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

/**
 * The running calls of sessions.
 *
 * Before MCP 2026-07-28 a client cancels a call with a separate message. Two clients with one key use the same ids, so
 * calls are kept by session. They are also kept by caller, so that nobody else who knows a session can cancel its calls.
 */
export class Cancellations {
  readonly #calls = new WeakMap<Caller, Map<string, AbortController>>()

  /** Returns the signal of a call, and `end`, to call when the call has ended. */
  open(caller: Caller, session: string, id: RequestId): { readonly signal: AbortSignal; readonly end: () => void } {
    const calls = this.#calls.get(caller) ?? new Map<string, AbortController>()
    this.#calls.set(caller, calls)
    const key = toKey(session, id)
    const controller = new AbortController()
    calls.set(key, controller)
    return {
      signal: controller.signal,
      end() {
        if (calls.get(key) === controller) calls.delete(key)
      },
    }
  }

  /** Cancels the call of this caller, session and id, if it is running. */
  cancel(caller: Caller, session: string, id: RequestId): void {
    const controller = this.#calls.get(caller)?.get(toKey(session, id))
    controller?.abort(new Error('the client cancelled the call'))
  }
}

/** `1` and `"1"` are two ids. */
function toKey(session: string, id: RequestId): string {
  return JSON.stringify([session, id])
}
