import { connect, createServer, type Socket } from 'node:net'
import type { AddressInfo } from 'node:net'

/**
 * What happens to the traffic. `silent`: nothing passes, and connections stay. `deaf`: requests pass, answers do not.
 * `reset`: every connection ends with a reset.
 */
export type Weather = 'fine' | 'silent' | 'deaf' | 'reset'

/** A TCP proxy on loopback that stands for a network between a process and a server. */
export interface TcpProxy {
  readonly port: number
  /** Changes what happens to the connections that there are, and to new ones. */
  set(weather: Weather, delayMs?: number): void
  close(): Promise<void>
}

/** Starts a proxy in front of a port. What did not pass is lost, as its connection is by then. */
export async function startTcpProxy(target: number): Promise<TcpProxy> {
  let weather: Weather = 'fine'
  let delayMs = 0
  const sockets = new Set<Socket>()

  function track(socket: Socket): Socket {
    sockets.add(socket)
    socket.on('error', () => undefined)
    socket.once('close', () => sockets.delete(socket))
    return socket
  }

  /** Passes bytes on, and the end. A connection that has lost bytes ends when the network is fine again. */
  function pipe(from: Socket, to: Socket, isBlocked: () => boolean): void {
    let hasLost = false
    const later = (work: () => void) => (delayMs === 0 ? work() : void setTimeout(work, delayMs))
    from.on('data', (chunk: Buffer) => {
      if (isBlocked()) hasLost = true
      else if (hasLost) from.resetAndDestroy()
      else later(() => to.destroyed || to.write(chunk))
    })
    from.once('close', () => {
      if (!isBlocked()) later(() => to.destroy())
    })
  }

  const server = createServer((client) => {
    track(client)
    if (weather === 'reset') return void client.resetAndDestroy()
    const upstream = track(connect(target, '127.0.0.1'))
    pipe(client, upstream, () => weather === 'silent')
    pipe(upstream, client, () => weather === 'silent' || weather === 'deaf')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    port: (server.address() as AddressInfo).port,
    set(next, delay = 0) {
      weather = next
      delayMs = delay
      if (next === 'reset') for (const socket of sockets) socket.resetAndDestroy()
    },
    close() {
      for (const socket of sockets) socket.destroy()
      return new Promise((resolve) => server.close(() => resolve()))
    },
  }
}
