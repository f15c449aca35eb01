import type { ApiDeps } from '../http/deps.ts'
import { ApiFault } from '../../model/faults.ts'
import { invalidBody, parseQuery, readBody, type Route } from '../http/request.ts'
import type { ReplicasBody } from '../../model/rows.ts'
import { nameOperator } from '../reload/routes.ts'

/** `GET /api/replicas` */
export function replicasRoute({ replica }: ApiDeps): Route {
  return async ({ person, query }): Promise<ReplicasBody> => {
    parseQuery(query, {})
    nameOperator(person, 'replica_forbidden', 'The list of replicas')
    return replica ? replica.list() : { replicas: [] }
  }
}

const WHAT = ['database', 'limits'] as const

/** `POST /api/replicas/accept`: goes on with a database that lost changes, or with limits whose counts are lost. */
export function acceptReplicasRoute({ replica, recordChange }: ApiDeps): Route {
  return async ({ person, query, request }): Promise<ReplicasBody> => {
    parseQuery(query, {})
    const body = await readBody(request, ['what'])
    const what = WHAT.find((one) => one === body.get('what'))
    if (!what) throw invalidBody(`The field "what" must be one of ${WHAT.join(', ')}.`)
    const by = nameOperator(person, 'replica_forbidden', 'Accepting')
    if (!replica) throw new ApiFault('replica_none', 'This gateway shares its stores with no other.')
    await replica.accept(what)
    await recordChange?.('replicas', `accepted the ${what} as it is`, by)
    return replica.list()
  }
}
