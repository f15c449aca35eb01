import type { Pool } from 'undici'
import type { AnswerHandler } from './http-connections.ts'

export interface HttpRequest {
  readonly method: 'POST' | 'GET' | 'DELETE'
  readonly path: string
  /** Alternating names and values. */
  readonly headers: readonly string[]
  /** The headers of this request only. */
  readonly ownHeaders?: readonly string[] | undefined
  readonly body?: string | undefined
}

/**
 * Kept-alive connections to one origin.
 *
 * undici is loaded for the first of them. A gateway whose servers are all child processes does not need it.
 */
export class HttpPool {
  readonly #opening: Promise<Pool>
  #closed: Error | undefined

  constructor({ origin }: URL) {
    this.#opening = import('./http-connections.ts').then(({ openConnections }) => openConnections(origin))
  }

  /** Sends a request once. The pool never repeats it after a failure. */
  send({ method, path, headers, ownHeaders = [], body }: HttpRequest, handler: AnswerHandler): void {
    this.#opening
      .then((pool) => {
        if (this.#closed) throw this.#closed
        pool.dispatch({ method, path, headers: [...headers, ...ownHeaders], body: body ?? null }, handler)
      })
      .catch((error: Error) => handler.onResponseError(undefined, error))
  }

  /** Ends all connections. Running and waiting requests fail with the error. */
  async destroy(error: Error = new Error('was closed')): Promise<void> {
    this.#closed ??= error
    const pool = await this.#opening
    await pool.destroy(error)
  }
}
