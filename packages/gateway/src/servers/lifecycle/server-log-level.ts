import { leastSevere, type LogLevel, toLogLevel } from '../../model/log-levels.ts'
import type { Connection } from '../transport/connection.ts'
import type { UpstreamCall } from '../../model/upstream.ts'

/** A server that does not answer delays calls no longer than this, and only once for each level. */
const ANSWER_MS = 2_000

/**
 * The level of the log messages of a server of an earlier revision, which has one for all of its clients: the least
 * severe that the clients of its running calls want.
 */
export class ServerLogLevel {
  readonly #connection: Pick<Connection, 'era' | 'capabilities' | 'request'>
  readonly #wanted = new Map<UpstreamCall, LogLevel>()
  #sent: { readonly level: LogLevel; readonly answered: Promise<void> } | undefined

  constructor(connection: Pick<Connection, 'era' | 'capabilities' | 'request'>) {
    this.#connection = connection
  }

  /** Runs a call once the server sends what its client wants. */
  async during<T>(call: UpstreamCall, run: () => Promise<T>): Promise<T> {
    const { era, capabilities } = this.#connection
    const level = toLogLevel(call.logLevel)
    if (level === undefined || era !== 'legacy' || capabilities['logging'] === undefined) return run()
    this.#wanted.set(call, level)
    try {
      await this.#set(leastSevere([...this.#wanted.values()]) ?? level)
      return await run()
    } finally {
      this.#wanted.delete(call)
    }
  }

  /** A new session of the server has the level that it begins with. */
  renewed(): void {
    this.#sent = undefined
  }

  async #set(level: LogLevel): Promise<void> {
    if (this.#sent?.level !== level) {
      // Messages are not worth a failed call.
      const asking = this.#connection.request('logging/setLevel', { level }, { timeoutMs: ANSWER_MS })
      this.#sent = { level, answered: asking.then(ignore, ignore) }
    }
    await this.#sent.answered
  }
}

function ignore(): void {}
