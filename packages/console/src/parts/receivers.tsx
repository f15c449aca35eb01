import type { ReactElement } from 'react'
import { useApi } from '../hooks.ts'
import type { NotificationsBody } from '../wire.ts'
import { Exact } from './exact.tsx'
import { At } from './when.tsx'

const REFRESH_MS = 15_000

/** Shows the receivers that take no notifications, since when and why. It is empty while all of them do. */
export function DeadReceivers(): ReactElement | null {
  const { data } = useApi<NotificationsBody>({
    key: ['notifications'],
    path: '/api/notifications',
    everyMs: REFRESH_MS,
    isUnannounced: true,
  })
  const dead = (data?.receivers ?? []).flatMap(({ failing, ...row }) => (failing ? [{ ...row, failing }] : []))
  if (dead.length === 0) return null
  return (
    <ul className="receivers" aria-label="Receivers that take no notifications">
      {dead.map(({ name, failing, waiting }) => (
        <li key={name}>
          <strong>
            <Exact text={name} />
          </strong>{' '}
          has taken no notification since <At at={failing.since} />: <Exact text={failing.why} />
          {waiting > 0 && `. ${waiting} wait`}
        </li>
      ))}
    </ul>
  )
}
