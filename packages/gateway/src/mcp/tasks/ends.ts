import type { Caller, Gate } from '@toolgate/core'
import type { OpenTask, TaskOwner } from './task.ts'

export interface EndsDeps {
  readonly gate: Pick<Gate, 'apps' | 'view'>
  /** Returns a client's current caller; `undefined` if its key no longer opens the app, or the app no longer exists. */
  readonly callerOf: (owner: TaskOwner, app: string | undefined) => Caller | undefined
}

/** Writes the final record of a call that nobody continues. */
export async function endOnRecord({ gate, callerOf }: EndsDeps, { owner, call }: OpenTask, why: string): Promise<void> {
  const { tenant, user } = owner
  const known = callerOf(owner, call.app) ?? {
    ...(tenant !== undefined && { tenant }),
    ...(user !== undefined && { user }),
  }
  const { tool, app, session, callId } = call
  const isServed = gate.apps.list.some(({ name }) => name === app)
  const caller = session === undefined ? known : { ...known, session }
  const view = await gate.view(caller, { app: isServed ? app : undefined })
  // Only the id of the first attempt is recorded.
  await view.call({ tool, continues: { callId, round: 0, binding: '' }, as: { kind: 'abandoned', why } })
}

/** Withdraws an approval that is undecided, or approved but not used. */
export async function withdrawApproval(
  { approvals }: Pick<Gate, 'approvals'>,
  caller: Caller,
  id: string,
  reason: string,
): Promise<void> {
  const approval = await approvals.get(id)
  const decision = approval?.status === 'pending' ? 'reject' : approval?.status === 'approved' ? 'revoke' : undefined
  if (decision) await approvals.decide(caller, id, { decision, reason })
}
