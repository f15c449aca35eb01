import type { Caller } from '@toolgate/core'
import { ApiFault } from '../../model/faults.ts'
import type { Room } from '../../heart/room.ts'
import type { Answer } from '../../heart/route.ts'
import type { NotificationsBody, NotificationTestBody, ReceiverRow } from '../../model/notifications.ts'
import { nameOperator } from '../http/may.ts'
import { invalidBody, parseQuery, readBody } from '../http/request.ts'
import { notifications, type OpenNotifications } from './start.ts'

export const room: Room = {
  name: 'notifications',
  needs: [notifications],
  open(_heart, rooms) {
    const opened = rooms.ask(notifications)
    return {
      routes: [
        { method: 'GET', path: '/api/notifications', by: 'person', answer: listRoute(opened) },
        { method: 'POST', path: '/api/notifications/test', by: 'person', answer: testRoute(opened) },
      ],
    }
  },
}

/** `GET /api/notifications`: the receivers, without their URLs. A person of a tenant sees those that are for it alone. */
function listRoute(opened: OpenNotifications | undefined): Answer {
  return ({ query, person }) => {
    parseQuery(query, {})
    const rows = opened?.current()?.rows() ?? []
    return { receivers: rows.filter((row) => maySee(person, row)) } satisfies NotificationsBody
  }
}

function maySee({ tenant }: Caller, { for: tenants }: ReceiverRow): boolean {
  return tenant === undefined || (tenants?.length === 1 && tenants[0] === tenant)
}

/** `POST /api/notifications/test` with `{ receiver? }`: sends an example now, and returns what receivers answered. */
function testRoute(opened: OpenNotifications | undefined): Answer {
  return async ({ query, person, request }) => {
    parseQuery(query, {})
    const receiver = (await readBody(request, ['receiver'])).get('receiver')
    if (receiver !== undefined && typeof receiver !== 'string')
      throw invalidBody('The field "receiver" must be the name of a receiver.')
    nameOperator(person, 'notification_forbidden', 'Sending a test message')
    const names =
      opened
        ?.current()
        ?.rows()
        .map(({ name }) => name) ?? []
    if (names.length === 0) throw new ApiFault('receiver_unknown', 'The file names no receiver in approvals.notify.')
    if (receiver !== undefined && !names.includes(receiver))
      throw new ApiFault(
        'receiver_unknown',
        `No receiver is named ${JSON.stringify(receiver.slice(0, 100))}; known are ${names.join(', ')}.`,
      )
    const receivers = (await opened?.current()?.test(receiver === undefined ? undefined : new Set([receiver]))) ?? []
    return { receivers } satisfies NotificationTestBody
  }
}
