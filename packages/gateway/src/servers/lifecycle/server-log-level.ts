import { leastSevere, type LogLevel, toLogLevel } from '../../model/log-levels.ts'
import type { Connection } from '../transport/connection.ts'
import type { UpstreamCall } from '../../model/upstream.ts'

/** How long a silent server may delay calls, once for each level. */
const ANSWER_MS = 2_000

/**
 * The log level of a server of an earlier revision. It has one level for all clients: the least severe level that the
 * clients of its running calls request.
 */
export class ServerLogLevel {
  readonly #connection: Pick<Connection, 'era' | 'capabilities' | 'request'>
  readonly #wanted = new Map<UpstreamCall, LogLevel>()
  #sent: { readonly level: LogLevel; readonly answered: Promise<void> } | undefined

  constructor(connection: Pick<Connection, 'era' | 'capabilities' | 'request'>) {
    this.#connection = connection
  }

  /** Sets the level that the client of a call requests, then runs the call. */
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

  /** Called for a new session of the server, which starts with its default level. */
  renewed(): void {
    this.#sent = undefined
  }

  async #set(level: LogLevel): Promise<void> {
    if (this.#sent?.level !== level) {
      // A failure to set the level must not fail the call.
      const asking = this.#connection.request('logging/setLevel', { level }, { timeoutMs: ANSWER_MS })
      this.#sent = { level, answered: asking.then(ignore, ignore) }
    }
    await this.#sent.answered
  }
}

function ignore(): void {}
