import { digits, median, printTable } from '../lib.ts'
import type { ServerProcess } from '../server-process.ts'

/** The routes that the pages of the console request. */
const ROUTES = [
  '/api/session',
  '/api/approvals?status=pending&limit=1000',
  '/api/approvals?limit=50',
  '/api/halts',
  '/api/warnings',
  '/api/overview?period=24h',
  '/api/overview?period=7d',
  '/api/audit?limit=1000',
  '/api/audit?limit=1000&after=185000',
  '/api/audit?tool=server07%3Aread_thing_42&limit=15',
  '/api/audit?user=nobody&limit=100',
  '/api/calls?limit=200',
  '/api/calls?outcome=failed&limit=200',
  '/api/calls?text=nowhere-to-be-found&limit=200',
  '/api/calls?run=run-17&limit=200',
  '/api/policy',
  '/api/callers',
  '/api/tools?as=user-5',
  '/api/people',
  '/api/runs',
  '/api/tool?tool=server07%3Aread_thing_42&as=user-5',
  '/api/why?tool=server07%3Aread_thing_42&as=user-5',
  '/api/matrix?from=0&limit=8',
  '/api/matrix?from=12&limit=8&open=server+server25',
  '/api/pins?noted=true',
  '/api/keys',
  '/api/servers',
  '/api/limits',
  '/api/groups',
  '/api/apps',
] as const

/** Asks each route, the first time and again, and prints what the gateway spends on it. */
export async function printRoutes(gateway: ServerProcess, key: string, rounds: number): Promise<void> {
  const headers = { authorization: `Bearer ${key}` }
  const rows: string[][] = []
  const day = Date.now() - 24 * 3600_000
  const counts = `/api/audit/counts?since=${day}&until=${Date.now()}&bucket=900000`
  for (const path of [...ROUTES, counts]) {
    const asked = []
    for (let round = 0; round <= rounds; round++) {
      await gateway.longestDelayMs()
      const before = await gateway.usage()
      const startedMs = performance.now()
      const answer = await fetch(`${gateway.origin}${path}`, { headers })
      const { byteLength: bytes } = await answer.arrayBuffer()
      const ms = performance.now() - startedMs
      const { cpuUs } = await gateway.usage()
      // The delay is known after the next turn.
      await new Promise((resolve) => setTimeout(resolve, 5))
      asked.push({
        ms,
        bytes,
        cpuMs: (cpuUs - before.cpuUs) / 1000,
        stallMs: await gateway.longestDelayMs(),
        ok: answer.ok,
      })
    }
    const [first, ...again] = asked
    const of = (field: 'ms' | 'cpuMs' | 'stallMs'): string => digits(median(again.map((one) => one[field])))
    if (!first) continue
    rows.push([
      path.slice(0, 60) + (first.ok ? '' : ' FAILED'),
      digits(first.ms),
      digits(first.stallMs),
      of('ms'),
      of('cpuMs'),
      of('stallMs'),
      digits(first.bytes / 1000),
    ])
  }
  printTable('Routes', ['route', 'first ms', 'first stall ms', 'ms', 'CPU ms', 'stall ms', 'kB'], rows)
}
