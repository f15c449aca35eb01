import type { Answer } from '../../heart/route.ts'
import type { Room } from '../../heart/room.ts'
import { groups, type GroupsRoom } from './start.ts'
import { createNeedRows, toAppRows } from './rows.ts'
import { parseQuery, shortText } from '../http/request.ts'
import type { AppsBody, GroupsBody, NeedsBody } from '../../model/rows.ts'

export const room: Room = {
  name: 'groups',
  needs: [groups],
  open({ gate, catalog, revisions, redact }, rooms) {
    const needRows = createNeedRows(gate, () => revisions.current.groups, redact)
    const appRows = () => toAppRows(gate.apps, catalog.ownIds())
    return {
      routes: [
        { method: 'GET', path: '/api/groups', by: 'person', answer: groupsRoute(rooms.ask(groups)) },
        { method: 'GET', path: '/api/apps', by: 'person', answer: appsRoute(appRows) },
        { method: 'GET', path: '/api/needs', by: 'person', answer: needsRoute(needRows) },
      ],
    }
  },
}

/** `GET /api/groups`: every configured group with its current state, in the order of the configuration. */
function groupsRoute(all: GroupsRoom | undefined): Answer {
  return async ({ query }) => {
    parseQuery(query, {})
    await all?.refresh()
    return { groups: all?.rows() ?? [] } satisfies GroupsBody
  }
}

/** `GET /api/apps`: every configured app with its current state, in the order of the configuration. */
function appsRoute(rows: () => AppsBody['apps']): Answer {
  return ({ query }) => {
    parseQuery(query, {})
    return { apps: rows() } satisfies AppsBody
  }
}

/** `GET /api/needs?app=`: the dependencies of an app's tools, or of all groups. */
export function needsRoute(rows: ReturnType<typeof createNeedRows>): Answer {
  return ({ query }) => {
    const { app } = parseQuery(query, { app: shortText })
    return { ...(app === undefined ? {} : { app }), needs: rows(app) } satisfies NeedsBody
  }
}
