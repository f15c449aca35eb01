import type { Answer } from '../../heart/route.ts'
import type { Room } from '../../heart/room.ts'
import { nameOperator } from '../http/may.ts'
import type { Reloader } from './reloader.ts'
import { reload } from './start.ts'
import { asConfigFault } from './config-fault.ts'
import { parseQuery, readBody, readFlag, readTextField } from '../http/request.ts'

export const room: Room = {
  name: 'reload',
  needs: [reload],
  open(_heart, rooms) {
    const reloader = rooms.ask(reload)
    return (
      reloader && { routes: [{ method: 'POST', path: '/api/reload', by: 'person', answer: reloadRoute(reloader) }] }
    )
  },
}

/**
 * `POST /api/reload`: reads the file again. The request cannot contain a file. `dryRun` only reports the changes.
 * `publish` makes all replicas run the file if all of them can, or in any case with `force`. `preview` applies exactly
 * the result of a dry run, or nothing.
 */
function reloadRoute(reloader: Reloader): Answer {
  return async ({ person, query, request }) => {
    parseQuery(query, {})
    const body = await readBody(request, ['dryRun', 'publish', 'force', 'preview'])
    const isDryRun = readFlag(body, 'dryRun')
    const publishes = readFlag(body, 'publish')
    const isForced = readFlag(body, 'force')
    const preview = readTextField(body, 'preview')
    const by = nameOperator(person, 'reload_forbidden', 'A reload')
    return asConfigFault(() => reloader.reload({ by, through: 'api', isDryRun, publishes, isForced, preview }))
  }
}
