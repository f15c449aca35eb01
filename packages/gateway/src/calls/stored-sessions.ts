import type { Clock, StateStore } from '@toolgate/core/stores'
import { readOwnJson, toJsonText } from '@toolgate/values/json'
import { type KeptSession, keyOfSession, parseKeptSession, type SessionKeeper } from './kept-session.ts'

interface StoredSessionsOptions {
  /** A store that outlives this process. */
  readonly state: Pick<StateStore, 'get' | 'set' | 'take'>
  readonly clock: Pick<Clock, 'wallMs'>
  /** How long a session is stored after it was put or renewed. */
  readonly keptMs: number
  readonly onFault: (error: unknown) => void
}

const PREFIX = 'gateway/'

/**
 * The sessions of earlier clients in the state store of a gateway that runs alone. They outlive a restart, and an ended
 * session stays ended.
 *
 * A store that cannot be written does not stop clients: their sessions then end with the process.
 */
export class StoredSessions implements SessionKeeper {
  readonly #options: StoredSessionsOptions

  constructor(options: StoredSessionsOptions) {
    this.#options = options
  }

  /** Returns the data of a stored session. Rejects if the store cannot be read, as nobody then knows whether it ended. */
  async find(id: string): Promise<KeptSession | undefined> {
    const key = keyOfSession(id)
    return key === undefined ? undefined : parseKeptSession(await this.#options.state.get(PREFIX + key))
  }

  async put(id: string, kept: KeptSession): Promise<boolean> {
    const { state, clock, keptMs, onFault } = this.#options
    try {
      await state.set(keyOf(id), toPlain(kept), { expiresAt: clock.wallMs() + keptMs })
      return true
    } catch (error) {
      onFault(error)
      return false
    }
  }

  async has(id: string): Promise<boolean> {
    return (await this.find(id)) !== undefined
  }

  async remove(id: string): Promise<void> {
    try {
      await this.#options.state.take(keyOf(id))
    } catch (error) {
      this.#options.onFault(error)
    }
  }

  /** The next process of this gateway finds every stored session. */
  async free(): Promise<void> {}
}

function keyOf(id: string): string {
  return PREFIX + (keyOfSession(id) ?? '')
}

/** Removes members that are `undefined`, which JSON does not have. */
function toPlain(kept: KeptSession): unknown {
  return readOwnJson(toJsonText(kept), 'exact')
}
