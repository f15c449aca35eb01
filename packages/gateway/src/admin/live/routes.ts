import type { Heart } from '../../heart/heart.ts'
import type { Room } from '../../heart/room.ts'
import { once } from '../../util/lifecycle.ts'
import { groups, type GroupsRoom } from '../groups/start.ts'
import { type AccessRules, admitToSocket } from '../http/access.ts'
import { room as login } from '../login/routes.ts'
import type { LiveSocket } from './live-socket.ts'
import { live } from './start.ts'

/** How often a shared database is queried for new records while a page listens. */
const SHARED_POLL_MS = 200

export const room: Room = {
  name: 'live',
  needs: [live, login, groups],
  open(heart, rooms) {
    const [pages, people, all] = [rooms.ask(live), rooms.ask(login), rooms.ask(groups)]
    if (!pages || !people || !all) return undefined
    pages.load = once(async () => (pages.socket = await openSocket(heart, people.access, all)))
    return {}
  },
}

async function openSocket(
  { config, door, stores, gate, redact, onFault }: Heart,
  access: AccessRules,
  { rows, watch, others }: GroupsRoom,
): Promise<LiveSocket> {
  const { createLiveSocket } = await import('./live-socket.ts')
  return createLiveSocket({
    admit: (request) => admitToSocket(request, access),
    logins: door.logins,
    groups: rows,
    groupWatch: watch,
    fleetGroups: others,
    audit: stores.audit,
    approvals: gate.approvals,
    redact,
    onFault,
    ...(config.audit.store === 'postgres' && { pollMs: SHARED_POLL_MS }),
  })
}
