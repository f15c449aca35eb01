import { ConfigError, ToolgateError } from '@toolgate/core'
import { backoffMs, errnoOf, messageOf } from '@toolgate/values'
import { createClient } from '@redis/client'

interface RedisConnectionOptions {
  readonly url: string
  /** The server's URL without the password. */
  readonly place: string
  /** The time without an answer after which the server counts as silent, in milliseconds. */
  readonly silenceMs: number
  /** Checks and prepares each new connection. An exception refuses the connection. */
  readonly prepare: (ask: Ask) => Promise<void>
}

/** Sends one command and returns its answer. */
export type Ask = (...command: readonly string[]) => Promise<unknown>

/**
 * A connection to one server. A lost connection is opened again; commands are refused meanwhile, and never sent twice.
 */
export interface RedisConnection {
  /** @throws {ToolgateError} `state_unavailable` within `silenceMs`, or at once while there is no connection */
  readonly ask: Ask
  close(): void
}

const BACKOFF = { firstMs: 25, maxMs: 500 }
/**
 * The longest time until a new connection is usable. The first one gets the most. Later ones get little at first,
 * because a connection that began during an outage stays dead, and then more for slow machines.
 */
const OPEN_MS = 10_000
const RECONNECT_MS = { first: 1000, more: 500, most: 5000 }
/** A timer that fires this late shows that the process stood still. */
const STOOD_STILL_MS = 10
/** The longest wait for a server, as a multiple of its silence, even if the process stands still repeatedly. */
const MOST_SILENCES = 10
/** The maximum number of unanswered commands. Further ones are refused. */
const MAX_PENDING = 20_000

/** @throws {ConfigError} for a server that cannot be reached or used */
export async function openConnection(options: RedisConnectionOptions): Promise<RedisConnection> {
  const connection = new RetryingConnection(options)
  await connection.open()
  return connection
}

type RedisClient = ReturnType<typeof newClient>

/** An unanswered command. */
interface PendingCommand {
  readonly atMs: number
  readonly reject: (error: Error) => void
}

class RetryingConnection implements RedisConnection {
  readonly #options: RedisConnectionOptions
  #client: RedisClient | undefined
  /** Why there is no client. */
  #problem = 'not connected'
  #failures = 0
  #retry: NodeJS.Timeout | undefined
  #isClosed = false
  /** The pending commands in the order of sending, which is the order of the answers. */
  readonly #pending = new Set<PendingCommand>()
  #watch: NodeJS.Timeout | undefined

  constructor(options: RedisConnectionOptions) {
    this.#options = options
  }

  async open(): Promise<void> {
    try {
      this.#client = await this.#connect(OPEN_MS)
    } catch (error) {
      throw new ConfigError('openRedisCounters.url', `${this.#options.place}: ${problemOf(error)}`)
    }
  }

  readonly ask: Ask = (...command) => {
    const client = this.#client
    if (client === undefined) return Promise.reject(this.#fault(this.#problem))
    if (this.#pending.size >= MAX_PENDING)
      return Promise.reject(this.#fault(`${MAX_PENDING} commands are waiting for their answers`))
    return new Promise((resolve, reject) => {
      const pending: PendingCommand = { atMs: performance.now(), reject }
      this.#pending.add(pending)
      if (this.#watch === undefined) this.#lookIn(this.#options.silenceMs)
      client.sendCommand([...command]).then(
        (answer) => {
          this.#pending.delete(pending)
          resolve(answer)
        },
        (error: unknown) => {
          this.#pending.delete(pending)
          reject(this.#fault(messageOf(error), error))
        },
      )
    })
  }

  close(): void {
    this.#isClosed = true
    clearTimeout(this.#retry)
    const client = this.#client
    if (client) this.#lose(client, 'closed')
  }

  #lookIn(ms: number): void {
    const dueMs = performance.now() + ms
    this.#watch = setTimeout(() => this.#look(performance.now() - dueMs), ms).unref()
  }

  /**
   * Checks for a late answer, after reading everything that has arrived. If the check itself is late, this process
   * stood still, and perhaps the whole machine, so the server gets the time again.
   */
  #look(lateMs: number): void {
    this.#watch = undefined
    setImmediate(() => {
      const [oldest] = this.#pending
      if (oldest === undefined || this.#watch !== undefined) return
      const { silenceMs } = this.#options
      const silentMs = performance.now() - oldest.atMs
      const stoodStill = lateMs > STOOD_STILL_MS && silentMs < MOST_SILENCES * silenceMs
      const leftMs = stoodStill ? silenceMs : silenceMs - silentMs
      if (leftMs > 0) this.#lookIn(leftMs)
      else if (this.#client) this.#lose(this.#client, `no answer for ${silenceMs} ms`)
    })
  }

  /** Gives up a connection. Its unanswered commands may have run, and are not sent again. */
  #lose(client: RedisClient, problem: string): void {
    if (this.#client !== client) return
    this.#client = undefined
    this.#problem = problem
    for (const { reject } of this.#pending) reject(this.#fault(problem))
    this.#pending.clear()
    destroy(client)
    if (!this.#isClosed) this.#connectLater()
  }

  #connectLater(): void {
    const waitMs = this.#failures === 0 ? 0 : backoffMs(this.#failures, BACKOFF)
    this.#retry = setTimeout(() => void this.#connectAgain(), waitMs)
  }

  async #connectAgain(): Promise<void> {
    try {
      const { first, more, most } = RECONNECT_MS
      const client = await this.#connect(Math.min(first + more * this.#failures, most))
      this.#failures = 0
      if (this.#isClosed) destroy(client)
      else this.#client = client
    } catch (error) {
      this.#failures++
      this.#problem = problemOf(error)
      if (!this.#isClosed) this.#connectLater()
    }
  }

  async #connect(deadlineMs: number): Promise<RedisClient> {
    const client = newClient(this.#options.url, deadlineMs)
    // This also covers a server that accepts the connection and then sends nothing.
    let isLate = false
    const late = setTimeout(() => {
      isLate = true
      destroy(client)
    }, deadlineMs)
    try {
      client.on('error', (error: unknown) => this.#lose(client, messageOf(error)))
      await client.connect()
      await this.#options.prepare((...command) => client.sendCommand([...command]))
      return client
    } catch (error) {
      destroy(client)
      throw isLate ? new Error(`no answer for ${deadlineMs / 1000} s`, { cause: error }) : error
    } finally {
      clearTimeout(late)
    }
  }

  #fault(problem: string, cause?: unknown): ToolgateError {
    return new ToolgateError('state_unavailable', 'The limits cannot be counted now.', {
      detail: `${this.#options.place}: ${problem}`,
      ...(cause === undefined ? {} : { cause }),
    })
  }
}

function newClient(url: string, connectTimeout: number) {
  return createClient({
    url,
    name: 'toolgate',
    RESP: 2,
    socket: { connectTimeout, reconnectStrategy: false },
    disableOfflineQueue: true,
    // One timer watches the server's silence for all commands.
    commandOptions: { timeout: 0 },
    maintNotifications: 'disabled',
  })
}

function destroy(client: RedisClient): void {
  try {
    client.destroy()
  } catch {
    // The connection was never open, or no longer is.
  }
}

const PROBLEMS: ReadonlyMap<string, string> = new Map([
  ['ECONNREFUSED', 'nothing listens there'],
  ['ENOTFOUND', 'the host is unknown'],
])

function problemOf(error: unknown): string {
  if (error instanceof ConfigError) return error.problem
  const [first] = error instanceof AggregateError ? (error.errors as readonly unknown[]) : []
  const message = messageOf(first ?? error)
  if (message.startsWith('WRONGPASS') || message.startsWith('NOAUTH')) return 'the password is wrong'
  return PROBLEMS.get(errnoOf(first ?? error) ?? '') ?? message
}
