import { hash, randomBytes } from 'node:crypto'
import type { Caller } from '@toolgate/core'
import type { Clock } from '@toolgate/core/stores'

/** Logged-in people. Held in memory only: a restart logs everybody out. */
export interface Sessions {
  /** Opens a session and gives its secret, 256 random bits. */
  open(caller: Caller): string
  find(secret: string): Caller | undefined
  close(secret: string): void
  /** Hears once when an open session is closed, or put out by another. Gives the way to stop hearing. */
  onEnd(secret: string, listener: () => void): () => void
}

export interface SessionOptions {
  readonly clock: Clock
  /** Default 12 h, whether it is used or not. */
  readonly ttlMs?: number
  /** The oldest session ends when there would be more. Default 1,000. */
  readonly max?: number
}

export const SESSION_TTL_MS: number = 12 * 60 * 60 * 1000

export function createSessions({ clock, ttlMs = SESSION_TTL_MS, max = 1000 }: SessionOptions): Sessions {
  /** By digest, so that a look-up's time says nothing about a secret. Oldest first. */
  const sessions = new Map<string, Session>()
  const end = (key: string) => {
    const session = sessions.get(key)
    sessions.delete(key)
    for (const listener of session?.listeners ?? []) listener()
  }
  return {
    open(caller) {
      const now = clock.monotonicMs()
      for (const [key, { endsAtMs }] of sessions) if (endsAtMs <= now) end(key)
      const oldest = sessions.keys().next()
      if (sessions.size >= max && !oldest.done) end(oldest.value)
      const secret = randomBytes(32).toString('base64url')
      sessions.set(digest(secret), { caller, endsAtMs: now + ttlMs, listeners: new Set() })
      return secret
    },
    find(secret) {
      const session = sessions.get(digest(secret))
      return session && session.endsAtMs > clock.monotonicMs() ? session.caller : undefined
    },
    close(secret) {
      end(digest(secret))
    },
    onEnd(secret, listener) {
      const listeners = sessions.get(digest(secret))?.listeners
      const own = () => listener()
      listeners?.add(own)
      return () => void listeners?.delete(own)
    },
  }
}

interface Session {
  readonly caller: Caller
  readonly endsAtMs: number
  readonly listeners: Set<() => void>
}

function digest(secret: string): string {
  return hash('sha256', secret, 'base64')
}
