import type { IncomingHttpHeaders } from 'node:http'
import type { Pool } from 'undici'
import type { Http1PoolOptions, PoolHandler, PoolRequest } from './http1-pool.ts'

/** Kept-alive connections to one origin by undici, which speaks TLS. It is also what our own pool is compared with. */
export class UndiciPool {
  readonly #pool: Promise<Pool>

  constructor({ origin }: URL, options: Http1PoolOptions) {
    this.#pool = openPool(origin, options)
  }

  send(request: PoolRequest, handler: PoolHandler): void {
    this.#pool.then((pool) => dispatch(pool, request, handler)).catch((error: Error) => handler.onError(error))
  }

  async destroy(error?: Error): Promise<void> {
    const pool = await this.#pool
    await pool.destroy(error ?? null)
  }
}

async function openPool(origin: string, { maxConnections, connectTimeoutMs }: Http1PoolOptions): Promise<Pool> {
  // All of undici takes 13 MB more than this one class, which is loaded for the first server that needs it.
  // @ts-expect-error -- only the root of undici has types
  const { default: PoolClass } = (await import('undici/lib/dispatcher/pool.js')) as { readonly default: typeof Pool }
  return new PoolClass(origin, {
    connections: maxConnections,
    connectTimeout: connectTimeoutMs,
    headersTimeout: 0,
    bodyTimeout: 0,
    allowH2: false,
  })
}

/** @throws {Error} for an invalid header */
function dispatch(
  pool: Pool,
  { method, path, headers, ownHeaders = [], body }: PoolRequest,
  handler: PoolHandler,
): void {
  pool.dispatch(
    { method, path, headers: [...headers, ...ownHeaders], body: body ?? null },
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

function firstOf(header: string | string[] | undefined): string | undefined {
  return Array.isArray(header) ? header[0] : header
}
