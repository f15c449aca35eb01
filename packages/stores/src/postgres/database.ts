import { createHash } from 'node:crypto'
import { ToolgateError } from '@toolgate/core'
import { backoffMs, errnoOf, messageOf } from '@toolgate/values'
import { type ClientConfig, Pool, type PoolClient, type QueryConfig } from 'pg'
import type { Row } from '../rows.ts'

/** One statement, prepared once by each connection. */
export interface Statement {
  readonly name: string
  readonly text: string
}

/** The connections of this process. Their errors are `state_unavailable`. */
export interface PostgresDatabase {
  /** The schema's name, quoted for SQL. */
  readonly schema: string
  /** Runs one statement as a transaction of its own, so that nobody waits for a client between two statements. */
  query(statement: Statement, values?: readonly unknown[]): Promise<readonly Row[]>
  close(): Promise<void>
}

interface PoolOptions {
  readonly config: ClientConfig
  /** The database's URL without the password. */
  readonly place: string
  readonly schema: string
  readonly maxConnections: number
  /** Whether statements are prepared. */
  readonly prepares: boolean
}

/** The maximum number of statements that wait for a connection. Further ones are refused at once. */
const MAX_WAITING = 1000
const BACKOFF = { firstMs: 25, maxMs: 500 }

/** SQL for the time in milliseconds: the first parameter, or the server's time if that is null. */
export const SERVER_MS = 'coalesce($1::float8, extract(epoch FROM clock_timestamp())::float8 * 1000)'

/** Returns a statement. Its name is derived from its text. */
export function statement(text: string): Statement {
  return { name: `toolgate_${createHash('sha256').update(text).digest('hex').slice(0, 16)}`, text }
}

/** Returns a statement for the driver. Without a name, it is parsed each time and not kept. */
export function toQuery({ name, text }: Statement, values: readonly unknown[], prepares: boolean): QueryConfig {
  return { ...(prepares && { name }), text, values: [...values] }
}

/** Returns a pool that opens connections when they are needed. */
export function openPool(options: PoolOptions): PostgresDatabase {
  return new Database(options)
}

class Database implements PostgresDatabase {
  readonly schema: string
  readonly #place: string
  readonly #pool: Pool
  readonly #prepares: boolean
  /** The number of failed attempts to connect since the last success. */
  #failures = 0
  /** The time before which no connection is tried. */
  #retryAtMs = Number.NEGATIVE_INFINITY
  #lastError: unknown

  constructor({ config, place, schema, maxConnections, prepares }: PoolOptions) {
    this.schema = schema
    this.#place = place
    this.#prepares = prepares
    this.#pool = new Pool({
      ...config,
      max: maxConnections,
      allowExitOnIdle: true,
      verify: (client, done) => void refuseReadOnly(client, done),
    })
    // The next statement replaces a lost idle connection, and reports if that fails.
    this.#pool.on('error', () => undefined)
    // A connection in use reports its loss to its statement and as an event. The event ends the process if nobody
    // listens.
    this.#pool.on('connect', (client) => void client.on('error', () => undefined))
  }

  async query(given: Statement, values: readonly unknown[] = []): Promise<readonly Row[]> {
    const client = await this.#connect()
    let broken: Error | undefined
    try {
      const { rows } = await client.query<Row>(toQuery(given, values, this.#prepares))
      return rows
    } catch (error) {
      if (!isAnswer(error)) broken = error instanceof Error ? error : new Error(messageOf(error))
      throw this.#toFault(error)
    } finally {
      // After a missing answer, the state of the connection is unknown.
      client.release(broken)
    }
  }

  async close(): Promise<void> {
    if (!this.#pool.ending) await this.#pool.end()
  }

  async #connect(): Promise<PoolClient> {
    const { idleCount, waitingCount } = this.#pool
    if (idleCount === 0 && performance.now() < this.#retryAtMs) throw this.#toFault(this.#lastError)
    if (waitingCount >= MAX_WAITING)
      throw this.#toFault(new Error(`${waitingCount} statements are waiting for a connection`))
    try {
      const client = await this.#pool.connect()
      this.#failures = 0
      return client
    } catch (error) {
      if (!isPoolTimeout(error)) {
        this.#lastError = error
        this.#retryAtMs = performance.now() + backoffMs(++this.#failures, BACKOFF)
      }
      throw this.#toFault(error)
    }
  }

  #toFault(error: unknown): ToolgateError {
    return new ToolgateError('state_unavailable', 'The state cannot be read or written.', {
      detail: `${this.#place}: ${describeError(error)}`,
    })
  }
}

/** Returns the message of an error. An attempt at several addresses has a message for each, but none of its own. */
export function describeError(error: unknown): string {
  return messageOf(error instanceof AggregateError ? (error.errors[0] ?? error) : error)
}

const SELECT_READ_ONLY = "SELECT current_setting('transaction_read_only') AS read_only"

/** Refuses a read-only server. After a fail-over, the address may still lead to the old primary, now a standby. */
async function refuseReadOnly(client: PoolClient, done: (error?: Error) => void): Promise<void> {
  try {
    const { rows } = await client.query<Row>(SELECT_READ_ONLY)
    done(rows[0]?.['read_only'] === 'on' ? new Error('the server is read-only') : undefined)
  } catch (error) {
    done(error instanceof Error ? error : new Error(messageOf(error)))
  }
}

const READ_ONLY_TRANSACTION = '25006'

/** Returns whether the server answered with an error and the connection is still usable. */
function isAnswer(error: unknown): boolean {
  const severity = error instanceof Error && 'severity' in error ? error.severity : undefined
  return severity === 'ERROR' && errnoOf(error) !== READ_ONLY_TRANSACTION
}

/** Whether no connection was free. The server is not the cause. */
function isPoolTimeout(error: unknown): boolean {
  return messageOf(error) === 'timeout exceeded when trying to connect'
}
