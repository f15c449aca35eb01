import type { Room } from '../../heart/room.ts'
import { gauge } from '../../telemetry/exposition.ts'
import type { LiveSocket } from './live-socket.ts'

/** The live feed of the console. It is loaded for the first page that listens. */
interface LivePages {
  socket: LiveSocket | undefined
  /** Absent until the rooms of people are open. */
  load?: () => Promise<LiveSocket>
}

export const live: Room<LivePages> = {
  name: 'live',
  open() {
    const pages: LivePages = { socket: undefined }
    const connections = () => pages.socket?.connections ?? 0
    return {
      service: pages,
      metrics: [() => gauge('toolgate_live_pages', 'Clients of /api/live.', connections())],
      endStreams: () => pages.socket?.close(),
    }
  },
}
