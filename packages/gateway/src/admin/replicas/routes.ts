import type { Answer } from '../../heart/route.ts'
import type { Heart } from '../../heart/heart.ts'
import type { Room } from '../../heart/room.ts'
import { nameOperator } from '../http/may.ts'
import { recordChange } from '../http/record-change.ts'
import { ApiFault } from '../../model/faults.ts'
import { invalidBody, parseQuery, readBody } from '../http/request.ts'
import type { ReplicasBody } from '../../model/rows.ts'

export const room: Room = {
  name: 'replicas',
  open: (heart) => ({
    routes: [
      { method: 'GET', path: '/api/replicas', by: 'person', answer: replicasRoute(heart) },
      { method: 'POST', path: '/api/replicas/accept', by: 'person', answer: acceptReplicasRoute(heart) },
    ],
  }),
}

/** `GET /api/replicas` */
function replicasRoute({ replica }: Pick<Heart, 'replica'>): Answer {
  return async ({ person, query }): Promise<ReplicasBody> => {
    parseQuery(query, {})
    nameOperator(person, 'replica_forbidden', 'The list of replicas')
    return replica ? replica.report.list() : { replicas: [] }
  }
}

const WHAT = ['database', 'limits'] as const

/** `POST /api/replicas/accept`: continues with a database that lost changes, or with limits that lost their counts. */
function acceptReplicasRoute(heart: Pick<Heart, 'replica' | 'gate' | 'stores' | 'clock'>): Answer {
  const report = heart.replica?.report
  return async ({ person, query, request }): Promise<ReplicasBody> => {
    parseQuery(query, {})
    const body = await readBody(request, ['what'])
    const what = WHAT.find((one) => one === body.get('what'))
    if (!what) throw invalidBody(`The field "what" must be one of ${WHAT.join(', ')}.`)
    const by = nameOperator(person, 'replica_forbidden', 'Accepting')
    if (!report) throw new ApiFault('replica_none', 'This gateway shares its stores with no other.')
    await report.accept(what)
    await recordChange(heart, 'replicas', { detail: `accepted the ${what} as it is`, by })
    return report.list()
  }
}
