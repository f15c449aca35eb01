import type { Room } from '../../heart/room.ts'
import { createConsole } from './console.ts'

/** The web console, at every path that no other room handles. */
export const room: Room = {
  name: 'console',
  open: ({ host }) => ({ pages: [{ under: '/', ...createConsole(host.consoleDir) }] }),
}
