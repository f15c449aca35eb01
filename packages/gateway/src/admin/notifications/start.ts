import type { Heart } from '../../heart/heart.ts'
import type { Room } from '../../heart/room.ts'
import type { WarningRow } from '../../model/rows.ts'
import type { Notifications } from './notifications.ts'

/** Tells chats and programs when a call waits for a person. Its code is loaded for the first receiver. */
export interface OpenNotifications {
  /** `undefined` without a receiver. */
  current(): Notifications | undefined
}

export const notifications: Room<OpenNotifications> = {
  name: 'notifications',
  async open(heart) {
    let opened = isNeeded(heart) ? await load(heart) : undefined
    let loading: Promise<unknown> | undefined
    let isClosed = false
    const failing = () => opened?.rows().filter((row) => row.failing) ?? []
    return {
      service: { current: () => (isNeeded(heart) ? opened : undefined) },
      metrics: [() => opened?.families() ?? []],
      renew() {
        opened?.renew()
        if (opened || loading || !isNeeded(heart)) return
        loading = load(heart).then(async (late) => (isClosed ? late.close() : void (opened = late)), heart.onFault)
      },
      warnings: () => failing().map(toWarning),
      health: (withReasons) => ({
        body:
          withReasons && failing().length > 0
            ? { notifications: failing().map(({ name, failing: why }) => ({ name, why: why?.why ?? '' })) }
            : {},
      }),
      async close() {
        isClosed = true
        await loading
        await opened?.close()
      },
    }
  },
}

function isNeeded({ revisions }: Heart): boolean {
  return (revisions.current.asking.notify ?? []).length > 0
}

async function load(heart: Heart): Promise<Notifications> {
  const { Notifications: Loaded } = await import('./notifications.ts')
  return new Loaded(heart)
}

function toWarning({ name, failing, waiting }: ReturnType<Notifications['rows']>[number]): WarningRow {
  const text = `the receiver "${name}" takes no notifications since ${failing?.since}: ${failing?.why}; ${waiting} wait`
  return { code: 'notify_failing', path: 'approvals.notify', text }
}
