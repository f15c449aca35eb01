import type { IncomingMessage, ServerResponse } from 'node:http'
import type { OpenedPages } from './open-pages.ts'
import { createHealth } from '../admin/http/health.ts'
import { live } from '../admin/live/start.ts'
import { metrics } from '../admin/metrics/start.ts'
import { ApiPlace } from '../edge/api-place.ts'
import type { HttpDeps } from '../edge/server.ts'
import type { Heart } from '../heart/heart.ts'
import type { Rooms } from '../heart/rooms.ts'
import { mcp } from '../mcp/room.ts'
import { once } from '../util/lifecycle.ts'

/** Returns the handlers of the port. The API and the pages are loaded at the first request for them. */
export function toHttpDeps(rooms: Rooms, heart: Heart, identity: Uint8Array | undefined): HttpDeps {
  const { door, servers, stores, clock, onFault } = heart
  const { authenticator, origins, resources } = door
  const place = openPlace(heart, () => pages())
  const isForwarded = (request: IncomingMessage) => place?.isForwarded(request) === true
  const pages = once(async (): Promise<OpenedPages> => {
    const { openPages } = await import('./open-pages.ts')
    return openPages(rooms, heart, (from) => isForwarded(from as IncomingMessage))
  })
  const endpoints = rooms.ask(mcp)
  return {
    mcp: endpoints?.serve ?? notServed,
    mcpOf: (app) => endpoints?.ofApp(app) ?? notServed,
    resources,
    health: createHealth({
      servers: () => servers.fleet.rows(),
      isLeaving: () => door.stopping.isLeaving,
      rooms: (withReasons) => rooms.health(withReasons),
      checkState: stores.checkWritable,
      nowMs: () => clock.monotonicMs(),
    }),
    identity,
    authenticator,
    origins,
    metrics: rooms.ask(metrics) ?? notServed,
    isForwarded,
    pages: once(async () => {
      const { answer } = await pages()
      if (!place) return answer
      return async (request: IncomingMessage, response: ServerResponse) => {
        if (!(await place.place(request, response))) await answer(request, response)
      }
    }),
    live: async (request, socket, head) => {
      try {
        await pages()
        const opened = await rooms.ask(live)?.load?.()
        if (opened) await opened.upgrade(request, socket, head)
        else socket.destroy()
      } catch (error) {
        onFault(error)
        socket.destroy()
      }
    },
    endStreams: () => rooms.endStreams(),
    onFault,
  }
}

async function notServed(_request: IncomingMessage, response: ServerResponse): Promise<void> {
  response.writeHead(404).end()
}

/** Returns the forwarder of API requests to the replica that is the user's home. */
function openPlace(
  { replica, door, servers, onFault }: Heart,
  pages: () => Promise<OpenedPages>,
): ApiPlace | undefined {
  if (!replica) return undefined
  const { authenticator, origins } = door
  return new ApiPlace({
    elsewhere: () => replica.elsewhere(),
    authenticator,
    origins,
    fleet: servers.fleet,
    subjectOf: async (request, readText) => (await pages()).subjectOf(request, readText),
    isStopping: () => door.stopping.isStopping,
    onFault,
  })
}
