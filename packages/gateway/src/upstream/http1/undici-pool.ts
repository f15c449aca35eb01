import { createRequire } from 'node:module'
import type { IncomingHttpHeaders } from 'node:http'
import type { Pool } from 'undici'
import type { Http1PoolOptions, PoolHandler, PoolRequest } from './http1-pool.ts'

let PoolClass: typeof Pool | undefined

/** Kept-alive connections to one origin by undici, which speaks TLS. It is also what our own pool is compared with. */
export class UndiciPool {
  readonly #pool: Pool

  constructor({ origin }: URL, { maxConnections, connectTimeoutMs }: Http1PoolOptions) {
    // All of undici takes 13 MB more than this one class, which is loaded for the first server that needs it.
    PoolClass ??= createRequire(import.meta.url)('undici/lib/dispatcher/pool.js') as typeof Pool
    this.#pool = new PoolClass(origin, {
      connections: maxConnections,
      connectTimeout: connectTimeoutMs,
      headersTimeout: 0,
      bodyTimeout: 0,
      allowH2: false,
    })
  }

  /** @throws {Error} for an invalid header */
  send({ method, path, headers, ownHeaders = [], body }: PoolRequest, handler: PoolHandler): void {
    const all = [...headers, ...ownHeaders]
    this.#pool.dispatch(
      { method, path, headers: all, body: body ?? null },
      {
        onRequestStart: (controller) => handler.onStart((reason) => controller.abort(reason)),
        onResponseStart: (_, status, given: IncomingHttpHeaders) =>
          handler.onHead(status, {
            'content-type': firstOf(given['content-type']),
            'mcp-session-id': firstOf(given['mcp-session-id']),
            location: firstOf(given['location']),
          }),
        onResponseData: (_, chunk) => handler.onBody(chunk),
        onResponseEnd: () => handler.onEnd(),
        onResponseError: (_, error) => handler.onError(error),
      },
    )
  }

  async destroy(error?: Error): Promise<void> {
    await this.#pool.destroy(error ?? null)
  }
}

function firstOf(header: string | string[] | undefined): string | undefined {
  return Array.isArray(header) ? header[0] : header
}
