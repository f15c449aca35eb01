import { createServer, connect } from 'node:net'
import { networkInterfaces } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'

import { seconds } from './pending.ts'
import { UpstreamError } from './upstream.ts'

const POLL_MS = 25
const CONNECT_MS = 1_000

/** Gives a port of loopback on which nothing listens now. */
export async function findFreePort(): Promise<number> {
  const server = createServer()
  const { promise, resolve, reject } = Promise.withResolvers<number>()
  server.once('error', reject)
  server.listen(0, '127.0.0.1', () => {
    const address = server.address()
    server.close(() => resolve(typeof address === 'object' && address ? address.port : 0))
  })
  return promise
}

/** @throws {UpstreamError} `upstream_timeout`, `aborted` */
export async function waitForPort(
  host: string,
  port: number,
  options: { readonly timeoutMs: number; readonly signal: AbortSignal },
): Promise<void> {
  const deadlineMs = performance.now() + options.timeoutMs
  while (!(await listens(host, port))) {
    if (options.signal.aborted) throw new UpstreamError('aborted', 'was stopped while it started')
    if (performance.now() >= deadlineMs) {
      throw new UpstreamError('upstream_timeout', `did not listen on port ${port} in ${seconds(options.timeoutMs)}`)
    }
    await sleep(POLL_MS)
  }
}

/** Gives the address, not of loopback, at which a port of this machine is open; `undefined` when there is none. */
export async function exposedAddress(port: number): Promise<string | undefined> {
  const outward = Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    // A link-local address needs a zone to connect to; every interface that has one is seen by another address.
    .filter(({ internal, address }) => !internal && !address.startsWith('fe80:'))
  const open = await Promise.all(outward.map(({ address }) => listens(address, port)))
  return outward.find((_, i) => open[i])?.address
}

function listens(host: string, port: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const socket = connect({ host, port, timeout: CONNECT_MS })
  const end = (open: boolean) => {
    socket.destroy()
    resolve(open)
  }
  socket.once('connect', () => end(true))
  socket.once('timeout', () => end(false))
  socket.on('error', () => end(false))
  return promise
}
