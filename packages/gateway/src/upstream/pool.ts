import { createRequire } from 'node:module'

import type { Pool } from 'undici'

// The whole of undici costs 13 MB more than the one class used here.
const PoolClass = createRequire(import.meta.url)('undici/lib/dispatcher/pool.js') as typeof Pool

const MAX_CONNECTIONS = 256
const CONNECT_TIMEOUT_MS = 5_000

/** Gives kept-alive connections to one origin. Timeouts are the caller's: a call may be silent for long. */
export function createPool(origin: string): Pool {
  return new PoolClass(origin, {
    connections: MAX_CONNECTIONS,
    connectTimeout: CONNECT_TIMEOUT_MS,
    headersTimeout: 0,
    bodyTimeout: 0,
    allowH2: false,
  })
}
