import type { Answer } from '../../heart/route.ts'
import { ConfigError } from '@toolgate/core'
import { ConfigFileError } from '../../config/problems.ts'
import type { Room } from '../../heart/room.ts'
import { nameOperator } from '../http/may.ts'
import type { Reloader } from './reloader.ts'
import { reload } from './start.ts'
import { ApiFault } from '../../model/faults.ts'
import { invalidBody, parseQuery, readBody } from '../http/request.ts'

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
    const preview = readText(body, 'preview')
    const by = nameOperator(person, 'reload_forbidden', 'A reload')
    try {
      return await reloader.reload({ by, through: 'api', isDryRun, publishes, isForced, preview })
    } catch (error) {
      if (error instanceof ConfigFileError || error instanceof ConfigError)
        throw new ApiFault('config_invalid', error.message)
      throw error
    }
  }
}

function readFlag(body: ReadonlyMap<string, unknown>, field: string): boolean | undefined {
  const value = body.get(field)
  if (value === undefined || typeof value === 'boolean') return value
  throw invalidBody(`The field "${field}" must be true or false.`)
}

function readText(body: ReadonlyMap<string, unknown>, field: string): string | undefined {
  const value = body.get(field)
  if (value === undefined || typeof value === 'string') return value
  throw invalidBody(`The field "${field}" must be a string.`)
}
