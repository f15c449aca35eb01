import { nearestOf } from '@toolgate/values'
import type { Answer } from '../../heart/route.ts'
import { maySeeLogs } from '../http/may.ts'
import type { Heart } from '../../heart/heart.ts'
import { ApiFault } from '../../model/faults.ts'
import { parseQuery, required, shortText, wholeNumber } from '../http/request.ts'
import type { LogsBody, ServerRow } from '../../model/rows.ts'

/** `GET /api/logs?server=&after=&limit=`: the latest lines of a server, oldest first. */
export function logsRoute({ servers: { fleet }, redact }: Pick<Heart, 'servers' | 'redact'>): Answer {
  return ({ query, person }) => {
    const { server: asked, ...range } = parseQuery(query, {
      server: shortText,
      after: wholeNumber(0, Number.MAX_SAFE_INTEGER),
      limit: wholeNumber(1, 500),
    })
    if (!maySeeLogs(person))
      throw new ApiFault(
        'logs_forbidden',
        'The logs of servers take a person with the role "operator" or "approver", and no tenant.',
      )
    const server = required('server', asked)
    checkServer(server, fleet.rows())
    const lines = fleet.logs.of(server, range).map((line) => ({ ...line, text: redact.redactText(line.text) }))
    return { server, lines } satisfies LogsBody
  }
}

/** @throws {ApiFault} `server_unknown`, which names the nearest server */
export function checkServer(server: string, rows: readonly Pick<ServerRow, 'name'>[]): void {
  const names = rows.map(({ name }) => name)
  if (names.includes(server)) return
  const near = nearestOf(server, names)
  const hint = near === undefined ? '' : ` Did you mean ${JSON.stringify(near)}?`
  throw new ApiFault('server_unknown', `No server is named ${JSON.stringify(server)}.${hint}`)
}
