import { ToolgateError } from '@toolgate/core'
import { Client, type ClientConfig } from 'pg'
import type { Row } from '../rows.ts'
import { describeError, type PostgresDatabase, toQuery } from './database.ts'

interface OwnConnectionOptions {
  readonly config: ClientConfig
  /** The server's URL without the password. */
  readonly place: string
  /** Statements that each new connection runs first. */
  readonly first: readonly string[]
  /** Called for a notification, and after a new connection, because notifications may have been missed. */
  readonly onNotice: () => void
  readonly prepares: boolean
}

/**
 * Returns one connection, for notifications and for statements that must not wait for others. It is opened when needed,
 * and replaced after each failure.
 */
export function openOwnConnection(options: OwnConnectionOptions): Omit<PostgresDatabase, 'schema'> {
  return new OwnConnection(options)
}

class OwnConnection implements Omit<PostgresDatabase, 'schema'> {
  readonly #options: OwnConnectionOptions
  #client: Client | undefined
  #isClosed = false

  constructor(options: OwnConnectionOptions) {
    this.#options = options
  }

  async query(
    given: Parameters<PostgresDatabase['query']>[0],
    values: readonly unknown[] = [],
  ): Promise<readonly Row[]> {
    try {
      const client = this.#client ?? (await this.#connect())
      return (await client.query<Row>(toQuery(given, values, this.#options.prepares))).rows
    } catch (error) {
      this.#drop()
      const detail = `${this.#options.place}: ${describeError(error)}`
      throw new ToolgateError('state_unavailable', 'The database does not answer.', { detail, cause: error })
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#drop()
  }

  async #connect(): Promise<Client> {
    if (this.#isClosed) throw new Error('it is closed')
    const { config, first, onNotice } = this.#options
    const client = new Client(config)
    client.on('error', () => this.#forget(client))
    client.on('end', () => this.#forget(client))
    client.on('notification', onNotice)
    try {
      await client.connect()
      for (const text of first) await client.query(text)
    } catch (error) {
      end(client)
      throw error
    }
    if (this.#isClosed) end(client)
    else this.#client = client
    return client
  }

  #forget(client: Client): void {
    if (this.#client === client) this.#client = undefined
  }

  #drop(): void {
    if (this.#client) end(this.#client)
    this.#client = undefined
  }
}

/** Ends a connection without waiting for an answer. */
function end(client: Client): void {
  client.end().catch(() => undefined)
}
