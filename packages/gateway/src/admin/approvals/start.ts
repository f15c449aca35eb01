import type { Approvals } from '@toolgate/core/call'
import type { Room } from '../../heart/room.ts'
import { type Family, gauge } from '../../telemetry/exposition.ts'

/** The maximum number of approvals that are counted. */
const MAX_APPROVALS = 1000

/** The metrics of approvals. */
export const approvals: Room = {
  name: 'approvals',
  open: ({ gate }) => ({ metrics: [() => pendingFamilies(gate.approvals)] }),
}

async function pendingFamilies({ list }: Pick<Approvals, 'list'>): Promise<readonly Family[]> {
  const pending = await list({ status: 'pending', limit: MAX_APPROVALS })
  const oldest = pending.at(-1)
  const help = 'When the oldest pending approval was asked for, in seconds since 1970.'
  return [
    gauge('toolgate_pending_approvals', `Pending approvals, at most ${MAX_APPROVALS}.`, pending.length),
    ...(oldest ? [gauge('toolgate_oldest_pending_approval_seconds', help, oldest.requestedAt / 1000)] : []),
  ]
}
