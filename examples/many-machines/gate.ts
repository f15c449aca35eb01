import { appendFileSync } from 'node:fs'
import { createGate, defineTool } from '@toolgate/core'
import { openPostgresStores } from '@toolgate/stores/postgres'
import { openRedisCounters } from '@toolgate/stores/redis'

/**
 * The gate of one process among many, such as a server of Next.js or an instance of a function. Open it once in each process,
 * not for each request.
 */
export async function openGate() {
  const { POSTGRES = '', REDIS, SILENCE_MS = '50', LEDGER = '/dev/null' } = process.env
  const stores = await openPostgresStores({ url: POSTGRES, maxConnections: 2 })
  const counters =
    REDIS === undefined ? stores.counters : await openRedisCounters({ url: REDIS, silenceMs: Number(SILENCE_MS) })
  const { state, lease, ready } = await stores.join()
  const write = (what: string) => appendFileSync(LEDGER, `${what}\n`)
  const inputSchema = { type: 'object', properties: { n: { type: 'integer' } } } as const
  const gate = createGate({
    tools: [
      defineTool({ name: 'read', execute: () => 'read' }),
      defineTool<{ n: number }>({ name: 'mail', inputSchema, execute: ({ n }) => write(`mail ${n}`) }),
      defineTool<{ n: number }>({ name: 'report', inputSchema, execute: ({ n }) => write(`report ${n}`) }),
      defineTool<{ n: number }>({ name: 'pay', inputSchema, execute: ({ n }) => write(`pay ${n}`) }),
    ],
    policy: { ask: ['pay'] },
    limits: [
      { match: 'mail', max: 100, windowMs: 86_400_000, per: [] },
      { match: 'report', max: 5, windowMs: 86_400_000, per: [] },
    ],
    approvals: stores.approvals,
    counters,
    state,
    lease,
  })
  return { gate, ready }
}
